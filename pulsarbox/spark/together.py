"""Entries to columns many at a time, where nothing about them is special. What is, is opened one by one (``messages``).

Of a batch, each message stands behind the one before: a look at its metadata, by hand, finds where it ends. What
Protobuf says of all metadata afterwards has to be the same, else nothing is taken.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import chain, repeat
from struct import Struct
from struct import error as error_of_struct
from typing import Any, Final, NamedTuple

from pulsarbox.plugins.compression.wire import CodecMissing, NotUnpacked, decompress
from pulsarbox.protocol.commands import MAGIC
from pulsarbox.protocol.PulsarApi_pb2 import KeyValue, MessageMetadata, SingleMessageMetadata
from pulsarbox.spark.access import Entry
from pulsarbox.spark.columns import Columns, Lists, Many, many
from pulsarbox.spark.lists import Messages, text, unpacked_key, varint

UNPACKED_MAX: Final = 4 << 20
"""Bytes of what is decompressed together."""

_frame: Final = Struct(">2s4xI").unpack_from
_u32: Final = Struct(">I").unpack_from
_PAYLOAD_SIZE: Final = 3 << 3
"""The tag of SingleMessageMetadata.payload_size."""
_OWN: Final[dict[str, tuple[str, ...]]] = {"key": ("partition_key",), "properties": ()}
_OWN_SELDOM: Final[dict[str, tuple[str, ...]]] = {
    "key": ("partition_key_b64_encoded",), "ordering_key": ("ordering_key",), "event_time": ("event_time",),
}  # fmt: skip
"""Fields of a message alone, or of one in a batch, for each column."""
_SPECIAL: Final = ("num_chunks_from_msg", "encryption_keys")
_ENTRY_SELDOM: Final = ("null_value", "compression", "uncompressed_size", "num_messages_in_batch", *_SPECIAL)


class _Opened(NamedTuple):
    """Messages in the order of their rows."""

    payloads: list[bytes]
    own: Columns
    """What each says itself."""
    properties: Lists
    entry: Columns
    """What its entry says, for each row."""
    indexes: list[int | None]
    ids: list[bytes]


class Together:
    """Opens entries of one topic with some columns."""

    def __init__(self, partition: int, wanted: frozenset[str]) -> None:
        self._wanted = wanted
        self._with_ids = "message_id" in wanted
        self._tail = b"\x18" + varint(partition) if partition >= 0 else b""
        entry_each = ("publish_time", *(name for name in ("producer_name", "sequence_id") if name in wanted))
        entry_seldom = (*_ENTRY_SELDOM, *(("schema_version",) if "schema_version" in wanted else ()))
        own = _named(_OWN, wanted)
        seldom = _named(_OWN_SELDOM, wanted)
        lists = "properties" if "properties" in wanted else ""
        self._alone: Many = many(MessageMetadata, (*entry_each, *own), (*entry_seldom, *seldom), lists)
        of_batch = ("null_value", *(("sequence_id",) if "sequence_id" in wanted else ()), *seldom)
        self._in_batch: Many = many(SingleMessageMetadata, ("payload_size", *own), of_batch, lists)
        self._pair: Many = many(KeyValue, ("key", "value"))

    def add(self, entries: Sequence[Entry], made: Messages) -> int | None:
        """Add what these say to ``made``; how many bytes of payloads that were. None, and nothing is added, where one
        of them is special or not what it should be."""
        stored = [entry[2] for entry in entries]
        try:
            frames = [_frame(each) for each in stored]
        except error_of_struct:
            return None
        metadata = [each[10 : 10 + size] for each, (_, size) in zip(stored, frames, strict=True)]
        if any(magic != MAGIC or len(each) != size for each, (magic, size) in zip(metadata, frames, strict=True)):
            return None
        found = self._alone.columns(metadata)
        if found is None or any(name in found[0] for name in _SPECIAL):
            return None
        columns, properties = found
        bodies = _unpacked([each[10 + size :] for each, (_, size) in zip(stored, frames, strict=True)], columns)
        counts = columns.get("num_messages_in_batch")
        if bodies is None:
            return None
        ids = self._prefixes(entries) if self._with_ids else []
        if counts is None:
            opened = _Opened(bodies, columns, properties, columns, [None] * len(entries), ids)
            return self._add(opened, [1] * len(entries), entries, made)
        return self._add_batches(bodies, counts, columns, ids, entries, made)

    def _add_batches(
        self,
        bodies: list[bytes],
        counts: list[Any],
        columns: Columns,
        prefixes: list[bytes],
        entries: Sequence[Entry],
        made: Messages,
    ) -> int | None:
        singles: list[bytes] = []
        payloads: list[bytes] = []
        try:
            for body, count in zip(bodies, counts, strict=True):
                _take_apart(body, count, singles, payloads)
        except (IndexError, TypeError, ValueError, error_of_struct):  # not what a batch is; None where one is alone
            return None
        found = self._in_batch.columns(singles)
        if found is None or found[0]["payload_size"] != list(map(len, payloads)):
            return None
        own, properties = found
        ids: list[bytes] = []
        if self._with_ids:
            for prefix, count in zip(prefixes, counts, strict=True):
                ids += [prefix + tail for tail in _tails(count)]
        indexes: list[int | None] = [index for count in counts for index in range(count)]
        of_entry = {name: _each(column, counts) for name, column in columns.items() if name in _PER_ENTRY}
        return self._add(_Opened(payloads, own, properties, of_entry, indexes, ids), counts, entries, made)

    def _add(self, opened: _Opened, counts: list[int], entries: Sequence[Entry], made: Messages) -> int | None:
        if "properties" in self._wanted and not self._add_properties(opened.properties, made):
            return None
        made.rows += len(opened.payloads)
        if self._with_ids:
            made.message_id += opened.ids
        if "ledger" in self._wanted:
            made.ledger += _each([entry[0] for entry in entries], counts)
        if "entry" in self._wanted:
            made.entry += _each([entry[1] for entry in entries], counts)
        for name, make in _MAKERS.items():
            if name in self._wanted:
                column: list[Any] = getattr(made, name)
                column += make(opened)
        return sum(map(len, opened.payloads))

    def _add_properties(self, properties: Lists, made: Messages) -> bool:
        found = self._pair.columns(properties.values)
        if found is None:
            return False
        columns, _ = found
        made.properties.add_many(properties.counts, columns["key"], columns["value"])
        return True

    def _prefixes(self, entries: Sequence[Entry]) -> list[bytes]:
        """The ids of entries, as clients write them."""
        found: list[bytes] = []
        begin = 0
        while begin < len(entries):  # those of one ledger whose numbers differ in the lowest seven bits only
            ledger, entry, _ = entries[begin]
            head = b"\x08" + varint(ledger) + b"\x10"
            high = entry >> 7
            rest = (varint(high) if high else b"") + self._tail
            low = _LOW_MORE if high else _LOW
            end = begin
            while end < len(entries) and entries[end][1] >> 7 == high and entries[end][0] == ledger:
                end += 1
            found += [head + low[each[1] & 0x7F] + rest for each in entries[begin:end]]
            begin = end
        return found


_LOW: Final = tuple(b"%c" % number for number in range(0x80))
_LOW_MORE: Final = tuple(b"%c" % (number | 0x80) for number in range(0x80))
"""The lowest seven bits of a varint, where nothing follows and where there are more."""


def _named(fields: dict[str, tuple[str, ...]], wanted: frozenset[str]) -> tuple[str, ...]:
    return tuple(chain.from_iterable(names for column, names in fields.items() if column in wanted))


def _unpacked(bodies: list[bytes], columns: Columns) -> list[bytes] | None:
    """The same decompressed; None where one cannot be, or all are too much at once."""
    codecs = columns.get("compression")
    if codecs is None:
        return bodies
    sizes = columns.get("uncompressed_size") or [0] * len(bodies)
    if sum(size or 0 for size in sizes) > UNPACKED_MAX:
        return None
    try:
        return [
            decompress(codec, body, size or 0) if codec else body
            for codec, body, size in zip(codecs, bodies, sizes, strict=True)
        ]
    except (CodecMissing, NotUnpacked):
        return None


def _take_apart(body: bytes, count: int, singles: list[bytes], payloads: list[bytes]) -> None:
    """Add the metadata and the payloads of a batch, where these seem to end. Raises IndexError, ValueError,
    TypeError, struct.error."""
    at = likely = 0
    for _ in range(count):
        start = at + 4
        end = start + _u32(body, at)[0]
        scan = start + likely  # where it was in the one before
        if scan >= end or body[scan] != _PAYLOAD_SIZE:
            scan = start
            while (tag := body[scan]) != _PAYLOAD_SIZE:
                # a short field of bytes, as all are that clients write before it
                if tag & 0x87 != 2 or (length := body[scan + 1]) > 0x7F:
                    raise ValueError("unusual")
                scan += 2 + length
            likely = scan - start
        size = body[scan + 1]
        if size > 0x7F:
            more = body[scan + 2]
            size = size & 0x7F | (more & 0x7F) << 7
            if more > 0x7F:
                size |= _rest(body, scan + 3) << 14
        at = end + size
        if at > len(body):
            raise ValueError("it ends before its batch does")
        singles.append(body[start:end])
        payloads.append(body[end:at])


def _rest(body: bytes, at: int) -> int:
    """A varint of a few bytes."""
    found = 0
    for shift in range(0, 28, 7):
        byte = body[at]
        found |= (byte & 0x7F) << shift
        if byte < 0x80:
            return found
        at += 1
    raise ValueError("no size")


@lru_cache(maxsize=64)
def _tails(count: int) -> list[bytes]:
    """What follows the id of an entry in those of its messages."""
    size = b"\x30" + varint(count)
    return [b"\x20" + varint(index) + size for index in range(count)]


def _each(values: Iterable[Any], counts: list[int]) -> list[Any]:
    """What is of an entry, for each of its rows."""
    return list(chain.from_iterable(map(repeat, values, counts)))


# Columns --------------------------------------------------------------------------------------------------------------


def _payloads(opened: _Opened) -> list[bytes | None]:
    nulls = opened.own.get("null_value")
    if nulls is None:
        return list(opened.payloads)
    return [None if null else payload for null, payload in zip(nulls, opened.payloads, strict=True)]


def _keys(opened: _Opened) -> list[bytes | None]:
    keys: list[bytes | None] = opened.own["partition_key"]
    packed = opened.own.get("partition_key_b64_encoded")
    if packed is None:
        return keys
    return [unpacked_key(key) if is_packed and key else key for key, is_packed in zip(keys, packed, strict=True)]


def _event_times(opened: _Opened) -> list[int | None]:
    times = opened.own.get("event_time")
    return [None] * len(opened.payloads) if times is None else [time or None for time in times]


def _producers(opened: _Opened) -> list[str]:
    names = opened.entry["producer_name"]
    known = {name: text(name) for name in set(names)}
    return [known[name] for name in names]


def _sequence_ids(opened: _Opened) -> list[int]:
    firsts: list[int] = opened.entry["sequence_id"]
    if opened.own is opened.entry:
        return firsts
    owns = opened.own.get("sequence_id") or repeat(None)
    return [
        first + (index or 0) if own is None else own
        for first, index, own in zip(firsts, opened.indexes, owns, strict=False)
    ]


def _or_none(opened: _Opened, columns: Columns, name: str) -> list[Any]:
    return columns.get(name) or [None] * len(opened.payloads)


_MAKERS: Final[dict[str, Callable[[_Opened], list[Any]]]] = {
    "payload": _payloads,
    "key": _keys,
    "ordering_key": lambda opened: _or_none(opened, opened.own, "ordering_key"),
    "batch": lambda opened: opened.indexes,
    "publish_time": lambda opened: opened.entry["publish_time"],
    "event_time": _event_times,
    "producer_name": _producers,
    "sequence_id": _sequence_ids,
    "schema_version": lambda opened: _or_none(opened, opened.entry, "schema_version"),
    "encryption": lambda opened: [None] * len(opened.payloads),
}
_PER_ENTRY: Final = ("publish_time", "producer_name", "sequence_id", "schema_version")
