"""Decoding of entries into message columns: ordinary entries in bulk, the others one by one.

A chunked message belongs to the position of its last chunk: a reader of the last chunk looks back for the first ones,
and a reader of first chunks only leaves the message to others.
"""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import Any, Final

from google.protobuf.message import DecodeError

from pulsarbox.names import parse_topic
from pulsarbox.plugins.compression.entry_body import unpack_body
from pulsarbox.plugins.compression.wire import CodecMissing, NotUnpacked
from pulsarbox.protocol.batch import read_batch
from pulsarbox.protocol.chunks import Chunking, Chunks
from pulsarbox.protocol.metadata import parse_entry
from pulsarbox.protocol.PulsarApi_pb2 import MessageIdData, MessageMetadata
from pulsarbox.protocol.violations import MalformedMetadata
from pulsarbox.spark import access
from pulsarbox.spark.access.volume_blocks import Block
from pulsarbox.spark.connect.broker_api import Service
from pulsarbox.spark.decode.batch_decoder import BatchDecoder
from pulsarbox.spark.decode.message_columns import COLUMNS, Messages, Properties, text, unpacked_key, utf8, varint
from pulsarbox.spark.topic_segments import BEGINNING, Lost, Reach, ReadPosition, TopicSegment

log = logging.getLogger(__name__)

ROWS_MAX: Final = 512
"""Messages per ``Messages``, unless BYTES_MAX is reached first: the size that Arrow converts fastest."""
BYTES_MAX: Final = 1 << 20
BLOCK_ROWS: Final = 2048
"""The same limit for a block. Its payloads do not become lists, so the cost per record batch dominates."""
BLOCK_BYTES: Final = 2 << 20
HELD_BYTES: Final = 32 << 20
"""Bytes buffered over all topics before incomplete batches are yielded."""
PARTED_BYTES: Final = 8 << 20
"""Bytes of blocks read before they are split by topic, when topics are not mixed."""
_AT_FIRST: Final = 16
"""Entries decoded together at first, before the number of messages per entry is known."""
CHUNKS_AT_ONCE: Final = 100_000
"""Chunked messages assembled concurrently."""
BACK_ENTRIES: Final = 100_000
"""Entries before a segment to search for first chunks; a message that begins earlier is reported as lost."""


class _TooFar(Exception):
    """The search for a first chunk has reached its limit."""


def messages(
    segments: TopicSegment | Sequence[TopicSegment],
    wanted: frozenset[str],
    reach: Reach,
    *,
    lost: Callable[[Lost], None] | None = None,
    unfinished: list[ReadPosition] | None = None,
    mixed: bool = False,
) -> Iterator[Messages]:
    """Yield the messages of some segments with the ``wanted`` columns, in order within each segment.

    Messages of topics interleaved on disk may interleave here too, so reading many segments at once beats one after
    another. With ``mixed``, a batch may be ``of`` several topics, which is much faster.

    ``lost`` is called with each lost range, in place of what ``reach`` prescribes. ``unfinished`` receives, at the end,
    the first chunk of each message that begins in a segment and does not end there.

    Raises DataLost for missing or damaged entries unless ``reach`` prescribes otherwise, ValueError for an unknown
    column, NotInPlace if reading in place is required and impossible, and the broker's errors.
    """
    unknown = wanted - COLUMNS
    if unknown:
        raise ValueError(f"unknown message column {sorted(unknown)[0]!r}; expected one of {', '.join(sorted(COLUMNS))}")
    parts = [segments] if isinstance(segments, TopicSegment) else list(segments)
    with Service(reach, lost) as service:

        def again(part: TopicSegment) -> list[TopicSegment]:
            start, end = ReadPosition(part.ledger, part.first), ReadPosition(part.ledger, part.last + 1)
            return service.segments(part.topic, start, end)

        openings = [_Opening(part, wanted, service) for part in parts]
        blocks = _Blocks(parts, wanted)
        pieces = access.pieces_of(parts, reach, service.lost, again)
        held, waits = 0, False
        for piece in pieces if mixed else _parted(pieces):
            for found in blocks.open(piece) if isinstance(piece, Block) else (piece,):
                if isinstance(found, Messages):
                    if waits:
                        yield from _all_of(openings)  # messages that precede it
                        held, waits = 0, False
                    yield found
                    continue
                (number, left), waits = found, True
                opening = openings[number]
                before = opening.size
                while left:
                    left = left[opening.add(left) :]
                    if opening.is_full:
                        yield opening.take()
                held += opening.size - before
            if held >= HELD_BYTES:
                yield from _all_of(openings)
                held = 0
        yield from _all_of(openings)
    if unfinished is not None:
        unfinished += [first for opening in openings for first in opening.unfinished]


def _parted(pieces: Iterator[access.Piece]) -> Iterator[tuple[int, list[access.Entry]]]:
    """Yield the entries of each segment, many at a time, with blocks split."""
    held: dict[int, list[access.Entry]] = {}
    size = 0
    for piece in pieces:
        if isinstance(piece, Block):
            size += len(piece.data)
            for number, found in piece.each().items():
                held.setdefault(number, []).extend(found)
        if size >= PARTED_BYTES or not isinstance(piece, Block):
            yield from held.items()
            held, size = {}, 0
        if not isinstance(piece, Block):
            yield piece
    yield from held.items()


class _Blocks:
    """Decoder of entries of several segments without splitting them by segment."""

    def __init__(self, segments: Sequence[TopicSegment], wanted: frozenset[str]) -> None:
        self._topics = [(each.topic, parse_topic(each.topic).partition_index) for each in segments]
        self._together = BatchDecoder(wanted)
        self._at_once = _AT_FIRST

    def open(self, block: Block) -> Iterator[Messages | tuple[int, list[access.Entry]]]:
        """Yield the messages of a block in order, or the entries of each segment if one of them is special."""
        at, left = 0, len(block.entries)
        while left > 0:
            parts = -(-left // self._at_once)
            part = block.part(at, -(-left // parts), BLOCK_BYTES)
            count = len(part.entries)
            at, left = at + count, left - count
            made = self._together.block(part, self._topics)
            if made is None:
                yield from part.each().items()
                continue
            size = len(made.cuts.data) if made.cuts is not None and made.cuts.data is not part.data else 0
            self._at_once = max(1, count * BLOCK_ROWS // max(1, made.rows))
            if size:  # decompressed
                self._at_once = max(1, min(self._at_once, count * BLOCK_BYTES // size))
            if made.rows:
                yield made


def _all_of(openings: "list[_Opening]") -> Iterator[Messages]:
    for opening in openings:
        if opening.has_some:
            yield opening.take()


def _before(segment: TopicSegment, service: Service) -> Iterator[list[access.Entry]]:
    """Yield the entries before a segment in pieces, backwards; each piece is in order. Raises _TooFar."""
    if segment.compacted:
        return
    if segment.end is None:
        front = ReadPosition(segment.ledger, segment.first)
        found = service.segments(segment.topic, ReadPosition(BEGINNING.ledger, 0), front)
    else:  # ledgers unknown: search at least the one of the start
        ledger, last = segment.start.ledger, segment.start.entry - 1
        found = [segment._replace(ledger=ledger, first=0, last=last)] if last >= 0 else []
    left = BACK_ENTRIES
    for one in reversed(found):
        last, size = one.last, 64
        while last >= one.first:
            if left <= 0:
                raise _TooFar
            first = max(one.first, last - size + 1)
            piece: list[access.Entry] = []
            for some in access.entries(_cut(one, first, last), service.reach, service.lost, lambda part: [part]):
                piece += some
            yield piece
            left -= last - first + 1
            last, size = first - 1, min(4 * size, 1024)


def _cut(segment: TopicSegment, first: int, last: int) -> TopicSegment:
    """Return entries ``first`` to ``last`` of a segment, without batch limits."""
    hidden = tuple((max(low, first), min(high, last)) for low, high in segment.hidden if high >= first and low <= last)
    cut = segment._replace(first=first, last=last, hidden=hidden, from_batch=0, to_batch=0)
    if segment.end is None:
        return cut
    return cut._replace(start=ReadPosition(segment.ledger, first), end=ReadPosition(segment.ledger, last + 1))


class _Opening:
    """Messages decoded so far: columns, plus parallel lists with a row for each message not yet in the columns.

    Rows move into columns after a few entries, while the parsed metadata is in the CPU cache; what a hundred topics
    accumulate would not fit there.
    """

    def __init__(self, segment: TopicSegment, wanted: frozenset[str], service: Service) -> None:
        self._segment = segment
        self._partition = parse_topic(segment.topic).partition_index
        self._wanted = wanted
        self._service = service
        self._chunks = Chunks(Chunking(most=CHUNKS_AT_ONCE))
        self._begun: set[str | bytes] = set()
        """Messages whose first chunk was seen or searched for."""
        self._too_far: set[str | bytes] = set()
        """Messages whose first chunk lies beyond the search limit."""
        self._first_chunks: dict[int, tuple[int, int]] = {}
        """Position of the first chunk, by row of a chunked message."""
        self._together = BatchDecoder(wanted)
        self._made = self._none()
        self.size = 0
        self._clear()

    def _none(self) -> Messages:
        return Messages(self._segment.topic, self._partition)

    def _clear(self) -> None:
        self._payloads: list[bytes | None] = []
        self._owns: list[Any] = []
        self._metas: list[Any] = []
        self._places: list[tuple[int, int]] = []
        self._indexes: list[int | None] = []
        self._first_chunks.clear()

    @property
    def is_full(self) -> bool:
        """Whether a batch is complete."""
        return self.size >= BYTES_MAX or self._made.rows >= ROWS_MAX

    @property
    def has_some(self) -> bool:
        """Whether there are messages to take."""
        return self._made.rows > 0

    @property
    def unfinished(self) -> list[ReadPosition]:
        """The first chunk of each message that begins in the segment and has not ended yet."""
        return [ReadPosition(*first) for first in self._chunks.firsts if first[0] == self._segment.ledger]

    # Decoding

    def add(self, entries: list[access.Entry]) -> int:
        """Decode entries until a batch is complete; return how many. Raises the error of ``Service.lost``."""
        some = entries[: self._room(entries)]
        added = self._together.add(some, self._made) if self._is_usual(some) else None
        if added is not None:
            self.size += added
            return len(some)
        count = self._open(some)
        self._make()
        return count

    def _room(self, entries: list[access.Entry]) -> int:
        """Return how many of the entries fit into the batch, at least one."""
        segment = self._segment
        each = max(1, segment.messages // max(1, segment.last - segment.first + 1))
        most = max(1, (ROWS_MAX - self._made.rows) // each)
        sizes = accumulate(len(stored) for _, _, stored in entries[:most])
        return next((at for at, size in enumerate(sizes, 1) if self.size + size >= BYTES_MAX), most)

    def _is_usual(self, entries: list[access.Entry]) -> bool:
        """Return whether all messages of these entries are requested."""
        segment = self._segment
        if segment.end is not None or segment.compacted:
            return False
        of_ends = (segment.first,) * (segment.from_batch > 0) + (segment.last,) * (segment.to_batch > 0)
        return not any(entries[0][1] <= entry <= entries[-1][1] for entry in of_ends)

    def _open(self, entries: list[access.Entry]) -> int:
        room = ROWS_MAX - self._made.rows
        count = 0
        for ledger, entry, stored in entries:
            count += 1
            try:
                parsed = parse_entry(stored, verify=False)
                metadata, body = parsed.metadata, stored[parsed.body_offset :]
                if metadata.num_chunks_from_msg > 1:
                    self._add_chunk(ledger, entry, metadata, body)
                else:
                    self._add_opened(ledger, entry, metadata, body)
            except (DecodeError, MalformedMetadata, NotUnpacked, CodecMissing) as error:
                self._broken(ledger, entry, str(error))
            if self.size >= BYTES_MAX or len(self._owns) >= room:
                break
        return count

    def _broken(self, ledger: int, entry: int, reason: str) -> None:
        topic = self._segment.topic
        self._service.lost(
            Lost(topic, ReadPosition(ledger, entry), ReadPosition(ledger, entry + 1), f"cannot be decoded: {reason}")
        )

    def _add_one(self, ledger: int, entry: int, metadata: MessageMetadata, body: bytes) -> None:
        if self._segment.end is not None and not self._segment.start <= (ledger, entry, 0) < self._segment.end:
            return
        self._payloads.append(None if metadata.null_value else body)
        self._owns.append(metadata)
        self._metas.append(metadata)
        self._places.append((ledger, entry))
        self._indexes.append(None)
        self.size += len(body)

    def _add_opened(self, ledger: int, entry: int, metadata: MessageMetadata, body: bytes) -> None:
        """Add a message that may be compressed, encrypted or a batch."""
        if metadata.encryption_keys:
            self._add_one(ledger, entry, metadata, body)
            return
        if metadata.compression:
            body = unpack_body(metadata, body)
        if metadata.HasField("num_messages_in_batch"):
            self._add_batch(ledger, entry, metadata, body)
        else:
            self._add_one(ledger, entry, metadata, body)

    def _add_batch(self, ledger: int, entry: int, metadata: MessageMetadata, body: bytes) -> None:
        singles, payloads = read_batch(body, metadata.num_messages_in_batch)
        wanted = self._wanted_of(ledger, entry, singles)
        self._payloads += [payloads[index] for index in wanted]
        self._owns += [singles[index] for index in wanted]
        self._metas += [metadata] * len(wanted)
        self._places += [(ledger, entry)] * len(wanted)
        self._indexes += wanted
        self.size += len(body)

    def _wanted_of(self, ledger: int, entry: int, singles: list[Any]) -> list[int]:
        """Return the indexes of the batch's messages that are in the range and not compacted out."""
        segment, count = self._segment, len(singles)
        low, high = 0, count
        if segment.end is not None:
            if (ledger, entry) == segment.start[:2]:
                low = segment.start.batch
            if (ledger, entry) == segment.end[:2]:
                high = min(high, segment.end.batch)
            if not segment.start[:2] <= (ledger, entry) <= segment.end[:2]:
                high = 0
        elif entry == segment.first and segment.from_batch:
            low = segment.from_batch
        if segment.end is None and entry == segment.last and segment.to_batch:
            high = min(high, segment.to_batch)
        if segment.compacted:
            return [index for index in range(low, high) if not singles[index].compacted_out]
        return list(range(low, high))

    # Chunks

    def _add_chunk(self, ledger: int, entry: int, metadata: MessageMetadata, body: bytes) -> None:
        if metadata.chunk_id > 0 and metadata.uuid not in self._begun:
            self._read_preceding_chunks(metadata.uuid)
        self._begun.add(metadata.uuid)
        whole = self._chunks.add(ledger, entry, metadata, body, 0.0, time.time())
        if whole is None:
            if metadata.uuid in self._too_far and metadata.chunk_id == metadata.num_chunks_from_msg - 1:
                self._broken(ledger, entry, f"the first chunk of the message is more than {BACK_ENTRIES} entries back")
            return
        self._begun.discard(metadata.uuid)
        row = len(self._owns)
        body, places = whole
        self._add_opened(ledger, entry, metadata, body)
        if len(self._owns) > row:
            self._first_chunks[row] = places[0]

    def _read_preceding_chunks(self, uuid: str | bytes) -> None:
        """Find and add the chunks of a message that precede the segment."""
        found: list[tuple[int, int, MessageMetadata, bytes]] = []
        try:
            for piece in _before(self._segment, self._service):
                some = []
                for ledger, entry, stored in piece:
                    parsed = parse_entry(stored, verify=False)
                    if parsed.metadata.num_chunks_from_msg > 1 and parsed.metadata.uuid == uuid:
                        some.append((ledger, entry, parsed.metadata, stored[parsed.body_offset :]))
                found = some + found
                if any(metadata.chunk_id == 0 for _, _, metadata, _ in some):
                    break
        except _TooFar:
            self._too_far.add(uuid)
        for ledger, entry, metadata, body in found:
            self._chunks.add(ledger, entry, metadata, body, 0.0, time.time())

    # Columns

    def take(self) -> Messages:
        """Return the messages as columns and start an empty batch."""
        found, self._made = self._made, self._none()
        self.size = 0
        return found

    def _make(self) -> None:
        made = self._made
        made.rows += len(self._owns)
        for name in self._wanted:
            if name == "properties":
                for own in self._owns:
                    _add_properties(own, made.properties)
            else:
                column: list[Any] = getattr(made, name)
                column += _MAKERS[name](self)
        self._clear()

    def _ids(self) -> list[bytes]:
        """Return the message IDs as clients serialize them."""
        found: list[bytes] = []
        before, ledger_id, head, prefix = (-1, -1), -1, b"", b""
        tail = b"\x18" + varint(self._partition) if self._partition >= 0 else b""
        for row, (place, index) in enumerate(zip(self._places, self._indexes, strict=True)):
            if index is None or place != before:
                before = place
                if place[0] != ledger_id:
                    ledger_id = place[0]
                    head = b"\x08" + varint(ledger_id) + b"\x10"
                prefix = head + varint(place[1]) + tail
            if index is not None:
                count = self._metas[row].num_messages_in_batch
                found.append(prefix + b"\x20" + varint(index) + b"\x30" + varint(count))
            elif row in self._first_chunks:
                ledger, entry = self._first_chunks[row]
                first = MessageIdData(ledgerId=ledger, entryId=entry, partition=self._partition).SerializeToString()
                found.append(prefix + b"\x3a" + varint(len(first)) + first)
            else:
                found.append(prefix)
        return found

    def _sequence_ids(self) -> list[int]:
        return [
            own.sequence_id if index is None or own.HasField("sequence_id") else metadata.sequence_id + index
            for own, metadata, index in zip(self._owns, self._metas, self._indexes, strict=True)
        ]


def _key(own: Any) -> bytes | None:
    key = own.partition_key
    if not key and not own.HasField("partition_key"):
        return None
    raw = utf8(key)
    return unpacked_key(raw) if own.partition_key_b64_encoded else raw


def _ordering_key(own: Any) -> bytes | None:
    key: bytes = own.ordering_key
    return key if key or own.HasField("ordering_key") else None


def _add_properties(own: Any, made: Properties) -> None:
    found = own.properties
    made.add([utf8(each.key) for each in found], [utf8(each.value) for each in found])


def _schema_version(metadata: Any) -> bytes | None:
    version: bytes = metadata.schema_version
    return version if version or metadata.HasField("schema_version") else None


_MAKERS: Final[dict[str, Callable[[_Opening], list[Any]]]] = {
    "payload": lambda some: some._payloads,
    "key": lambda some: [_key(own) for own in some._owns],
    "ordering_key": lambda some: [_ordering_key(own) for own in some._owns],
    "message_id": _Opening._ids,
    "ledger": lambda some: [place[0] for place in some._places],
    "entry": lambda some: [place[1] for place in some._places],
    "batch": lambda some: some._indexes,
    "publish_time": lambda some: [metadata.publish_time for metadata in some._metas],
    "event_time": lambda some: [own.event_time or None for own in some._owns],
    "producer_name": lambda some: [text(metadata.producer_name) for metadata in some._metas],
    "sequence_id": _Opening._sequence_ids,
    "schema_version": lambda some: [_schema_version(metadata) for metadata in some._metas],
    "encryption": lambda some: [
        metadata.SerializeToString() if metadata.encryption_keys else None for metadata in some._metas
    ],
}
"""Constructor of each column."""
assert _MAKERS.keys() | {"properties"} == COLUMNS
