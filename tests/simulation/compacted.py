"""Histories of a repeatedly compacted topic: clients publish, read and disconnect, and the power fails.

A history has one topic and one seed. Time is virtual; commits, reads and chores complete at random times, and some
fail. The log alone, as written to the disk, determines the messages that readers must receive.
"""

from __future__ import annotations

from random import Random
from typing import Any, NamedTuple

from pulsarbox.broker.topic.topic import PersistentTopic
from pulsarbox.errors import Conflict, PersistenceError
from pulsarbox.names import parse_topic
from pulsarbox.protocol.batch import encode_batch
from pulsarbox.protocol.commands import COMMANDS, parse_command
from pulsarbox.protocol.PulsarApi_pb2 import CommandAck, CommandSubscribe, MessageIdData, SingleMessageMetadata
from pulsarbox.storage.journal import Batch
from pulsarbox.storage.record import Entry, Meta, unpack_batch
from tests.simulation.model.history import Violation
from tests.unit.broker.compaction.entries import opened
from tests.unit.broker.playbook import TOPIC, Box, Client

NAME = parse_topic(TOPIC)
KEYS = 12
DURABLE = "durable"
FOREVER = 2**63
Messages = list[tuple[str, bytes] | None]
Place = tuple[int, int]


class Message(NamedTuple):
    """Position of a message."""

    place: Place
    number: int
    """Index in its batch."""


class Reading:
    """One reading of the topic, from subscribing to closing."""

    def __init__(self, client: Client, name: str, since: int) -> None:
        self.client = client
        self.name = name
        self.since = since
        """Number of compactions completed before."""
        self.horizon: Place | None = None
        """Horizon of the compacted view; None until the subscription is open."""
        self.got: dict[Place, Messages] = {}
        self.unacked: list[Place] = []


class CompactedRun:
    """The compaction history of one seed."""

    def __init__(self, seed: int) -> None:
        self.random = random = Random(seed)
        self.trims = random.random() < 0.5
        settings: dict[str, Any] = {
            "managedLedgerMaxEntriesPerLedger": random.choice((1, 4, 20)),
            "managedLedgerMinLedgerRolloverTimeMinutes": 0,
            "brokerUnloadIdleTopicsAfterSeconds": random.choice((0, 1)),
            "dispatcherMaxReadBatchSize": random.choice((2, 10, 100)),
            "compactionMaxKeysInMemory": random.choice((1, 4, 1000)),
            "keepAliveIntervalSeconds": 1_000_000,
            "activeConsumerFailoverDelayTimeMillis": 20,
            "defaultRetentionTimeInMinutes": 0 if self.trims else -1,
            "defaultRetentionSizeInMB": 0 if self.trims else -1,
        }
        if random.random() < 0.3:
            settings["brokerServiceCompactionThresholdInBytes"] = 1000
            settings["brokerServiceCompactionMonitorIntervalInSeconds"] = 1
        self.box = Box(auto=False, **settings)
        self.log: dict[Place, Messages] = {}
        self.ledgers: set[int] = set()
        """Ledgers of the log."""
        self.others: set[int] = set()
        """Ledgers written by compaction."""
        self.trimmed: set[int] = set()
        self.acked: set[Place] = set()
        """Entries acknowledged by the durable subscription, with a response."""
        self.seen: set[Message] = set()
        """Messages received by the durable subscription over its whole life."""
        self.readings: list[Reading] = []
        self.producer: Client | None = None
        self.sequence = self.number = 0
        self.ended = 0
        """Number of successful compactions."""
        self.done = dict.fromkeys(("compacted", "cancelled", "failed", "trimmed", "crash", "caught up", "jumped",
                                   "set back"), 0)  # fmt: skip
        self._watch()
        client = self.box.client()
        client.ask("subscribe", request_id=1, topic=TOPIC, subscription=DURABLE, consumer_id=1, read_compacted=True,
                   subType=CommandSubscribe.Exclusive, initialPosition=CommandSubscribe.Earliest)  # fmt: skip
        self.settle()
        client.cnx.closed(self.box.now)
        self._compact()
        self.settle()

    def _watch(self) -> None:
        """Record the batches written to the disk."""
        engine = self.box.engine
        original = engine.commit

        def commit(batch: Batch) -> None:
            original(batch)
            for _, record in unpack_batch(batch.value()):
                if isinstance(record, Meta) and record.key.startswith(b"ledger/"):
                    ledger_id = int(record.key.rpartition(b"/")[2], 16)
                    (self.trimmed if record.value is None else self.ledgers).add(ledger_id)
                elif isinstance(record, Entry) and record.ledger_id in self.ledgers:
                    self.log[(record.ledger_id, record.entry_id)] = opened(record.body)
                elif isinstance(record, Entry):
                    self.others.add(record.ledger_id)

        engine.commit = commit  # type: ignore[method-assign]

    @property
    def topic(self) -> PersistentTopic:
        """The core's topic."""
        topic = self.box.broker.topics.find(NAME, self.box.now)
        assert isinstance(topic, PersistentTopic)
        return topic

    # Steps

    def run(self, steps: int) -> None:
        """Run ``steps`` random steps, then settle and check. Raises Violation."""
        moves = (
            (self._publish, 30), (self._open, 6), (self._flow, 14), (self._acknowledge, 8), (self._leave, 3),
            (self._compact, 4), (self._cancel, 1), (self._pass_time, 20), (self._crash, 1), (self.settle, 4),
            (self._set_back, 1),
        )  # fmt: skip
        for _ in range(steps):
            (move,) = self.random.choices([move for move, _ in moves], [weight for _, weight in moves])
            move()
            self._work(self.random.randrange(4))
            self._look()
        self._finish()

    def _work(self, count: int) -> None:
        """Complete up to ``count`` commits, reads and chores at random; some commits fail."""
        for _ in range(count):
            self.box.flush()
            what = self.random.choice((self.box.commit, self.box.read, self.box.chore))
            fails = what == self.box.commit and self.random.random() < 0.01
            what(PersistenceError("no")) if fails else what()
        if not self.random.randrange(3):
            self.box.advance(0.001)

    def settle(self) -> None:
        """Complete all pending work, and check the readers that have caught up."""
        box = self.box
        for _ in range(30_000):
            box.flush()
            if box.broker.commits.open.copied and self.random.random() < 0.02 and box.commit(PersistenceError("no")):
                box.advance(0.2)
            busy = box.commit() or box.read() or box.chore()
            if not busy:
                topic = box.broker.topics.loaded(NAME)
                if not isinstance(topic, PersistentTopic) or topic.compaction.run is None:
                    break
                box.advance(0.01)
        else:
            raise Violation("liveness", "a compaction comes to no end")
        self._look()

    def _pass_time(self) -> None:
        self.box.advance(self.random.choice((0.001, 0.02, 0.02, 0.5, 2.0)))

    def _publish(self) -> None:
        random = self.random
        if self.producer is None or self.producer.closed:
            self.producer = self.box.client()
            self.producer.ask("producer", request_id=1, topic=TOPIC, producer_id=1)
            self.box.flush()
        for _ in range(random.choice((1, 3))):
            self.sequence += 1
            pairs = [self._pair() for _ in range(random.choice((0, 0, 2, 5)))]
            if not pairs:
                key, value = self._pair()
                empty: dict[str, Any] = {} if value else {"null_value": True}
                keyed: dict[str, Any] = {"partition_key": key} if key else {}
                self.producer.send(self.sequence, value, **keyed, **empty)
                continue
            body = encode_batch((SingleMessageMetadata(partition_key=key or None), value) for key, value in pairs)
            self.producer.send(self.sequence, body, batch=len(pairs), uncompressed_size=len(body))

    def _pair(self) -> tuple[str, bytes]:
        chance = self.random.random()
        key = "" if chance < 0.05 else f"k{self.random.randrange(KEYS)}"
        return key, b"" if chance > 0.8 else b"%d" % self.sequence

    # Reading

    def _open(self) -> None:
        random = self.random
        durable = random.random() < 0.4 and all(each.name != DURABLE for each in self.readings)
        if not durable and len(self.readings) > 3:
            return
        self.number += 1
        self._opened(DURABLE if durable else f"reader-{self.number}")

    def _opened(self, name: str) -> Reading:
        random, durable = self.random, name == DURABLE
        reading = Reading(self.box.client(), name, self.ended)
        self.readings.append(reading)
        earliest = {} if durable else {"start_message_id": MessageIdData(ledgerId=2**64 - 1, entryId=2**64 - 1)}
        reading.client.ask("subscribe", request_id=1, topic=TOPIC, subscription=name, consumer_id=1, durable=durable,
                           read_compacted=True, subType=random.choice((CommandSubscribe.Exclusive, 2)),
                           initialPosition=CommandSubscribe.Earliest, **earliest)  # fmt: skip
        self.box.flush()
        return reading

    def _set_back(self) -> None:
        """Reset the durable subscription to the beginning."""
        if self.trims and self.random.random() < 0.5:
            self._begin_again()
            return
        self._look()
        for reading in [each for each in self.readings if each.name == DURABLE and each.horizon is not None]:
            self._seek(reading)

    def _seek(self, reading: Reading) -> None:
        self.acked.clear()
        self.sequence += 1
        everything = MessageIdData(ledgerId=2**64 - 1, entryId=2**64 - 1)
        reading.client.ask("seek", consumer_id=1, request_id=1_000_000 + self.sequence, message_id=everything)
        self._look()
        self.done["set back"] += 1

    def _begin_again(self) -> None:
        """Seek to the start, read and acknowledge while most data exists only in the view, then cut the power."""
        while self.readings:
            self._leave()
        self._compact()
        self._read_all_durable()
        reading = self._opened(DURABLE)
        self.settle()
        self._seek(reading)
        self.settle()
        reading = self._opened(DURABLE)
        self.settle()
        reading.client.flow(20)
        self.settle()
        if reading in self.readings and reading.unacked:
            self._ack(reading)
        self._crash()

    def _flow(self) -> None:
        if self.readings:
            self.random.choice(self.readings).client.flow(self.random.choice((1, 3, 20)))

    def _leave(self) -> None:
        if self.readings:
            reading = self.readings.pop(self.random.randrange(len(self.readings)))
            reading.client.cnx.closed(self.box.now)

    def _look(self) -> None:
        """Process the received commands."""
        self.box.flush()
        for reading in list(self.readings):
            inbox, reading.client.inbox = reading.client.inbox, []
            for data, payload in inbox:
                command = parse_command(data)
                name = COMMANDS[command.type].name
                if name == "SUCCESS":
                    source = self.topic.subscriptions[reading.name].source.compacted
                    view = source._view if source is not None else None
                    reading.horizon = view.horizon if view is not None else (0, 0)
                elif name == "MESSAGE":
                    at = command.message.message_id
                    self._took(reading, (at.ledgerId, at.entryId), opened(payload))
                elif name in ("CLOSE_CONSUMER", "ERROR"):
                    if reading in self.readings:
                        self.readings.remove(reading)

    def _took(self, reading: Reading, place: Place, messages: Messages) -> None:
        whole = self.log.get(place)
        self._check(whole is not None, "order", "a message that was never stored:", place)
        assert whole is not None
        self._check(len(whole) == len(messages), "whole", place, "has another number of messages")
        for message, stored in zip(messages, whole, strict=True):
            self._check(message is None or message == stored, "whole", place, "is", message, "and was", stored)
        last = next(reversed(reading.got), (0, -1))
        self._check(place > last, "order", place, "comes behind", last)
        reading.got[place] = messages
        if reading.name == DURABLE:
            self._check(place not in self.acked, "acked-stays", place, "comes again")
            reading.unacked.append(place)
            self.seen.update(Message(place, i) for i, message in enumerate(messages) if message is not None)

    def _acknowledge(self) -> None:
        for reading in self.readings:
            if reading.name == DURABLE and reading.unacked:
                self._ack(reading)

    def _ack(self, reading: Reading) -> None:
        random = self.random
        count = random.randrange(1, len(reading.unacked) + 1)
        if random.random() < 0.3:
            chosen, left, kind = reading.unacked[:count], reading.unacked[count:], CommandAck.Cumulative
            named = chosen[-1:]
        else:
            named = chosen = random.sample(reading.unacked, count)
            left, kind = [each for each in reading.unacked if each not in chosen], CommandAck.Individual
        ids = [MessageIdData(ledgerId=ledger, entryId=entry) for ledger, entry in named]
        reading.client.ask("ack", consumer_id=1, ack_type=kind, message_id=ids, request_id=1000 + self.sequence)
        reading.unacked = left
        life = self.box
        for _ in range(20):
            self.box.flush()
            if any(parse_command(data).HasField("ackResponse") for data, _ in reading.client.inbox):
                break
            if not (self.box.commit() or self.box.read()):
                break
        answered = [data for data, _ in reading.client.inbox if parse_command(data).HasField("ackResponse")]
        if answered and life is self.box and not parse_command(answered[-1]).ackResponse.HasField("error"):
            self.acked.update(chosen)

    # Compaction

    def _compact(self) -> None:
        if self.box.broker.topics.exists(NAME):
            try:
                self.topic.compaction.start(self.box.now)
            except Conflict:
                return

    def _cancel(self) -> None:
        topic = self.box.broker.topics.loaded(NAME)
        if isinstance(topic, PersistentTopic) and topic.compaction.run is not None:
            topic.compaction.cancel(self.box.now)
            self.done["cancelled"] += 1

    def _crash(self) -> None:
        self._count()
        self.done["crash"] += 1
        self.readings.clear()
        self.producer = None
        before = self.box
        self.box = before.restart()
        self.box.auto = False
        self.box.time, self.box.wall = before.time, before.wall
        self._watch()
        self.settle()

    def _count(self) -> None:
        record = self.box.broker.compactions.records.get(TOPIC)
        if record is not None:
            self.done["compacted"] += record.succeeded
            self.done["failed"] += record.failed
        self.done["trimmed"] = len(self.trimmed & self.ledgers)

    # Rules

    def _check(self, holds: bool, rule: str, *what: object) -> None:
        if not holds:
            raise Violation(rule, " ".join(map(str, what)))

    def _winners(self, through: Place = (FOREVER, 0)) -> dict[str, Message]:
        """Return the latest message of each key in the log, up to an entry."""
        latest: dict[str, Message] = {}
        for place, messages in self.log.items():
            for index, message in enumerate(messages) if place <= through else ():
                if message is not None and message[0]:
                    latest.pop(message[0], None)
                    if message[1]:
                        latest[message[0]] = Message(place, index)
        return latest

    def _caught_up(self, reading: Reading) -> None:
        """Check that a reader at the end has received the latest message of every key."""
        self.done["caught up"] += 1
        horizon = reading.horizon
        assert horizon is not None
        got = {
            Message(place, i): message
            for place, messages in reading.got.items()
            for i, message in enumerate(messages)
            if message is not None
        }
        known: dict[str, Message] = {}
        for at, (key, value) in got.items():
            known.pop(key, None)
            if key and value:
                known[key] = at
        winners = self._winners()
        missing = {key for key, at in winners.items() if known.get(key) != at}
        self._check(not missing, "latest", reading.name, "does not know the latest of", sorted(missing))
        jumped = self.trims and any(place not in reading.got for place in self.log if place > horizon)
        self.done["jumped"] += jumped
        if jumped:
            return  # the log behind the view was trimmed before the reader reached it
        self._check(set(known) == set(winners), "deleted", "keys came back:", sorted(set(known) - set(winners)))
        of_view = {at for at in got if at.place <= horizon}
        wanted = set(self._winners(horizon).values())
        self._check(of_view == wanted, "compacted", reading.name, "up to", horizon, sorted(of_view ^ wanted)[:5])

    def _finish(self) -> None:
        """Read everything to the end, and check that no leftovers remain."""
        self.settle()
        self._drain()
        for reading in [each for each in self.readings if each.name != DURABLE and each.horizon is not None]:
            self._caught_up(reading)
        self._read_all_durable()
        self._count()
        self._check_leftovers()
        fresh = self._fresh_reader()
        self._caught_up(fresh)

    def _drain(self) -> None:
        """Read until all readers are idle; permits granted before a subscription is open have no effect."""
        calm = 0
        for _ in range(50):
            calm += all(reading.horizon is not None for reading in self.readings)
            for reading in self.readings:
                reading.client.flow(100_000)
            self.settle()
            self.box.advance(0.05)
            if calm == 3:
                return
        raise Violation("liveness", "somebody is not let in")

    def _fresh_reader(self) -> Reading:
        self.readings.clear()
        while not self.readings or self.readings[-1].name == DURABLE:
            self._open()
        self.settle()
        self._drain()
        return self.readings[-1]

    def _read_all_durable(self) -> None:
        for each in [each for each in self.readings if each.name == DURABLE]:
            self.readings.remove(each)
            each.client.cnx.closed(self.box.now)
        self.readings.clear()
        self.settle()
        while not any(each.name == DURABLE for each in self.readings):
            self._open()
        self.settle()
        self._drain()
        reading = next(each for each in self.readings if each.name == DURABLE)
        while reading.unacked:
            self._ack(reading)
            self.settle()
        winners = self._winners()
        missing = {key for key, at in winners.items() if at not in self.seen}
        self._check(not missing, "nothing-lost", "the durable consumer never saw the latest of", sorted(missing))
        cursor = self.topic.subscriptions[DURABLE].cursor
        backlog = cursor.backlog_entries, cursor.backlog_messages, cursor.backlog_bytes
        self._check(backlog == (0, 0, 0), "backlog", "all is acknowledged, and left is", backlog)
        reading.client.cnx.closed(self.box.now)
        self.readings.remove(reading)

    def _check_leftovers(self) -> None:
        self._crash()
        for _ in range(3):  # the threshold may trigger a last compaction
            self.box.advance(5)
            self.settle()
        catalog = self.box.broker.catalog
        views = {int(key.rpartition("/")[2], 16) for key in catalog.keys("compacted/")}
        self._check(len(views) <= 1, "leftovers", "there are", len(views), "views")
        self._check(not list(catalog.keys("compacting/")), "leftovers", "rows of what is no more")
        left = self.others - views - self.box.disk.dropped
        self._check(not left, "leftovers", "compacted ledgers that nobody drops:", left)
