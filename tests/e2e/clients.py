"""Shared helpers for the official Python client."""

import time
from collections.abc import Callable
from typing import Any, Final

import pulsar
import pytest

# Long enough for a machine that is busy with ten other tasks; successful tests never wait this long.
PATIENCE_MS: Final = 60_000
PATIENCE_SECONDS: Final = PATIENCE_MS // 1000
# Duration of silence that proves that nothing arrives. Short, because every such test waits for all of it.
QUIET_MS: Final = 300

EARLIEST: Final = pulsar.InitialPosition.Earliest
CODECS: Final = {
    "none": pulsar.CompressionType.NONE,
    "lz4": pulsar.CompressionType.LZ4,
    "zlib": pulsar.CompressionType.ZLib,
    "zstd": pulsar.CompressionType.ZSTD,
    "snappy": pulsar.CompressionType.SNAPPY,
}


def not_yet(reason: str) -> pytest.MarkDecorator:
    """Mark a Pulsar feature that this version lacks. Not strict: an implementation need not remove the mark."""
    return pytest.mark.xfail(reason=reason, strict=False)


def connect(url: str, **options: Any) -> Any:
    """Return a client that logs errors only."""
    options = {"operation_timeout_seconds": PATIENCE_SECONDS} | options
    return pulsar.Client(url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error), **options)


def receive(consumer: Any) -> Any:
    return consumer.receive(timeout_millis=PATIENCE_MS)


def take(consumer: Any, count: int) -> list[bytes]:
    """Acknowledge the next ``count`` messages and return their payloads."""
    payloads = []
    for _ in range(count):
        message = receive(consumer)
        payloads.append(message.data())
        consumer.acknowledge(message)
    return payloads


def read(reader: Any, count: int) -> list[bytes]:
    return [reader.read_next(timeout_millis=PATIENCE_MS).data() for _ in range(count)]


def read_to_end(reader: Any) -> list[bytes]:
    payloads = []
    while reader.has_message_available():
        payloads += read(reader, 1)
    return payloads


def left(client: Any, topic: str, name: str, count: int) -> list[bytes]:
    """Return the unacknowledged messages of a subscription: wait for ``count``, then for further messages briefly."""
    consumer = client.subscribe(topic, name, initial_position=EARLIEST)
    found = [receive(consumer).data() for _ in range(count)]
    try:
        while True:
            found.append(consumer.receive(timeout_millis=QUIET_MS).data())
    except pulsar.Timeout:
        return found
    finally:
        consumer.close()


def is_quiet(consumer: Any) -> bool:
    """Return whether nothing arrives for a while."""
    try:
        consumer.receive(timeout_millis=QUIET_MS)
    except pulsar.Timeout:
        return True
    return False


def numbered(count: int, start: int = 0) -> list[bytes]:
    return [b"%d" % number for number in range(start, start + count)]


def send_all(producer: Any, payloads: list[bytes]) -> list[Any]:
    """Publish without waiting in between; return the message IDs of the receipts, in the order of ``payloads``."""
    ids: dict[int, Any] = {}
    failed: list[Any] = []

    def receipt_of(number: int) -> Callable[[Any, Any], None]:
        def receipted(result: Any, message_id: Any) -> None:
            ids[number] = message_id
            if result != pulsar.Result.Ok:
                failed.append(result)

        return receipted

    for number, payload in enumerate(payloads):
        producer.send_async(payload, receipt_of(number))
    producer.flush()
    until(lambda: len(ids) == len(payloads))
    assert failed == []
    return [ids[number] for number in range(len(payloads))]


def until(condition: Callable[[], object], seconds: float = PATIENCE_SECONDS) -> None:
    """Return as soon as ``condition`` holds; fail on timeout."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "did not come true in time"
        time.sleep(0.01)


def admin_path(topic: str) -> str:
    return topic.replace("://", "/")
