"""Topics with a random history: batches, chunks, codecs, transactions, ledgers, trims, packed volumes, restarts."""

import random
import time
from collections.abc import Iterator
from typing import Any

import pulsar

from pulsarbox import PulsarBox
from tests.e2e.clients import CODECS, PATIENCE_SECONDS, connect
from tests.e2e.transacting import Transacting

SMALL: dict[str, Any] = {
    "journalVolumeSizeMbytes": 1,
    "journalCheckpointMbytes": 1,
    "journalMaxBatchMbytes": 1,
    "maxMessageSize": 20_000,
    "compressionAtRest": "zstd",
    "compressionAtRestCpuPercent": 100,
}

Row = tuple[bytes | None, bytes | None, tuple[tuple[str, str], ...], int, str, int, tuple[int, int]]
"""Payload, key, properties, event time, producer, publish time, ledger and entry."""


def row_of(message: Any) -> Row:
    """Return the values that the official client returns for a message."""
    key = message.partition_key()
    where = message.message_id()
    return (
        message.data(),
        key.encode() if key else None,
        tuple(sorted(message.properties().items())),
        message.event_timestamp(),
        message.producer_name(),
        message.publish_timestamp(),
        (where.ledger_id(), where.entry_id()),
    )


def truth(box: PulsarBox, topic: str) -> list[Row]:
    """Return all messages received by the official client's reader."""
    client = connect(box.service_url)
    reader = client.create_reader(topic, pulsar.MessageId.earliest)
    found = []
    while reader.has_message_available():
        found.append(row_of(reader.read_next(timeout_millis=PATIENCE_SECONDS * 1000)))
    client.close()
    return found


class History:
    """Random operations on one topic of a box."""

    def __init__(self, box: PulsarBox, topic: str, seed: int) -> None:
        self.box = box
        self.topic = topic
        self._dice = random.Random(seed)
        self._count = 0
        self._transacting: Transacting | None = None
        self._open: list[Any] = []

    def steps(self, count: int) -> Iterator[str]:
        """Run this many random operations, and yield a description of each."""
        names = ["singles", "batches", "chunks", "aborted", "committed", "left open", "filled", "trimmed", "restarted"]
        weights = [3, 4, 3, 2, 2, 1, 2, 1, 1]
        for name in self._dice.choices(names, weights, k=count):
            getattr(self, "_" + name.replace(" ", "_"))()
            yield name
        kept = self._open[-1:] if self._dice.random() < 0.3 else []
        for bits in self._open[: len(self._open) - len(kept)]:
            self._txn.end(bits, commit=self._dice.random() < 0.5)

    @property
    def _txn(self) -> Transacting:
        if self._transacting is None:
            self._transacting = Transacting(self.box.service_url, [f"persistent://public/default/{self.topic}"])
        return self._transacting

    def _body(self, size: int) -> bytes:
        self._count += 1
        return b"%d " % self._count + self._dice.choices((b"tea and salt ", b"\0\1"))[0] * (size // 13)

    def _send(self, count: int, size: int, **options: Any) -> None:
        dice = self._dice
        client = connect(self.box.service_url)
        codec = dice.choice(sorted(CODECS))
        producer = client.create_producer(self.topic, compression_type=CODECS[codec], **options)
        for _ in range(count):
            properties = {f"p{dice.randrange(3)}": str(at) for at in range(dice.randrange(3))}
            key = dice.choice((None, "k1", "k\u00e9"))
            producer.send_async(
                # The official client cannot decompress its own empty payload.
                b"" if codec != "zlib" and dice.random() < 0.05 else self._body(size),
                lambda *_: None,
                properties=properties,
                partition_key=key,
                event_timestamp=dice.choice((None, 1_700_000_000_000)),
            )
        producer.flush()
        client.close()

    def _singles(self) -> None:
        self._send(self._dice.randrange(1, 30), self._dice.randrange(500), batching_enabled=False)

    def _batches(self) -> None:
        self._send(self._dice.randrange(1, 60), self._dice.randrange(200), batching_enabled=True,
                   batching_max_messages=self._dice.randrange(2, 12), batching_max_publish_delay_ms=50)  # fmt: skip

    def _chunks(self) -> None:
        self._send(self._dice.randrange(1, 4), 60_000, batching_enabled=False, chunking_enabled=True)

    def _transaction(self) -> Any:
        bits = self._txn.begin()
        for _ in range(self._dice.randrange(1, 5)):
            self._txn.send(bits, f"persistent://public/default/{self.topic}", self._body(20))
        return bits

    def _aborted(self) -> None:
        self._txn.end(self._transaction(), commit=False)

    def _committed(self) -> None:
        self._txn.end(self._transaction(), commit=True)

    def _left_open(self) -> None:
        self._open.append(self._transaction())
        if self._dice.random() < 0.9:
            self._txn.end(self._open.pop(), commit=self._dice.random() < 0.5)

    def _filled(self) -> None:
        """Publish enough data to seal and pack volumes."""
        client = connect(self.box.service_url)
        producer = client.create_producer(f"{self.topic}-beside", batching_enabled=False)
        for _ in range(150):
            producer.send_async(self._body(15_000), lambda *_: None)
        producer.flush()
        client.close()

    def _trimmed(self) -> None:
        """Advance a subscription, so that the broker trims ledger by ledger."""
        client = connect(self.box.service_url)
        client.subscribe(self.topic, "s").close()
        client.close()
        count = self._dice.randrange(1, 20)
        self.box.admin("POST", f"/admin/v2/persistent/public/default/{self.topic}/subscription/s/skip/{count}")

    def _restarted(self) -> None:
        for bits in self._open:
            self._txn.end(bits, commit=True)
        self._open.clear()
        if self._transacting is not None:
            self._transacting.__exit__(None, None, None)
            self._transacting = None
        self.box.restart()

    def close(self) -> None:
        if self._transacting is not None:
            self._transacting.__exit__(None, None, None)


def wait_for_packing(box: PulsarBox) -> None:
    """Wait a limited time for a packed volume; packing is not guaranteed."""
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        rows = box.admin("GET", "/pulsarbox/v1/top/storage")["rows"]
        if any(row["state"] == "packed" for row in rows):
            return
        time.sleep(0.05)
