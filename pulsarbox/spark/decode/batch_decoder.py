"""Bulk decoding of ordinary entries into columns; ``entry_decoder`` decodes the others one by one.

A manual scan of each message's metadata in a batch finds where its payload ends. Protobuf then parses all metadata; if
its payload sizes differ, nothing is added.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import accumulate, chain, repeat
from operator import add, sub
from struct import Struct
from struct import error as error_of_struct
from typing import Any, Final, NamedTuple

from pulsarbox.plugins.compression.wire import CodecMissing, NotUnpacked, decompress
from pulsarbox.protocol.commands import MAGIC
from pulsarbox.protocol.PulsarApi_pb2 import KeyValue, MessageMetadata, SingleMessageMetadata
from pulsarbox.spark.access import Entry
from pulsarbox.spark.access.volume_blocks import FRAME_HEAD, Block
from pulsarbox.spark.decode.message_columns import Cuts, Messages, text, unpacked_key, varint
from pulsarbox.spark.decode.protobuf_columns import Columns, Lists, Many, many

UNPACKED_MAX: Final = 4 << 20
"""Bytes to decompress together at most."""
PAIRS_MAX: Final = 1 << 14
"""Entries of the property cache, at most _PAIR_BYTES each."""
_PAIR_BYTES: Final = 256
_NEW: Final = 4
"""If more than one property in this many is new, the cache is not used."""

_frame: Final = Struct(">2s4xI").unpack_from
_u32: Final = Struct(">I").unpack_from
_PAYLOAD_SIZE: Final = 3 << 3
"""Tag of SingleMessageMetadata.payload_size."""
_OWN: Final[dict[str, tuple[str, ...]]] = {"key": ("partition_key",), "properties": ()}
_OWN_SELDOM: Final[dict[str, tuple[str, ...]]] = {
    "key": ("partition_key_b64_encoded",), "ordering_key": ("ordering_key",), "event_time": ("event_time",),
}  # fmt: skip
"""Metadata fields of a message, single or batched, by column."""
_SPECIAL: Final = ("num_chunks_from_msg", "encryption_keys")
_ENTRY_SELDOM: Final = ("null_value", "compression", "uncompressed_size", "num_messages_in_batch", *_SPECIAL)


class _Entries(NamedTuple):
    """Entries in parallel lists."""

    bodies: Cuts
    metadata: list[bytes]
    ledgers: Iterable[int]
    """May be a one-shot iterable."""
    entries: list[int]


class _Opened(NamedTuple):
    """Messages in row order."""

    counts: list[int] | None
    """Number of messages per entry; None if no message is batched."""
    payloads: Cuts
    own: Columns
    """Fields of each message's own metadata."""
    properties: Lists
    entry: Columns
    """Fields of the entry's metadata, repeated for each row."""
    indexes: list[int | None]

    @property
    def rows(self) -> int:
        """The number of messages."""
        return len(self.indexes)

    def each(self, values: Iterable[Any]) -> list[Any]:
        """Repeat a value of each entry for each of its rows."""
        return list(values) if self.counts is None else _each(values, self.counts)


class BatchDecoder:
    """Bulk decoder of entries into some columns."""

    def __init__(self, wanted: frozenset[str]) -> None:
        self._wanted = wanted
        entry_each = ("publish_time", *(name for name in ("producer_name", "sequence_id") if name in wanted))
        entry_seldom = (*_ENTRY_SELDOM, *(("schema_version",) if "schema_version" in wanted else ()))
        own = _named(_OWN, wanted)
        seldom = _named(_OWN_SELDOM, wanted)
        lists = "properties" if "properties" in wanted else ""
        self._alone: Many = many(MessageMetadata, (*entry_each, *own), (*entry_seldom, *seldom), lists)
        of_batch = ("null_value", *(("sequence_id",) if "sequence_id" in wanted else ()), *seldom)
        self._in_batch: Many = many(SingleMessageMetadata, ("payload_size", *own), of_batch, lists)
        self._pairs = _Pairs()
        self._ledgers: Mapping[int, int] = {}
        self._heads: dict[int, bytes] = {}
        self._tails: dict[int, bytes] = {}
        """Prefixes and suffixes of message IDs in the previous block, by segment number."""

    def add(self, entries: Sequence[Entry], made: Messages) -> int | None:
        """Append entries of one topic to ``made`` and return their payload bytes. None, with nothing added, if an entry
        is special or malformed."""
        found = _parted(entries)
        opened = None if found is None else self._open(found)
        if found is None or opened is None:
            return None
        heads, tail = map(_heads.__getitem__, (entry[0] for entry in entries)), _tail(made.partition)
        if not self._fill(opened, found, heads, repeat(tail) if tail else None, made):
            return None
        if "payload" in self._wanted:
            made.payload += _with_nulls(opened)
        return sum(_sizes(opened.payloads))

    def block(self, block: Block, topics: Sequence[tuple[str, int]]) -> Messages | None:
        """Return the messages of a block; None as for ``add``. ``topics``: names and partitions by segment number."""
        ledgers = map(block.ledgers.__getitem__, block.numbers)
        found = _Entries(Cuts(block.data, block.bodies), block.metadata, ledgers, block.entries)
        opened = self._open(found)
        if opened is None:
            return None
        made = Messages("", -1, topics=topics)
        if block.ledgers is not self._ledgers:
            self._ledgers = block.ledgers
            self._heads = {number: _heads[ledger] for number, ledger in block.ledgers.items()}
            self._tails = {number: _tail(topics[number][1]) for number in block.ledgers}
        heads = map(self._heads.__getitem__, block.numbers)
        tails = map(self._tails.__getitem__, block.numbers) if any(self._tails.values()) else None
        if not self._fill(opened, found, heads, tails, made):
            return None
        made.of = block.numbers if opened.counts is None else _each(block.numbers, opened.counts)
        if "payload" in self._wanted and "null_value" in opened.own:
            made.payload = _with_nulls(opened)
        elif "payload" in self._wanted:
            made.cuts = opened.payloads
        return made

    def _open(self, entries: _Entries) -> _Opened | None:
        found = self._alone.columns(entries.metadata)
        if found is None or any(name in found[0] for name in _SPECIAL):
            return None
        columns, properties = found
        bodies = _unpacked(entries.bodies, columns)
        counts = columns.get("num_messages_in_batch")
        if bodies is None:
            return None
        if counts is None:
            return _Opened(None, bodies, columns, properties, columns, [None] * len(entries.entries))
        return self._open_batches(bodies, counts, columns)

    def _open_batches(self, bodies: Cuts, counts: list[Any], columns: Columns) -> _Opened | None:
        singles: list[bytes] = []
        payloads = Cuts(bodies.data, [])
        ends = iter(bodies.places)
        try:
            for begin, end, count in zip(ends, ends, counts, strict=True):
                _take_apart(bodies.data, begin, end, count, singles, payloads.places)
        except (IndexError, TypeError, ValueError, error_of_struct):  # malformed, or an unbatched entry
            return None
        found = self._in_batch.columns(singles)
        if found is None or found[0]["payload_size"] != _sizes(payloads):
            return None
        own, properties = found
        indexes: list[int | None] = [index for count in counts for index in range(count)]
        of_entry = {name: _each(column, counts) for name, column in columns.items() if name in _PER_ENTRY}
        return _Opened(counts, payloads, own, properties, of_entry, indexes)

    def _fill(
        self,
        opened: _Opened,
        found: _Entries,
        heads: Iterable[bytes],
        tails: Iterable[bytes] | None,
        made: Messages,
    ) -> bool:
        """Append all columns but payloads; ``heads`` and ``tails`` are the prefixes and suffixes of the entries' IDs.
        False, with nothing added, for malformed properties."""
        if "properties" in self._wanted:
            pairs = self._pairs.apart(opened.properties.values)
            if pairs is None:
                return False
            made.properties.add_many(opened.properties.counts, *pairs)
        made.rows += opened.rows
        if "message_id" in self._wanted:
            made.message_id += _ids(opened, map(add, heads, map(_numbers.__getitem__, found.entries)), tails)
        if "ledger" in self._wanted:
            made.ledger += opened.each(found.ledgers)
        if "entry" in self._wanted:
            made.entry += opened.each(found.entries)
        for name, make in _MAKERS.items():
            if name in self._wanted:
                column: list[Any] = getattr(made, name)
                column += make(opened)
        return True


class _Heads(dict[int, bytes]):
    """Prefix of a message ID, by ledger."""

    def __missing__(self, ledger: int) -> bytes:
        found = self[ledger] = b"\x08" + varint(ledger) + b"\x10"
        return found


class _Numbers(dict[int, bytes]):
    """Cache of varints, filled in runs of 128, as neighbouring numbers are usually needed too."""

    def __missing__(self, number: int) -> bytes:
        if len(self) > _NUMBERS_MAX:
            self.clear()
        first = number & ~0x7F
        if first:
            rest = varint(number >> 7)
            self.update((first + low, b"%c" % (low | 0x80) + rest) for low in range(0x80))
        else:
            self.update((low, b"%c" % low) for low in range(0x80))
        return self[number]


_NUMBERS_MAX: Final = 1 << 16
_heads: Final = _Heads()
_numbers: Final = _Numbers()


class _Pairs:
    """Parser of properties with a cache, since most repeat."""

    def __init__(self) -> None:
        self._many: Many = many(KeyValue, ("key", "value"))
        self._names: dict[bytes, bytes] = {}
        self._values: dict[bytes, bytes] = {}

    def apart(self, pairs: list[bytes]) -> tuple[list[bytes], list[bytes]] | None:
        """Return the names and values of serialized KeyValue messages; None if one is malformed."""
        for _ in range(2):
            with suppress(KeyError):
                return list(map(self._names.__getitem__, pairs)), list(map(self._values.__getitem__, pairs))
            new = list(set(pairs) - self._names.keys())
            if len(new) * _NEW > len(pairs) or max(map(len, new)) > _PAIR_BYTES or not self._learn(new):
                break
        found = self._many.columns(pairs)
        return None if found is None else (found[0]["key"], found[0]["value"])

    def _learn(self, new: list[bytes]) -> bool:
        found = self._many.columns(new)
        if found is None:
            return False
        if len(self._names) + len(new) > PAIRS_MAX:
            self._names.clear()
            self._values.clear()
            return False
        self._names.update(zip(new, found[0]["key"], strict=True))
        self._values.update(zip(new, found[0]["value"], strict=True))
        return True


def _ids(opened: _Opened, ids: Iterable[bytes], tails: Iterable[bytes] | None) -> list[bytes]:
    """Return the message IDs, as clients serialize them, from those of their entries."""
    if tails is not None:
        ids = map(add, ids, tails)
    if opened.counts is None:
        return list(ids)
    return [prefix + tail for prefix, count in zip(ids, opened.counts, strict=True) for tail in _tails(count)]


def _tail(partition: int) -> bytes:
    """Return the suffix of an entry's ID."""
    return b"\x18" + varint(partition) if partition >= 0 else b""


def _parted(entries: Sequence[Entry]) -> _Entries | None:
    """Split entries into metadata and bodies; None if one is malformed."""
    stored = [entry[2] for entry in entries]
    try:
        frames = [_frame(each) for each in stored]
    except error_of_struct:
        return None
    metadata = [each[FRAME_HEAD : FRAME_HEAD + size] for each, (_, size) in zip(stored, frames, strict=True)]
    if any(magic != MAGIC or len(each) != size for each, (magic, size) in zip(metadata, frames, strict=True)):
        return None
    ends = list(accumulate(map(len, stored)))
    places = [0] * (2 * len(ends))
    places[::2] = [
        end - len(each) + FRAME_HEAD + size for end, each, (_, size) in zip(ends, stored, frames, strict=True)
    ]
    places[1::2] = ends
    bodies = Cuts(b"".join(stored), places)
    return _Entries(bodies, metadata, [entry[0] for entry in entries], [entry[1] for entry in entries])


def _sizes(cuts: Cuts) -> list[int]:
    return list(map(sub, cuts.places[1::2], cuts.places[::2]))


def _named(fields: dict[str, tuple[str, ...]], wanted: frozenset[str]) -> tuple[str, ...]:
    return tuple(chain.from_iterable(names for column, names in fields.items() if column in wanted))


def _unpacked(bodies: Cuts, columns: Columns) -> Cuts | None:
    """Decompress the bodies; None if one fails, or if all exceed UNPACKED_MAX."""
    codecs = columns.get("compression")
    if codecs is None:
        return bodies
    packed = bodies.all()
    sizes = columns.get("uncompressed_size") or [0] * len(packed)
    if sum(size or 0 for size in sizes) > UNPACKED_MAX:
        return None
    try:
        found = [
            decompress(codec, body, size or 0) if codec else body
            for codec, body, size in zip(codecs, packed, sizes, strict=True)
        ]
    except (CodecMissing, NotUnpacked):
        return None
    ends = list(accumulate(map(len, found)))
    return Cuts(b"".join(found), [place for each in zip([0, *ends], ends, strict=False) for place in each])


def _take_apart(data: bytes, at: int, stop: int, count: int, singles: list[bytes], places: list[int]) -> None:
    """Append the metadata and the presumed payload bounds of a batch's messages. Raises IndexError, ValueError,
    TypeError, struct.error."""
    likely = 0
    for _ in range(count):
        start = at + 4
        end = start + _u32(data, at)[0]
        scan = start + likely  # same offset as in the previous message
        if scan >= end or data[scan] != _PAYLOAD_SIZE:
            scan = start
            while (tag := data[scan]) != _PAYLOAD_SIZE:
                # a short bytes field, as all fields that clients write before payload_size
                if tag & 0x87 != 2 or (length := data[scan + 1]) > 0x7F:
                    raise ValueError("unusual")
                scan += 2 + length
            likely = scan - start
        size = data[scan + 1]
        if size > 0x7F:
            more = data[scan + 2]
            size = size & 0x7F | (more & 0x7F) << 7
            if more > 0x7F:
                size |= _rest(data, scan + 3) << 14
        at = end + size
        if at > stop:
            raise ValueError("the batch is truncated")
        singles.append(data[start:end])
        places += (end, at)


def _rest(body: bytes, at: int) -> int:
    """Read a varint of at most four bytes."""
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
    """Return the suffixes of the message IDs in a batch of ``count``."""
    size = b"\x30" + varint(count)
    return [b"\x20" + varint(index) + size for index in range(count)]


def _each(values: Iterable[Any], counts: list[int]) -> list[Any]:
    """Repeat a value of each entry for each of its rows."""
    return list(chain.from_iterable(map(repeat, values, counts)))


# Columns --------------------------------------------------------------------------------------------------------------


def _with_nulls(opened: _Opened) -> list[bytes | None]:
    nulls, payloads = opened.own.get("null_value"), opened.payloads.all()
    if nulls is None:
        return list(payloads)
    return [None if null else payload for null, payload in zip(nulls, payloads, strict=True)]


def _keys(opened: _Opened) -> list[bytes | None]:
    keys: list[bytes | None] = opened.own["partition_key"]
    packed = opened.own.get("partition_key_b64_encoded")
    if packed is None:
        return keys
    return [unpacked_key(key) if is_packed and key else key for key, is_packed in zip(keys, packed, strict=True)]


def _event_times(opened: _Opened) -> list[int | None]:
    times = opened.own.get("event_time")
    return [None] * opened.rows if times is None else [time or None for time in times]


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
    return columns.get(name) or [None] * opened.rows


_MAKERS: Final[dict[str, Callable[[_Opened], list[Any]]]] = {
    "key": _keys,
    "ordering_key": lambda opened: _or_none(opened, opened.own, "ordering_key"),
    "batch": lambda opened: opened.indexes,
    "publish_time": lambda opened: opened.entry["publish_time"],
    "event_time": _event_times,
    "producer_name": _producers,
    "sequence_id": _sequence_ids,
    "schema_version": lambda opened: _or_none(opened, opened.entry, "schema_version"),
    "encryption": lambda opened: [None] * opened.rows,
}
_PER_ENTRY: Final = ("publish_time", "producer_name", "sequence_id", "schema_version")
