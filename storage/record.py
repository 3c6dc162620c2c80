"""The records of the journal as values: packed for a batch, unpacked at recovery and on read."""

import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from pulsarbox.errors import EntryDamaged, PersistenceError
from pulsarbox.protocol.checksum import crc32c
from pulsarbox.storage.format import (
    ACKED_HEADER,
    ACKED_RANGE,
    BATCH_ACKED_HEADER,
    BATCH_HEADER,
    BATCH_VERSION,
    COMPRESSED_AS,
    COMPRESSED_AT,
    DELETED,
    ENTRY_HEADER,
    FORGOTTEN,
    IN_VIEW,
    MARK_DELETE_HEADER,
    META_HEADER,
    MOVED,
    RECORD_PREFIX,
    REDELIVERED_HEADER,
    REDELIVERY,
    RESET,
    SEQUENCE_BEGUN,
    SEQUENCE_HEADER,
    EntryFlag,
    RecordKind,
)

CHECKSUM_PREFIX = struct.Struct(">HI")
MAGIC = 0x0E01
"""First two bytes of a payload with a checksum (Pulsar binary protocol)."""

_ENTRY = RecordKind.ENTRY
_ENTRY_SIZE = ENTRY_HEADER.size
_pack_entry = ENTRY_HEADER.pack


class Position(NamedTuple):
    """A place in a topic: entry ``entry_id`` of ledger ``ledger_id``; entry -1 is before the ledger's first."""

    ledger_id: int
    entry_id: int


class Entry(NamedTuple):
    """One stored entry: the fields of its header, and its bytes as sent by the client."""

    ledger_id: int
    entry_id: int
    flags: int
    num_messages: int
    total_messages: int
    """Messages of the topic through this entry."""
    total_bytes: int
    """Bytes of the topic's entries through this one."""
    key_hash: int
    publish_time: int
    """Milliseconds since 1970 by the client's clock, shifted by the offset of the box's virtual clock."""
    append_time: int
    """Milliseconds since 1970, by the box's clock."""
    deliver_at: int
    """Milliseconds since 1970; 0 for immediate delivery."""
    checksum: int
    body: bytes

    @property
    def position(self) -> Position:
        """The entry's position."""
        return Position(self.ledger_id, self.entry_id)


class Compressed(NamedTuple):
    """How the bytes of an entry are compressed on disk."""

    tag: bytes
    size: int
    """Uncompressed bytes."""
    dictionary: int


class Unpacker(Protocol):
    """Decompresses what packing has compressed; used by one thread."""

    def unpack(self, tag: bytes, dictionary: int, packed: Sequence[bytes], sizes: Sequence[int]) -> list[bytes]:
        """Return the decompressed bytes, ``sizes`` bytes each. Raises NotUnpacked if one is invalid, or NotNow."""


class NotNow(PersistenceError):
    """The entry is intact but cannot be read at present, such as for lack of a codec."""


class DecompressionError(Exception):
    """Bytes on disk are not the output of the codec, or do not have the expected size."""


class MarkDelete(NamedTuple):
    """A cursor's mark-delete moved: everything up to it is acknowledged."""

    cursor_id: int
    position: Position
    total_messages: int
    total_bytes: int
    reset: bool


class AckedRange(NamedTuple):
    """Acknowledged entries ``first`` to ``last`` of a ledger, with totals before the first and after the last."""

    ledger_id: int
    first: int
    last: int
    messages_before: int
    messages_after: int
    bytes_before: int
    bytes_after: int


class Acked(NamedTuple):
    """Ranges that a cursor has acknowledged beyond its mark-delete."""

    cursor_id: int
    ranges: tuple[AckedRange, ...]
    in_view: bool = False
    """Entries that only the compacted view still has, before the mark-delete or after it."""


class BatchAcked(NamedTuple):
    """Some messages of a batch are acknowledged; ``ack_set`` has a bit for each that is not."""

    cursor_id: int
    position: Position
    num_messages: int
    ack_set: int


class Redelivered(NamedTuple):
    """Redelivery counts of unacknowledged entries, so far."""

    cursor_id: int
    counts: tuple[tuple[Position, int], ...]


class Meta(NamedTuple):
    """A metadata row was written, or deleted if ``value`` is None."""

    key: bytes
    value: bytes | None


class Begun(NamedTuple):
    """A chunked message of which some chunks are stored, but not the last one."""

    sequence_id: int
    since: int
    """Time at which the first chunk was stored, in milliseconds since 1970."""
    sums: tuple[int, ...]
    """CRC32C of each stored chunk; empty if unknown."""


class SequenceId(NamedTuple):
    """The highest sequence id of a producer on a topic; with ``forgotten``, the producer was removed."""

    topic_id: int
    producer: str
    highest: int
    """A signed 64-bit integer, as in Pulsar."""
    published: int
    """Time of the producer's last publish, in milliseconds since 1970."""
    forgotten: bool = False
    begun: Begun | None = None


CursorRecord = MarkDelete | Acked | BatchAcked | Redelivered
Record = Entry | CursorRecord | Meta | SequenceId


def pack_entry(entry: Entry, txn_most: int = 0, txn_least: int = 0) -> bytes:
    """Pack the header that precedes the entry's bytes in the journal."""
    ledger, number, flags, count, messages, size, key_hash, published, appended, deliver_at, checksum, body = entry
    return _pack_entry(
        _ENTRY,
        flags,
        _ENTRY_SIZE,
        len(body),
        ledger,
        number,
        messages,
        size,
        published,
        appended,
        deliver_at,
        txn_most,
        txn_least,
        count,
        key_hash,
        checksum,
        0,
    )


def pack_mark_delete(record: MarkDelete) -> bytes:
    """Pack a cursor's new mark-delete."""
    return MARK_DELETE_HEADER.pack(
        RecordKind.MARK_DELETE,
        RESET if record.reset else 0,
        MARK_DELETE_HEADER.size,
        0,
        record.cursor_id,
        record.position.ledger_id,
        record.position.entry_id,
        record.total_messages,
        record.total_bytes,
    )


def pack_acked(record: Acked, flags: int = 0) -> bytes:
    """Pack newly acknowledged ranges."""
    flags |= IN_VIEW if record.in_view else 0
    return pack_acked_body(record.cursor_id, b"".join([ACKED_RANGE.pack(*acked) for acked in record.ranges]), flags)


def pack_acked_body(cursor_id: int, body: bytes, flags: int = 0) -> bytes:
    """Pack an ACKED record from packed ranges."""
    return ACKED_HEADER.pack(RecordKind.ACKED, flags, ACKED_HEADER.size, len(body), cursor_id) + body


def pack_moved(cursor_id: int, entry: Entry) -> bytes:
    """Pack the acknowledgement of an entry that moves to another topic in the same batch."""
    messages, size = entry.total_messages, entry.total_bytes
    before = messages - entry.num_messages, size - len(entry.body)
    at = entry.ledger_id, entry.entry_id, entry.entry_id
    return pack_acked(Acked(cursor_id, (AckedRange(*at, before[0], messages, before[1], size),)), MOVED)


def pack_batch_acked(record: BatchAcked, flags: int = 0) -> bytes:
    """Pack the unacknowledged rest of a batch."""
    body = record.ack_set.to_bytes((record.num_messages + 63) // 64 * 8, "big")
    header = BATCH_ACKED_HEADER.pack(
        RecordKind.BATCH_ACKED,
        flags,
        BATCH_ACKED_HEADER.size,
        len(body),
        record.cursor_id,
        record.position.ledger_id,
        record.position.entry_id,
        record.num_messages,
        0,
    )
    return header + body


def pack_redelivered(record: Redelivered) -> bytes:
    """Pack redelivery counts."""
    body = b"".join([REDELIVERY.pack(*position, count, 0) for position, count in record.counts])
    header = REDELIVERED_HEADER.pack(RecordKind.REDELIVERED, 0, REDELIVERED_HEADER.size, len(body), record.cursor_id)
    return header + body


def pack_meta(record: Meta) -> bytes:
    """Pack a written or deleted row."""
    value = record.value if record.value is not None else b""
    flags = DELETED if record.value is None else 0
    size = len(record.key) + len(value)
    header = META_HEADER.pack(RecordKind.META, flags, META_HEADER.size, size, len(record.key), 0)
    return header + record.key + value


def pack_sequence(record: SequenceId) -> bytes:
    """Pack a producer's highest sequence id."""
    name, begun = record.producer.encode(), record.begun
    more = b""
    if begun is not None:
        more = SEQUENCE_BEGUN.pack(begun.sequence_id, begun.since) + struct.pack(f">{len(begun.sums)}I", *begun.sums)
    header = SEQUENCE_HEADER.pack(
        RecordKind.SEQUENCE,
        FORGOTTEN if record.forgotten else 0,
        SEQUENCE_HEADER.size + len(more),
        len(name),
        record.topic_id,
        record.highest,
        record.published,
    )
    return header + more + name


def unpack_entry(
    data: bytes | memoryview, offset: int, *, verify: bool = True, unpacker: Unpacker | None = None
) -> Entry:
    """Decode the entry whose record starts at ``offset`` of a batch; its bytes are copied.

    Raises PersistenceError if no entry starts there; NotNow if it is compressed and ``unpacker`` is None; EntryDamaged
    if it cannot be decompressed, and with ``verify`` if its bytes do not match its checksum.
    """
    entry, compressed = stored_entry(data, offset)
    if compressed is not None:
        entry = _unpacked(entry, compressed, unpacker)
    if verify:
        verify_entry(entry)
    return entry


def stored_entry(data: bytes | memoryview, offset: int) -> tuple[Entry, Compressed | None]:
    """Decode the entry with its bytes as stored, and their compression; None if uncompressed. Nothing is verified."""
    fields = ENTRY_HEADER.unpack_from(data, offset)
    kind, flags, header_size, body_size = fields[:4]
    start = offset + header_size
    body = bytes(data[start : start + body_size])
    if kind != RecordKind.ENTRY or len(body) != body_size:
        raise PersistenceError(
            f"no entry at offset {offset} of the batch: kind {kind}, {len(body)} of {body_size} bytes"
        )
    (ledger_id, entry_id, messages, total_bytes, published, appended, deliver_at) = fields[4:11]
    num_messages, key_hash, checksum, codec = fields[13:]
    entry = Entry(
        ledger_id,
        entry_id,
        flags,
        num_messages,
        messages,
        total_bytes,
        key_hash,
        published,
        appended,
        deliver_at,
        checksum,
        body,
    )
    return entry, compressed_as(data, offset) if codec else None


def compressed_as(data: bytes | memoryview, offset: int) -> Compressed | None:
    """Return the compression of the entry whose record starts at ``offset``; None if uncompressed."""
    codec = data[offset + COMPRESSED_AT : offset + _ENTRY_SIZE]
    if not any(codec):
        return None
    if RECORD_PREFIX.unpack_from(data, offset)[2] < COMPRESSED_AT + COMPRESSED_AS.size:
        raise PersistenceError(f"the header at offset {offset} of the batch lacks the size of its entry")
    return Compressed(*COMPRESSED_AS.unpack_from(data, offset + COMPRESSED_AT))


def _unpacked(entry: Entry, compressed: Compressed, unpacker: Unpacker | None) -> Entry:
    if unpacker is None:
        raise NotNow(f"entry {entry.ledger_id}:{entry.entry_id} is compressed ({compressed.tag!r})")
    tag, size, dictionary = compressed
    try:
        return entry._replace(body=unpacker.unpack(tag, dictionary, [entry.body], [size])[0])
    except DecompressionError as error:
        raise damaged(entry, str(error), size) from error


def damaged(entry: Entry, reason: str, size: int | None = None) -> EntryDamaged:
    """Return the exception for an unreadable entry; ``size`` if it differs from that of its bytes."""
    counts = (entry.num_messages, len(entry.body) if size is None else size, entry.total_messages, entry.total_bytes)
    return EntryDamaged(entry.ledger_id, entry.entry_id, entry.entry_id, reason, entry.body, counts)


def verify_entry(entry: Entry) -> None:
    """Raise EntryDamaged if the uncompressed bytes of an entry do not match its checksum."""
    if not _is_whole(entry.flags, entry.checksum, entry.body):
        raise damaged(entry, "its bytes do not match its checksum")


def _is_whole(flags: int, checksum: int, body: bytes) -> bool:
    if flags & EntryFlag.CHECKSUM:  # the client's checksum starts after itself: two bytes magic, four bytes checksum
        return crc32c(body[6:]) == checksum and body[:6] == CHECKSUM_PREFIX.pack(MAGIC, checksum)
    return not flags & EntryFlag.OWN_CHECKSUM or crc32c(body) == checksum


def check_batch(value: bytes | memoryview) -> None:
    """Raise PersistenceError if a batch has an unknown version, or is damaged outside the body of an entry."""
    if len(value) < BATCH_HEADER.size:
        raise PersistenceError(f"batch is damaged: {len(value)} bytes, less than its header of {BATCH_HEADER.size}")
    version, _, _, length, checksum, _ = BATCH_HEADER.unpack_from(value)
    if version != BATCH_VERSION:
        raise PersistenceError(f"batch has version {version}, this version of pulsarbox reads {BATCH_VERSION}")
    end = BATCH_HEADER.size + length
    if end != len(value):
        raise PersistenceError(f"batch is damaged: {len(value)} bytes, expected {end}")
    records = memoryview(value)[BATCH_HEADER.size :]
    if crc32c(_covered(records)) != checksum:
        raise PersistenceError(f"batch is damaged: its {len(value)} bytes do not match the checksum {checksum:08x}")


def _covered(records: memoryview) -> bytes:
    """Return the bytes covered by a batch's checksum. Raises PersistenceError if the records do not fill it exactly."""
    parts: list[memoryview] = []
    offset = 0
    try:
        while offset < len(records):
            kind, _, header_size, body_size = RECORD_PREFIX.unpack_from(records, offset)
            if header_size < RECORD_PREFIX.size:
                raise PersistenceError(f"batch is damaged: a header of {header_size} bytes")
            end = offset + header_size + body_size
            parts.append(records[offset : offset + header_size if kind == _ENTRY else end])
            offset = end
    except struct.error:
        offset = -1
    if offset != len(records):
        raise PersistenceError("batch is damaged: its last record does not end at the end of the batch")
    return b"".join(parts)


def unpack_batch(value: bytes) -> Iterator[tuple[int, Record]]:
    """Yield the records of a batch, each with its offset in the batch value. The bodies of entries are not verified.

    Raises PersistenceError as ``check_batch`` does.
    """
    check_batch(value)
    yield from unpack_records(value, BATCH_HEADER.size)


def unpack_records(value: bytes, offset: int = 0) -> Iterator[tuple[int, Record]]:
    """Yield the records from ``offset`` to the end, each with its offset; unknown kinds are skipped."""
    while offset < len(value):
        _, _, header_size, body_size = RECORD_PREFIX.unpack_from(value, offset)
        record = unpack_record(value, offset)
        if record is not None:
            yield offset, record
        offset += header_size + body_size


def unpack_record(value: bytes, offset: int) -> Record | None:
    """Decode the record that starts at ``offset``; None if its kind is unknown."""
    kind, flags, header_size, body_size = RECORD_PREFIX.unpack_from(value, offset)
    body = offset + header_size
    if kind == RecordKind.ENTRY:
        return unpack_entry(value, offset, verify=False)
    if kind == RecordKind.MARK_DELETE:
        cursor, ledger, entry, messages, size = MARK_DELETE_HEADER.unpack_from(value, offset)[4:]
        return MarkDelete(cursor, Position(ledger, entry), messages, size, bool(flags & RESET))
    if kind == RecordKind.ACKED:
        (cursor,) = ACKED_HEADER.unpack_from(value, offset)[4:]
        ranges = ACKED_RANGE.iter_unpack(value[body : body + body_size])
        return Acked(cursor, tuple(AckedRange(*fields) for fields in ranges), bool(flags & IN_VIEW))
    if kind == RecordKind.BATCH_ACKED:
        cursor, ledger, entry, messages, _ = BATCH_ACKED_HEADER.unpack_from(value, offset)[4:]
        words = int.from_bytes(value[body : body + body_size], "big")
        return BatchAcked(cursor, Position(ledger, entry), messages, words)
    if kind == RecordKind.META:
        key_size, _ = META_HEADER.unpack_from(value, offset)[4:]
        key = value[body : body + key_size]
        return Meta(key, None if flags & DELETED else value[body + key_size : body + body_size])
    if kind == RecordKind.REDELIVERED:
        (cursor,) = REDELIVERED_HEADER.unpack_from(value, offset)[4:]
        counts = REDELIVERY.iter_unpack(value[body : body + body_size])
        return Redelivered(cursor, tuple((Position(ledger, entry), count) for ledger, entry, count, _ in counts))
    if kind == RecordKind.SEQUENCE:
        topic, highest, published = SEQUENCE_HEADER.unpack_from(value, offset)[4:]
        begun = _unpack_begun(value[offset + SEQUENCE_HEADER.size : body])
        name = value[body : body + body_size].decode()
        return SequenceId(topic, name, highest, published, bool(flags & FORGOTTEN), begun)
    return None  # a kind of a later version


def _unpack_begun(more: bytes) -> Begun | None:
    if not more:
        return None
    sequence_id, since = SEQUENCE_BEGUN.unpack_from(more)
    sums = more[SEQUENCE_BEGUN.size :]
    return Begun(sequence_id, since, struct.unpack(f">{len(sums) // 4}I", sums))
