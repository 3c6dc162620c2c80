"""Loads of the official client: number of messages, messages per entry, and timing."""

import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pulsar

from tests.differences.broker import Broker, path_of

EARLIEST: Final = pulsar.InitialPosition.Earliest
KINDS: Final = {
    "Exclusive": pulsar.ConsumerType.Exclusive,
    "Failover": pulsar.ConsumerType.Failover,
    "Shared": pulsar.ConsumerType.Shared,
    "Key_Shared": pulsar.ConsumerType.KeyShared,
}
FIRST_SECONDS: Final = 5.0
"""Longest wait for the first message, in seconds."""


def told(act: Callable[[], Any]) -> str:
    """Return the outcome of a call: "done", or the class of the client's exception."""
    try:
        act()
    except pulsar.PulsarException as error:
        return type(error).__name__
    return "done"


def publish(broker: Broker, topic: str, count: int, *, batch: int = 0, size: int = 0, start: int = 0) -> None:
    """Publish messages from ``m<start>`` on, ``batch`` to an entry, of at least ``size`` bytes; return once they are
    stored.

    Messages that the broker rejects are missing from later observations.
    """
    options: dict[str, Any] = {"batching_enabled": False}
    if batch:
        options = {
            "batching_enabled": True,
            "batching_max_messages": batch,
            "batching_max_publish_delay_ms": 60_000,
            "batching_max_allowed_size_in_bytes": 4 << 20,
        }
    with contextlib.suppress(pulsar.PulsarException):
        producer = broker.client().create_producer(topic, **options)
        for number in range(start, start + count):
            producer.send_async(f"m{number}".encode().ljust(size), lambda *_: None)
        producer.flush()
        producer.close()


def said(message: Any) -> str:
    """Return the payload's text without its padding."""
    return str(message.data().decode().rstrip())


def drained(consumer: Any, seconds: float = 0.6, most: int = 10_000) -> list[str]:
    """Return the received messages until the silence lasts long enough. Works for consumers and readers."""
    got: list[str] = []
    receive = getattr(consumer, "receive", None) or consumer.read_next
    try:
        while len(got) < most:
            got.append(said(receive(timeout_millis=int((seconds if got else seconds + 1) * 1000))))
    except pulsar.Timeout:
        pass
    return got


def read(broker: Broker, topic: str) -> list[str]:
    """Return the messages of a reader that starts at the earliest message."""
    reader = broker.client().create_reader(topic, pulsar.MessageId.earliest)
    got = drained(reader, 0.6 * broker.patience)
    reader.close()
    return got


def span(texts: Sequence[str]) -> str:
    """Summarize messages as their count, first and last."""
    return f"{len(texts)}: {texts[0]}..{texts[-1]}" if texts else "none"


@dataclass
class Arrivals:
    """Consumers that acknowledge at once, and the arrival time of each message."""

    broker: Broker
    instants: list[float] = field(default_factory=list)
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def subscribe(self, topic: str, sub: str = "s", kind: str = "Shared", **options: Any) -> Any:
        """Add a consumer that starts at the earliest message; its messages are recorded with the others."""

        def came(consumer: Any, message: Any) -> None:
            self.came()
            consumer.acknowledge(message)

        return self.broker.client().subscribe(
            topic, sub, consumer_type=KINDS[kind], initial_position=EARLIEST, message_listener=came, **options
        )

    def came(self) -> None:
        """Record an arrival at the current time."""
        with self._changed:
            self.instants.append(time.monotonic())
            self._changed.notify_all()

    def pace(self, rate: int) -> dict[str, Any]:
        """Return whether the arrival counts, at first and later, match ``rate`` per second.

        The start of a rate period is unknown, so the first moment may contain the quota of two periods.
        """
        found = list(self.counts(0.3, 0.5, 3.5).values())
        return {
            "at once": rate <= found[0] <= 2 * rate,
            "then, in rates a second": round((found[2] - found[1]) / (3 * rate)),
        }

    def counts(self, *seconds: float) -> dict[str, int]:
        """Wait, and return the number of arrivals by each of the given seconds after the first arrival."""
        with self._changed:
            self._changed.wait_for(lambda: bool(self.instants), FIRST_SECONDS * self.broker.patience)
            begin = self.instants[0] if self.instants else time.monotonic()
        made = {}
        for each in seconds:
            time.sleep(max(0.0, begin + each * min(1.0, self.broker.patience) - time.monotonic()))
            with self._changed:
                made[f"by {each:g} s"] = sum(instant <= begin + each for instant in self.instants)
        return made


def made_with(broker: Broker, topic: str, *subs: str) -> str:
    """Create the topic with durable subscriptions at its earliest position, and return it."""
    broker.admin("PUT", path_of(topic))
    for sub in subs:
        broker.admin("PUT", f"{path_of(topic)}/subscription/{sub}")
    return topic


def policy(broker: Broker, topic: str, word: str, value: Any) -> None:
    """Set a policy of a topic, and wait until the broker applies it."""
    broker.admin("POST", f"{path_of(topic)}/{word}", value)
    broker.settle(1.0)
