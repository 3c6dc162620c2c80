"""Some messages as columns: lists of what Arrow takes fastest."""

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
"""What may be asked for: names of lists of ``Messages``."""


@dataclass(slots=True)
class Properties:
    """The properties of many messages, as UTF-8. A name that comes twice in a message stands once, with its last
    value."""

    counts: list[int] = field(default_factory=list)
    """How many each message has."""
    names: list[bytes] = field(default_factory=list)
    values: list[bytes] = field(default_factory=list)

    def add(self, names: list[bytes], values: list[bytes]) -> None:
        """Those of one more message."""
        if len(names) > 1:
            last = dict(zip(names, values, strict=True))
            names, values = list(last), list(last.values())
        self.counts.append(len(names))
        self.names += names
        self.values += values

    def add_many(self, counts: list[int], names: list[bytes], values: list[bytes]) -> None:
        """Those of some more messages, one behind the other."""
        if max(counts, default=0) > 1:
            for end, count in zip(accumulate(counts), counts, strict=True):
                self.add(names[end - count : end], values[end - count : end])
            return
        self.counts += counts
        self.names += names
        self.values += values

    def pairs(self) -> list[list[tuple[str, str]]]:
        """Those of each message: names and values."""
        every = [(text(name), text(value)) for name, value in zip(self.names, self.values, strict=True)]
        ends = accumulate(self.counts)
        return [every[end - count : end] for end, count in zip(ends, self.counts, strict=True)]


@dataclass(slots=True)
class Cuts:
    """Bytes that stand in one piece of memory, with gaps between them."""

    data: bytes
    places: list[int]
    """Two each, ascending: where it begins and where it ends."""

    def all(self) -> list[bytes]:
        """Each of them."""
        data, ends = self.data, iter(self.places)
        return [data[begin:end] for begin, end in zip(ends, ends, strict=True)]


@dataclass(slots=True)
class Messages:
    """Some messages, those of each topic in order: lists of ``rows`` values each, empty where a column was not asked
    for."""

    topic: str
    """Full name, of a partition its own. Empty where they are ``of`` several."""
    partition: int
    """-1 where it is none."""
    rows: int = 0
    of: list[int] = field(default_factory=list)
    """Where they are of several topics: which one's, as its place in ``topics``."""
    topics: Sequence[tuple[str, int]] = ()
    """Names and partitions."""
    cuts: Cuts | None = None
    """The payloads, where ``payload`` does not have them and none is null."""
    payload: list[bytes | None] = field(default_factory=list)
    """None is a null value. Decompressed; of encrypted messages as it came."""
    key: list[bytes | None] = field(default_factory=list)
    """As bytes: of a key in base64 what it means."""
    ordering_key: list[bytes | None] = field(default_factory=list)
    message_id: list[bytes] = field(default_factory=list)
    """MessageIdData in protobuf, as the clients of Pulsar write an id."""
    ledger: list[int] = field(default_factory=list)
    entry: list[int] = field(default_factory=list)
    batch: list[int | None] = field(default_factory=list)
    """The index in its batch, None where it is in none."""
    publish_time: list[int] = field(default_factory=list)
    """Milliseconds since 1970."""
    event_time: list[int | None] = field(default_factory=list)
    """The same; None where it has none."""
    properties: Properties = field(default_factory=Properties)
    producer_name: list[str] = field(default_factory=list)
    sequence_id: list[int] = field(default_factory=list)
    schema_version: list[bytes | None] = field(default_factory=list)
    encryption: list[bytes | None] = field(default_factory=list)
    """MessageMetadata in Protobuf of what a client has encrypted: without it nobody can read the payload; else None."""

    def payloads(self) -> list[bytes | None]:
        """The payload of each, wherever it is."""
        if self.cuts is not None:
            self.payload, self.cuts = list(self.cuts.all()), None
        return self.payload

    def name_of(self, topic: int) -> str:
        """A topic by its place in ``topics``; the only one by -1."""
        return self.topics[topic][0] if topic >= 0 else self.topic


def varint(number: int) -> bytes:
    """A number as Protobuf writes it."""
    if number < 0x80:
        return b"%c" % number
    parts = bytearray()
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    parts.append(number)
    return bytes(parts)


def unpacked_key(key: bytes) -> bytes:
    """What a key means that is marked as base64; itself where it is none."""
    try:
        return b64decode(key, validate=True)
    except NotBase64:
        return key


def text(value: str | bytes) -> str:
    """What should be UTF-8."""
    return value if isinstance(value, str) else value.decode("utf-8", "replace")


def utf8(value: str | bytes) -> bytes:
    """Text that may be none."""
    return value.encode() if isinstance(value, str) else value
