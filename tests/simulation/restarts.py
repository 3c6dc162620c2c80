"""Histories of the time after a restart: clients send all requests at once, and each request gets a response.

``python -m tests.simulation.restarts --seeds 1000`` runs them. Clients know only the commands that they receive. A
request on an open connection gets exactly one response, within ``ANSWER_SECONDS`` of virtual time.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections import Counter
from dataclasses import replace
from random import Random
from typing import Any, Final

from pulsarbox.config import Settings
from pulsarbox.protocol.commands import encode_payload_frame
from pulsarbox.protocol.metadata import encode_entry
from pulsarbox.protocol.PulsarApi_pb2 import CommandAck, CommandSubscribe, MessageIdData, MessageMetadata, TxnAction
from pulsarbox.storage.journal import Batch
from tests.simulation.actors.clients import Client
from tests.simulation.box import Limits, SimulatedBox
from tests.simulation.disk import ENGINES, SimulatedDisk
from tests.simulation.model.history import Violation
from tests.simulation.model.model import Model
from tests.simulation.world import Faults, World

ANSWER_SECONDS: Final = 5.0
"""Virtual seconds; the longest response of 300 seeds took 1.35: reads of 0.2 s on average run in sequence."""
TOPICS: Final = tuple(f"persistent://public/default/{name}" for name in ("one", "two", "three", "three-partition-0"))
NON_PERSISTENT: Final = "non-persistent://public/default/four"
MODES: Final = (0, 0, 0, 0, 0, 1, 2, 3)
"""Access modes of producers: mostly Shared, then Exclusive, WaitForExclusive, ExclusiveWithFencing."""
STEPS: Final = 2500


class Blind(Model):
    """A model without checks: in these histories the clients check the responses."""

    def started(self) -> None:
        """See Model."""

    def crashed(self) -> None:
        """See Model."""

    def committed(self, batch: Batch) -> None:
        """See Model."""

    def turn(self) -> None:
        """See Model."""


class Rusher(Client):
    """A client that sends many requests in one write on connecting, and continues to send requests."""

    pace = 0.02
    unseen = True
    """Excluded from the model."""

    def __init__(self, world: World, box: SimulatedBox, name: str, answers: Counter[str]) -> None:
        super().__init__(world, box, name)
        self._answers = answers
        self._waiting: dict[int, tuple[str, float]] = {}
        """Pending requests: command and time of the request."""
        self._opening: dict[int, int] = {}
        """Pending PRODUCER and SUBSCRIBE requests, with their producer or consumer IDs."""
        self._queued: set[int] = set()
        """Pending PRODUCER requests that are queued for exclusive access."""
        self._closed: set[int] = set()
        """Closed producers; they no longer wait for exclusive access."""
        self._producers: set[int] = set()
        self._consumers: set[int] = set()
        self._seen: list[tuple[int, MessageIdData]] = []
        self._txns: list[tuple[int, int]] = []
        self._numbers = 0
        self.longest = 0.0
        """Longest response time in seconds, without producers queued for exclusive access."""

    # Requests

    def request(self, name: str, **fields: Any) -> int:
        """See Client."""
        request_id = super().request(name, **fields)
        self._waiting[request_id] = (name, self.world.monotonic)
        return request_id

    def connected(self) -> None:
        """See Client."""
        random = self.world.random
        for topic in random.sample((*TOPICS, NON_PERSISTENT), 4):
            self.request("PARTITIONED_METADATA", topic=topic, metadata_auto_creation_enabled=True)
            self.request("LOOKUP", topic=topic)
            if random.random() < 0.6:
                self._produce(topic)
            for _ in range(random.choice((1, 1, 2))):
                self._subscribe(topic)
        self.request("TC_CLIENT_CONNECT_REQUEST", tc_id=0)

    def _produce(self, topic: str) -> None:
        random = self.world.random
        number = self._number()
        mode = random.choice(MODES)
        name = random.choice(("taken", f"{self.name}-{random.randrange(3)}"))
        request_id = self.request(
            "PRODUCER", topic=topic, producer_id=number, producer_name=name, producer_access_mode=mode, epoch=number % 2
        )
        self._opening[request_id] = number
        if random.random() < 0.2:
            self._close("PRODUCER", number)

    def _subscribe(self, topic: str) -> None:
        random, number = self.world.random, self._number()
        name, kind = random.choice((("shared", 1), ("keys", 3), ("failover", 2), ("exclusive", 0), (f"{self.name}", 1)))
        more: dict[str, Any] = {"initialPosition": random.choice((0, 1))}
        if random.random() < 0.4:
            more["start_message_id"] = MessageIdData(ledgerId=random.randrange(60), entryId=random.randrange(8))
            more["durable"] = False
            name, kind = f"reader-{self.name}", CommandSubscribe.Exclusive
        if random.random() < 0.3:
            more["start_message_rollback_duration_sec"] = random.choice((1, 60))
        wanted = {"topic": topic, "subscription": name, "subType": kind, "consumer_id": number} | more
        self._opening[self.request("SUBSCRIBE", **wanted)] = number
        chance = random.random()
        if chance < 0.3:
            self._close("CONSUMER", number)
        if chance < 0.15:  # resubscribe the same consumer before the first response
            self._opening[self.request("SUBSCRIBE", **wanted)] = number

    def _close(self, what: str, number: int) -> None:
        self.request(f"CLOSE_{what}", **{f"{what.lower()}_id": number})
        if what == "PRODUCER":
            self._closed.add(number)
        (self._producers if what == "PRODUCER" else self._consumers).discard(number)

    def _number(self) -> int:
        self._numbers += 1
        return self._numbers

    def act(self) -> None:
        """See Client."""
        self.check()
        if self.calm:
            return
        random = self.world.random
        if self._producers:
            for _ in range(random.randrange(4)):
                self._send(random.choice(sorted(self._producers)))
        deed = random.choice((self._of_a_consumer, self._of_a_consumer, self._of_a_transaction, self._of_a_topic))
        deed()
        if random.random() < 0.02:
            self.give_up()

    def _send(self, producer_id: int) -> None:
        sequence_id = self._number()
        wall = self.world.real.wall
        metadata = MessageMetadata(producer_name=self.name, sequence_id=sequence_id, publish_time=wall)
        entry = encode_entry(metadata, bytes(self.world.random.choice((10, 300))))
        if self.link is not None:
            command = self.command("SEND", producer_id=producer_id, sequence_id=sequence_id)
            self.link.from_client(encode_payload_frame(command, entry))

    def _of_a_consumer(self) -> None:
        random = self.world.random
        if not self._consumers:
            return
        consumer_id = random.choice(sorted(self._consumers))
        seen = [message_id for number, message_id in self._seen if number == consumer_id][:3]
        deed = random.randrange(8)
        if deed < 3 and seen:
            more = {}
            if self._txns and random.random() < 0.3:
                most, least = random.choice(self._txns)
                more = {"txnid_most_bits": most, "txnid_least_bits": least}
            kind = random.choice((CommandAck.Individual, CommandAck.Cumulative))
            self.request("ACK", consumer_id=consumer_id, ack_type=kind, message_id=seen[:1], **more)
        elif deed == 3:
            at = self.world.real.wall - random.choice((0, 500, 60_000))
            self.request("SEEK", consumer_id=consumer_id, message_publish_time=at)
        elif deed == 4 and seen:
            self.request("SEEK", consumer_id=consumer_id, message_id=seen[0])
        elif deed == 5:
            self.request("GET_LAST_MESSAGE_ID", consumer_id=consumer_id)
        elif deed == 6:
            self.request("CONSUMER_STATS", consumer_id=consumer_id)
        elif random.random() < 0.3:
            self.request("UNSUBSCRIBE", consumer_id=consumer_id)
        else:
            self._close("CONSUMER", consumer_id)

    def _of_a_transaction(self) -> None:
        random = self.world.random
        if not self._txns or random.random() < 0.3:
            self.request("NEW_TXN", txn_ttl_seconds=random.choice((300, 3000)), tc_id=0)
            return
        most, least = random.choice(self._txns)
        txn = {"txnid_most_bits": most, "txnid_least_bits": least}
        if random.random() < 0.5:
            self.request("ADD_PARTITION_TO_TXN", partitions=[random.choice(TOPICS)], **txn)
        else:
            self.request("END_TXN", txn_action=random.choice((TxnAction.COMMIT, TxnAction.ABORT)), **txn)

    def _of_a_topic(self) -> None:
        random = self.world.random
        topic = random.choice((*TOPICS, NON_PERSISTENT))
        deed = random.randrange(5)
        if deed == 0:
            self._subscribe(topic)
        elif deed == 1:
            self._produce(topic)
        elif deed == 2:
            self.request("GET_TOPICS_OF_NAMESPACE", namespace="public/default")
        elif deed == 3:
            self.request("GET_SCHEMA", topic=topic)
        elif self._producers:
            self._close("PRODUCER", random.choice(sorted(self._producers)))

    # Responses

    def lost(self) -> None:
        """See Client. Requests on a lost connection get no response."""
        for each in (
            self._waiting,
            self._opening,
            self._queued,
            self._closed,
            self._producers,
            self._consumers,
            self._seen,
        ):
            each.clear()

    def on(self, name: str, body: Any, payload: bytes) -> None:
        """See Client."""
        if name == "MESSAGE":
            self._seen = [*self._seen[-20:], (body.consumer_id, body.message_id)]
        elif name == "CLOSE_CONSUMER":
            self._consumers.discard(body.consumer_id)
        elif name == "CLOSE_PRODUCER":
            self._producers.discard(body.producer_id)
        elif name == "PRODUCER_SUCCESS" and not body.producer_ready:
            self._queued.add(body.request_id)
        elif getattr(body, "request_id", 0):
            self._answered(name, body)

    def _answered(self, name: str, body: Any) -> None:
        if body.request_id not in self._waiting:
            raise Violation("one-reply", f"{self.name}: {name} answers no request, or one for the second time: {body}")
        kind, at = self._waiting.pop(body.request_id)
        if body.request_id not in self._queued:
            self.longest = max(self.longest, self.world.monotonic - at)
        self._queued.discard(body.request_id)
        self._answers[kind] += 1
        number = self._opening.pop(body.request_id, 0)
        if name == "PRODUCER_SUCCESS":
            self._producers.add(number)
        elif kind == "SUBSCRIBE" and name == "SUCCESS":
            self._consumers.add(number)
            self.send("FLOW", consumer_id=number, messagePermits=20)
        elif name == "NEW_TXN_RESPONSE" and not body.HasField("error"):
            self._txns = [*self._txns[-3:], (body.txnid_most_bits, body.txnid_least_bits)]

    def check(self) -> None:
        """Raise Violation if a request has no response in time."""
        if self.link is None or self.link.silent:
            return
        for request_id, (kind, at) in self._waiting.items():
            waited = self.world.monotonic - at
            queued = request_id in self._queued and self._opening.get(request_id) not in self._closed
            if waited > ANSWER_SECONDS and not queued:
                raise Violation("answered", f"{self.name}: {kind} {request_id} has had no answer for {waited:.1f} s")


class RestartRun:
    """The restart history of one seed."""

    def __init__(self, seed: int, engine: str = "memory") -> None:
        self.world = world = World(seed)
        random = world.random
        self.answers: Counter[str] = Counter()
        self.disk = SimulatedDisk(world, engine)
        model = Blind(world)
        cache, checkpoint = random.choice((1, 5_000, 1 << 20)), random.choice((2_000, 50_000))
        self.box = model.box = SimulatedBox(world, _settings_of(random), model, self.disk, Limits(cache, checkpoint))
        self.clients = [Rusher(world, self.box, f"rusher-{i}", self.answers) for i in range(random.choice((1, 2, 4)))]
        self._life_seconds = random.choice((0.2, 0.5, 2.0))
        self._faults = _faults_of(random)
        self._crashes = True

    @property
    def longest(self) -> float:
        """Longest response time in seconds, without producers queued for exclusive access."""
        return max(client.longest for client in self.clients)

    def run(self, steps: int = STEPS) -> None:
        """Run the history, then settle and check. Raises Violation."""
        world = self.world
        try:
            self.box.start()
            world.faults = self._faults
            for client in self.clients:
                client.start()
            self._crash_later()
            world.run(events=steps)
            self._crashes = False
            world.faults = Faults()
            for client in self.clients:
                client.calm = True
            world.run(until=world.monotonic + 3 * ANSWER_SECONDS)
        finally:
            self.disk.close()

    def _crash_later(self) -> None:
        self.world.after(0.02 + self.world.soon(self._life_seconds), self._crash)

    def _crash(self) -> None:
        if self._crashes:
            self.box.crash(self.world.soon(0.1))
            self._crash_later()


def _settings_of(random: Random) -> Settings:
    settings = Settings(
        keepAliveIntervalSeconds=5,
        connectionLivenessCheckTimeoutMillis=500,
        dispatcherMaxReadBatchSize=random.choice((2, 100)),
        managedLedgerMaxEntriesPerLedger=random.choice((1, 7, 1000)),
        brokerUnloadIdleTopicsAfterSeconds=random.choice((0, 1, 3)),
        brokerDeduplicationEnabled=random.random() < 0.3,
        activeConsumerFailoverDelayTimeMillis=200,
    )
    if random.random() < 0.3:
        settings = replace(settings, maxPublishRatePerTopicInMessages=random.choice((1, 5)))
    return settings


def _faults_of(random: Random) -> Faults:
    return Faults(
        drop=random.choice((0.0, 0.01)),
        silence=random.choice((0.0, 0.002)),
        congestion=random.choice((0.0, 0.3)),
        commit_fails=random.choice((0.0, 0.05)),
        read_fails=random.choice((0.0, 0.1)),
        commit_delay=random.choice((0.001, 0.01, 0.1)),
        read_delay=random.choice((0.001, 0.02, 0.2)),
        chore_fails=random.choice((0.0, 0.1)),
        chore_delay=random.choice((0.001, 0.05, 0.5)),
    )


def main(arguments: list[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=100, help="how many")
    parser.add_argument("--seed", type=int, default=0, help="the first")
    parser.add_argument("--steps", type=int, default=STEPS, help="events of a seed before it calms down")
    options = parser.parse_args(arguments)
    logging.disable(logging.CRITICAL)
    answers: Counter[str] = Counter()
    lives, longest = 0, 0.0
    for seed in range(options.seed, options.seed + options.seeds):
        run = RestartRun(seed, ENGINES[seed % len(ENGINES)])
        try:
            run.run(options.steps)
        except Violation as violation:
            sys.stderr.write("\n".join([*run.world.history.recent, ""]))
            sys.stderr.write(f"seed {seed} breaks the rule {violation.rule}: {violation}\n")
            return 1
        answers.update(run.answers)
        lives, longest = lives + run.box.life, max(longest, run.longest)
    total = sum(answers.values())
    text = f"{options.seeds} seeds, {lives} starts, {total} answers, the longest took {longest:.2f} virtual s"
    sys.stderr.write(f"{text}\n{dict(answers.most_common())}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
