"""Messages in columns: lists of the values that Arrow converts fastest."""

from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final

COLUMNS: Final = frozenset(
    {
        "payload", "key", "ordering_key", "message_id", "ledger", "entry", "batch", "publish_time", "event_time",
        "properties", "producer_name", "sequence_id", "schema_version", "encryption",
    }
)  # fmt: skip
"""Columns that a caller may request: names of lists of ``Messages``."""


@dataclass(slots=True)
class Properties:
    """Properties of many messages, as UTF-8. Of a name repeated within a message, the last value counts."""

    counts: list[int] = field(default_factory=list)
    """Number of properties of each message."""
    names: list[bytes] = field(default_factory=list)
    values: list[bytes] = field(default_factory=list)

    def add(self, names: list[bytes], values: list[bytes]) -> None:
        """Append the properties of one message."""
        if len(names) > 1:
            last = dict(zip(names, values, strict=True))
            names, values = list(last), list(last.values())
        self.counts.append(len(names))
        self.names += names
        self.values += values

    def add_many(self, counts: list[int], names: list[bytes], values: list[bytes]) -> None:
        """Append the properties of several messages, given as flat lists."""
        if max(counts, default=0) > 1:
            for end, count in zip(accumulate(counts), counts, strict=True):
                self.add(names[end - count : end], values[end - count : end])
            return
        self.counts += counts
        self.names += names
        self.values += values

    def pairs(self) -> list[list[tuple[str, str]]]:
        """Return the names and values of each message."""
        every = [(text(name), text(value)) for name, value in zip(self.names, self.values, strict=True)]
        ends = accumulate(self.counts)
        return [every[end - count : end] for end, count in zip(ends, self.counts, strict=True)]


@dataclass(slots=True)
class Cuts:
    """Slices of one buffer, with gaps between them."""

    data: bytes
    places: list[int]
    """Two per slice, ascending: its start and its end."""

    def all(self) -> list[bytes]:
        """Return each slice."""
        data, ends = self.data, iter(self.places)
        return [data[begin:end] for begin, end in zip(ends, ends, strict=True)]


@dataclass(slots=True)
class Messages:
    """Messages in order per topic: lists of ``rows`` values each, empty for columns that were not requested."""

    topic: str
    """Full name; of a partitioned topic, that of the partition. Empty if the rows are of several topics."""
    partition: int
    """-1 if not partitioned."""
    rows: int = 0
    of: list[int] = field(default_factory=list)
    """For rows of several topics: the index of each row's topic in ``topics``."""
    topics: Sequence[tuple[str, int]] = ()
    """Names and partitions."""
    cuts: Cuts | None = None
    """The payloads, if ``payload`` is empty and none is null."""
    payload: list[bytes | None] = field(default_factory=list)
    """None is a null value. Decompressed, unless encrypted."""
    key: list[bytes | None] = field(default_factory=list)
    """Raw bytes; base64 keys are decoded."""
    ordering_key: list[bytes | None] = field(default_factory=list)
    message_id: list[bytes] = field(default_factory=list)
    """MessageIdData in Protobuf, as Pulsar's clients serialize an ID."""
    ledger: list[int] = field(default_factory=list)
    entry: list[int] = field(default_factory=list)
    batch: list[int | None] = field(default_factory=list)
    """Index in the batch; None if not batched."""
    publish_time: list[int] = field(default_factory=list)
    """Milliseconds since 1970."""
    event_time: list[int | None] = field(default_factory=list)
    """Milliseconds since 1970; None if not set."""
    properties: Properties = field(default_factory=Properties)
    producer_name: list[str] = field(default_factory=list)
    sequence_id: list[int] = field(default_factory=list)
    schema_version: list[bytes | None] = field(default_factory=list)
    encryption: list[bytes | None] = field(default_factory=list)
    """Serialized MessageMetadata of a message encrypted by its client, needed to decrypt the payload; else None."""

    def payloads(self) -> list[bytes | None]:
        """Return the payloads, copied out of ``cuts`` on first use."""
        if self.cuts is not None:
            self.payload, self.cuts = list(self.cuts.all()), None
        return self.payload

    def name_of(self, topic: int) -> str:
        """Return the name of a topic by its index in ``topics``; -1 is the only topic."""
        return self.topics[topic][0] if topic >= 0 else self.topic


def varint(number: int) -> bytes:
    """Encode a number as a Protobuf varint."""
    if number < 0x80:
        return b"%c" % number
    parts = bytearray()
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    parts.append(number)
    return bytes(parts)


def unpacked_key(key: bytes) -> bytes:
    """Decode a key that is marked as base64; returned unchanged if it is not."""
    try:
        return b64decode(key, validate=True)
    except NotBase64:
        return key


def text(value: str | bytes) -> str:
    """Decode UTF-8 leniently."""
    return value if isinstance(value, str) else value.decode("utf-8", "replace")


def utf8(value: str | bytes) -> bytes:
    """Encode text as UTF-8; bytes pass through, valid or not."""
    return value.encode() if isinstance(value, str) else value
