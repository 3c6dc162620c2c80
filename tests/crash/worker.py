"""Python counterpart of go/main.go with the official client, for machines without Go: same plan, commands and history.

The Python client does not expose ack responses, so there are no ``acked`` events here.
"""

import argparse
import itertools
import json
import os
import random
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final, TextIO

import pulsar

QUIET_SECONDS: Final = 1.5
"""Seconds without a message after which the topics count as drained."""
GIVE_UP_SECONDS: Final = 60.0
"""Seconds without a message after which the remaining messages of a subscription count as lost."""
# Upper bound of payload sizes.
BYTES: Final = 900
CHUNKED_BYTES: Final = 15_000
# Messages of one producer's life, if publishers reconnect.
LIFE_MESSAGES: Final = 60
# Raised by the client while the broker is down.
TROUBLE: Final = pulsar.PulsarException

Place = dict[str, Any]


def payload(producer: str, seq: int) -> bytes:
    """Return a verifiable payload: producer, number, and letters whose count depends on the number."""
    most = CHUNKED_BYTES if producer.endswith("chunked") else BYTES
    letters = (ord("a") + (seq + at) % 26 for at in range(seq * 37 % most))
    return f"{producer} {seq} ".encode() + bytes(letters)


def id_of(message_id: Any) -> list[int]:
    return [message_id.ledger_id(), message_id.entry_id(), message_id.batch_index()]


def due(seq: int, one_in: int) -> int:
    """Return the delivery time of a message (ms since 1970), 0 for undelayed ones.

    One message in ``one_in`` is delayed, by up to three seconds.
    """
    return int(time.time() * 1000) + 500 + seq * 370 % 2500 if one_in and not seq % one_in else 0


class History:
    """Writer of events, one per line."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._lock = threading.Lock()

    def write(self, kind: str, **facts: Any) -> None:
        with self._lock:
            self._out.write(json.dumps({"at": time.time_ns(), "kind": kind, **facts}) + "\n")

    def flush(self) -> None:
        with self._lock:
            self._out.flush()


class Worker:
    """Publishers and consumers, one thread each."""

    def __init__(self, plan: dict[str, Any], history: History) -> None:
        self._plan, self._history = plan, history
        self._client = pulsar.Client(
            plan["url"],
            operation_timeout_seconds=5,
            connection_timeout_ms=2000,
            logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error),
        )
        self._stopping, self._drained = threading.Event(), threading.Event()
        self._threads: list[threading.Thread] = []
        self._generations = itertools.count(1)
        self._last_received = time.monotonic()

    def run(self) -> None:
        for audit in self._plan["audits"]:  # creates the subscription, so that the whole log is retained for the audit
            self._open(audit, "maker").close()
        for place in self._plan["subscriptions"]:
            for number in range(place.get("consumers", 1)):
                self._spawn(self._consume, place, number)
        self._publishers = [self._spawn(self._publish, place) for place in self._plan["publishers"]]

    def drain(self) -> None:
        self._stopping.set()
        for thread in self._publishers:
            thread.join()
        self._last_received = time.monotonic()
        while time.monotonic() - self._last_received < QUIET_SECONDS:
            time.sleep(0.02)
        self._drained.set()
        for thread in self._threads:
            thread.join()
        self._history.flush()

    def audit(self) -> None:
        """Drain every subscription with a new consumer, then read each whole topic."""
        self._threads.clear()
        for place in self._plan["subscriptions"]:
            self._spawn(self._take, place, f"{place['subscription']}-audit", "received")
        for place in self._plan["audits"]:
            self._spawn(self._take, place, "audit", "log")
        for thread in self._threads:
            thread.join()
        self._history.flush()

    def close(self) -> None:
        self._client.close()

    def _spawn(self, target: Callable[..., None], *arguments: Any) -> threading.Thread:
        thread = threading.Thread(target=target, args=arguments)
        thread.start()
        self._threads.append(thread)
        return thread

    def _producer(self, place: Place) -> Any:
        return insist(
            lambda: self._client.create_producer(
                place["topic"],
                producer_name=place["producer"],
                send_timeout_millis=0,
                max_pending_messages=200,
                block_if_queue_full=True,
                batching_enabled=place["batched"],
                batching_max_messages=20,
                batching_max_allowed_size_in_bytes=3000,
                batching_max_publish_delay_ms=5,
                chunking_enabled=place["chunked"],
            )
        )

    def _publish(self, place: Place) -> None:
        if self._plan["resume"]:
            self._publish_resuming(place)
            return
        producer, pending = self._producer(place), set[int]()
        for seq in self._paced(itertools.count()):
            deliver_at = due(seq, self._plan["delayed"])
            self._send(producer, place, seq, pending, **({"deliver_at": deliver_at} if deliver_at else {}))
        while pending:
            time.sleep(0.01)
        producer.close()

    def _publish_resuming(self, place: Place) -> None:
        """Publish with producers that close midway; each continues after the broker's last sequence ID."""
        sent, ends_clean = 0, False
        while not (self._stopping.is_set() and ends_clean):
            producer, pending = self._producer(place), set[int]()
            first = producer.last_sequence_id() + 1
            self._history.write("resumed", topic=place["topic"], producer=place["producer"], seq=first)
            ends_clean = self._stopping.is_set() or random.random() < 0.5
            # The last one resends possibly lost messages and sends nothing new.
            end = sent if self._stopping.is_set() else first + random.randrange(1, LIFE_MESSAGES)
            for seq in range(first, end) if self._stopping.is_set() else self._paced(range(first, end)):
                self._send(producer, place, seq, pending, sequence_id=seq)
                sent = max(sent, seq + 1)
            while pending and ends_clean:
                time.sleep(0.01)
            insist(producer.close)

    def _paced(self, numbers: Iterable[int]) -> Iterator[int]:
        """Yield the numbers at the plan's rate until the run stops."""
        begin = time.monotonic()
        for count, seq in enumerate(numbers):
            if self._stopping.wait(max(0.0, begin + count / self._plan["rate"] - time.monotonic())):
                return
            yield seq

    def _send(self, producer: Any, place: Place, seq: int, pending: set[int], **options: int) -> None:
        name = {"topic": place["topic"], "producer": place["producer"]}
        self._history.write("sent", **name, seq=seq, due=options.get("deliver_at", 0))
        pending.add(seq)

        def receipted(result: Any, message_id: Any) -> None:
            if result == pulsar.Result.Ok:
                self._history.write("receipted", **name, seq=seq, id=id_of(message_id))
            else:
                self._history.write("failed", **name, seq=seq, error=str(result))
            pending.discard(seq)

        producer.send_async(payload(place["producer"], seq), receipted, **options)

    def _consume(self, place: Place, number: int) -> None:
        """Consume some hundred messages, then replace the consumer by a new one of the same subscription."""
        while not self._drained.is_set():
            consumer_name = f"{place['subscription']}-{number}-{next(self._generations)}"
            consumer = self._open(place, consumer_name)
            taken = 0
            while taken < 300 + 100 * number and not self._drained.is_set():
                message = next_message(consumer, 0.2)
                if message is None:
                    continue
                taken += 1
                self._last_received = time.monotonic()
                self._received("received", place, consumer_name, message)
                acknowledge(consumer, message)
            insist(consumer.close)

    def _take(self, place: Place, consumer_name: str, kind: str) -> None:
        consumer = self._open(place, consumer_name)
        last = time.monotonic()
        while time.monotonic() - last < GIVE_UP_SECONDS:
            message = next_message(consumer, 0.2)
            if message is not None:
                last = time.monotonic()
                self._received(kind, place, consumer_name, message)
                acknowledge(consumer, message)
            elif self._is_empty(place):
                break
        insist(consumer.close)

    def _is_empty(self, place: Place) -> bool:
        """Return whether the broker reports an empty backlog for a subscription."""
        path = f"{place['topic'].replace('://', '/')}/stats?getPreciseBacklog=true"
        try:
            with urllib.request.urlopen(f"{self._plan['web_url']}/admin/v2/{path}", timeout=60) as answer:
                told = json.load(answer)
        except OSError:
            return False
        return bool(told["subscriptions"][place["subscription"]]["msgBacklog"] == 0)

    def _open(self, place: Place, consumer_name: str) -> Any:
        shared = pulsar.ConsumerType.Shared if place.get("shared") else pulsar.ConsumerType.Exclusive
        consumer = insist(
            lambda: self._client.subscribe(
                place["topic"],
                place["subscription"],
                shared,
                consumer_name=consumer_name,
                receiver_queue_size=self._plan["queue"],
                initial_position=pulsar.InitialPosition.Earliest,
                batch_index_ack_enabled=True,
            )
        )
        self._history.write("opened", topic=place["topic"], subscription=place["subscription"], consumer=consumer_name)
        return consumer

    def _received(self, kind: str, place: Place, consumer_name: str, message: Any) -> None:
        producer, seq = message.data().decode().split(" ", 2)[:2]
        self._history.write(
            kind,
            topic=place["topic"],
            subscription=place["subscription"],
            consumer=consumer_name,
            producer=producer,
            seq=int(seq),
            id=id_of(message.message_id()),
            damaged=message.data() != payload(producer, int(seq)),
        )


def insist(attempt: Callable[[], Any]) -> Any:
    """Retry until the attempt succeeds: the broker may be down at any moment."""
    while True:
        try:
            return attempt()
        except pulsar.AlreadyClosed:
            return None
        except TROUBLE as error:
            print(f"crash: trying again: {error}", file=sys.stderr)
            time.sleep(0.1)


def next_message(consumer: Any, seconds: float) -> Any:
    try:
        return consumer.receive(timeout_millis=int(seconds * 1000))
    except TROUBLE:
        return None


def acknowledge(consumer: Any, message: Any) -> None:
    try:
        consumer.acknowledge(message)
    except TROUBLE as error:  # the message is redelivered
        print(f"crash: not acknowledged: {error}", file=sys.stderr)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("-plan", type=Path)
    parser.add_argument("-history", type=Path)
    arguments = parser.parse_args()
    # The client logs to stdout, which carries the answers.
    answers_to = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    with arguments.history.open("w") as out:
        worker = Worker(json.loads(arguments.plan.read_text()), History(out))
        worker.run()
        print("running", file=answers_to, flush=True)
        answers = {"drain": (worker.drain, "drained"), "audit": (worker.audit, "audited")}
        for line in sys.stdin:
            obey, answer = answers[line.strip()]
            obey()
            print(answer, file=answers_to, flush=True)
        worker.close()


if __name__ == "__main__":
    main()
