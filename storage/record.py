"""The records of the journal as values: packing them for a batch, unpacking them at recovery and on read."""

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
    COMPRESSED_AS,
    COMPRESSED_AT,
    DELETED,
    ENTRY_HEADER,
    FORGOTTEN,
    FORMAT_VERSION,
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
"""What a payload with a checksum begins with (Pulsar binary protocol)."""

_ENTRY = RecordKind.ENTRY
_ENTRY_SIZE = ENTRY_HEADER.size
_pack_entry = ENTRY_HEADER.pack


class Position(NamedTuple):
    """A place in a topic: entry ``entry_id`` of ledger ``ledger_id``; entry -1 is before the ledger's first."""

    ledger_id: int
    entry_id: int


class Entry(NamedTuple):
    """One stored entry: what its header says, and its bytes as the client sent them."""

    ledger_id: int
    entry_id: int
    flags: int
    num_messages: int
    total_messages: int
    """Messages of the topic up to this entry, itself included."""
    total_bytes: int
    """Bytes of the topic's entries up to this one, itself included."""
    key_hash: int
    publish_time: int
    """Milliseconds since 1970, by the client's clock; on the box's, where its virtual clock is ahead."""
    append_time: int
    """Milliseconds since 1970, by the box."""
    deliver_at: int
    """Milliseconds since 1970; 0 for at once."""
    checksum: int
    body: bytes

    @property
    def position(self) -> Position:
        """Where the entry stands."""
        return Position(self.ledger_id, self.entry_id)


class Compressed(NamedTuple):
    """How the bytes of an entry stand on the disk."""

    tag: bytes
    size: int
    """What they have as they came."""
    dictionary: int


class Unpacker(Protocol):
    """Gives back what packing has compressed; one thread uses it."""

    def unpack(self, tag: bytes, dictionary: int, packed: Sequence[bytes], sizes: Sequence[int]) -> list[bytes]:
        """What has so many bytes each. Raises NotUnpacked where one is something else, NotNow."""


class NotNow(PersistenceError):
    """What is stored cannot be given for a reason that lies elsewhere: nothing is wrong with it."""


class NotUnpacked(Exception):
    """Bytes on the disk are not what a codec has written, or not of the size that they should have."""


class MarkDelete(NamedTuple):
    """A cursor's mark-delete moved: everything up to it is acknowledged."""

    cursor_id: int
    position: Position
    total_messages: int
    total_bytes: int
    reset: bool


class AckedRange(NamedTuple):
    """Entries ``first`` to ``last`` of a ledger are acknowledged; the totals before the first and up to the last."""

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
    """Before it: of what only the compacted view has any more."""


class BatchAcked(NamedTuple):
    """Some messages of a batch are acknowledged; ``ack_set`` has a bit for each that is not."""

    cursor_id: int
    position: Position
    num_messages: int
    ack_set: int


class Redelivered(NamedTuple):
    """How often entries that are not acknowledged were asked for again, so far."""

    cursor_id: int
    counts: tuple[tuple[Position, int], ...]


class Meta(NamedTuple):
    """A row of the metadata was written, or deleted where ``value`` is None."""

    key: bytes
    value: bytes | None


class Begun(NamedTuple):
    """A message of which chunks are stored, and not the last one."""

    sequence_id: int
    since: int
    """When the first one was stored, in milliseconds since 1970."""
    sums: tuple[int, ...]
    """CRC32C of each of them; none where it is not known which are there."""


class SequenceId(NamedTuple):
    """The highest sequence id of a producer on a topic; ``forgotten``: it is known no more."""

    topic_id: int
    producer: str
    highest: int
    """As Pulsar has it: of 64 bits, signed."""
    published: int
    """When the producer published last, in milliseconds since 1970."""
    forgotten: bool = False
    begun: Begun | None = None


CursorRecord = MarkDelete | Acked | BatchAcked | Redelivered
Record = Entry | CursorRecord | Meta | SequenceId


def pack_entry(entry: Entry, txn_most: int = 0, txn_least: int = 0) -> bytes:
    """The header that stands before the entry's bytes in the journal."""
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
    """A cursor's new mark-delete as a record."""
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
    """Newly acknowledged ranges as a record."""
    flags |= IN_VIEW if record.in_view else 0
    return pack_acked_body(record.cursor_id, b"".join([ACKED_RANGE.pack(*acked) for acked in record.ranges]), flags)


def pack_acked_body(cursor_id: int, body: bytes, flags: int = 0) -> bytes:
    """Ranges that are packed already as a record."""
    return ACKED_HEADER.pack(RecordKind.ACKED, flags, ACKED_HEADER.size, len(body), cursor_id) + body


def pack_moved(cursor_id: int, entry: Entry) -> bytes:
    """The acknowledgement of an entry that goes to another topic with what else is in its batch, as a record."""
    messages, size = entry.total_messages, entry.total_bytes
    before = messages - entry.num_messages, size - len(entry.body)
    at = entry.ledger_id, entry.entry_id, entry.entry_id
    return pack_acked(Acked(cursor_id, (AckedRange(*at, before[0], messages, before[1], size),)), MOVED)


def pack_batch_acked(record: BatchAcked, flags: int = 0) -> bytes:
    """The unacknowledged rest of a batch as a record."""
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
    """Redelivery counts as a record."""
    body = b"".join([REDELIVERY.pack(*position, count, 0) for position, count in record.counts])
    header = REDELIVERED_HEADER.pack(RecordKind.REDELIVERED, 0, REDELIVERED_HEADER.size, len(body), record.cursor_id)
    return header + body


def pack_meta(record: Meta) -> bytes:
    """A written or deleted row as a record."""
    value = record.value if record.value is not None else b""
    flags = DELETED if record.value is None else 0
    size = len(record.key) + len(value)
    header = META_HEADER.pack(RecordKind.META, flags, META_HEADER.size, size, len(record.key), 0)
    return header + record.key + value


def pack_sequence(record: SequenceId) -> bytes:
    """A producer's highest sequence id as a record."""
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
    """The entry whose record starts at ``offset`` of a batch; its bytes are copied out.

    Raises PersistenceError where no entry starts there, or it is compressed and nobody can unpack it; EntryDamaged
    where it cannot be unpacked, and with ``verify`` where its bytes do not match its checksum.
    """
    entry, compressed = stored_entry(data, offset)
    if compressed is not None:
        entry = _unpacked(entry, compressed, unpacker)
    if verify:
        verify_entry(entry)
    return entry


def stored_entry(data: bytes | memoryview, offset: int) -> tuple[Entry, Compressed | None]:
    """The same with its bytes as they stand there, and how they do; None for as they came. Nothing is verified."""
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
    """How the bytes of the entry stand whose record starts at ``offset``; None for as they came."""
    codec = data[offset + COMPRESSED_AT : offset + _ENTRY_SIZE]
    if not any(codec):
        return None
    if RECORD_PREFIX.unpack_from(data, offset)[2] < COMPRESSED_AT + COMPRESSED_AS.size:
        raise PersistenceError(f"the header at offset {offset} of the batch does not say how large its entry is")
    return Compressed(*COMPRESSED_AS.unpack_from(data, offset + COMPRESSED_AT))


def _unpacked(entry: Entry, compressed: Compressed, unpacker: Unpacker | None) -> Entry:
    if unpacker is None:
        raise NotNow(f"entry {entry.ledger_id}:{entry.entry_id} is compressed ({compressed.tag!r})")
    tag, size, dictionary = compressed
    try:
        return entry._replace(body=unpacker.unpack(tag, dictionary, [entry.body], [size])[0])
    except NotUnpacked as error:
        raise damaged(entry, str(error), size) from error


def damaged(entry: Entry, reason: str, size: int | None = None) -> EntryDamaged:
    """What is said of an entry that cannot be given; ``size`` where it is not that of its bytes."""
    counts = (entry.num_messages, len(entry.body) if size is None else size, entry.total_messages, entry.total_bytes)
    return EntryDamaged(entry.ledger_id, entry.entry_id, entry.entry_id, reason, entry.body, counts)


def verify_entry(entry: Entry) -> None:
    """Raise EntryDamaged where the bytes of an entry, as they came, do not match its checksum."""
    if not _is_whole(entry.flags, entry.checksum, entry.body):
        raise damaged(entry, "its bytes do not match its checksum")


def _is_whole(flags: int, checksum: int, body: bytes) -> bool:
    if flags & EntryFlag.CHECKSUM:  # the client's covers from behind itself: two bytes magic, four bytes checksum
        return crc32c(body[6:]) == checksum and body[:6] == CHECKSUM_PREFIX.pack(MAGIC, checksum)
    return not flags & EntryFlag.OWN_CHECKSUM or crc32c(body) == checksum


def check_batch(value: bytes | memoryview) -> None:
    """Raise PersistenceError where a batch is of an unknown version, or damaged elsewhere than in an entry's body."""
    if len(value) < BATCH_HEADER.size:
        raise PersistenceError(f"batch is damaged: {len(value)} bytes, its header alone has {BATCH_HEADER.size}")
    version, _, _, length, checksum, _ = BATCH_HEADER.unpack_from(value)
    if not 1 <= version <= FORMAT_VERSION:
        raise PersistenceError(f"batch of format {version}, this version reads {FORMAT_VERSION}")
    end = BATCH_HEADER.size + length
    if end != len(value):
        raise PersistenceError(f"batch is damaged: {len(value)} bytes where {end} should be")
    records = memoryview(value)[BATCH_HEADER.size :]
    if crc32c(records if version == 1 else _covered(records)) != checksum:
        raise PersistenceError(f"batch is damaged: its {len(value)} bytes do not have the checksum {checksum:08x}")


def _covered(records: memoryview) -> bytes:
    """What the checksum of a batch covers. Raises PersistenceError where the records do not end where they should."""
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
        raise PersistenceError("batch is damaged: its last record does not end with it")
    return b"".join(parts)


def unpack_batch(value: bytes) -> Iterator[tuple[int, Record]]:
    """The records of a batch, each with its offset in the batch value. The bodies of entries are not verified.

    Raises PersistenceError as ``check_batch`` does.
    """
    check_batch(value)
    yield from unpack_records(value, BATCH_HEADER.size)


def unpack_records(value: bytes, offset: int = 0) -> Iterator[tuple[int, Record]]:
    """The records from ``offset`` to the end, each with its offset; kinds of a later version are stepped over."""
    while offset < len(value):
        _, _, header_size, body_size = RECORD_PREFIX.unpack_from(value, offset)
        record = unpack_record(value, offset)
        if record is not None:
            yield offset, record
        offset += header_size + body_size


def unpack_record(value: bytes, offset: int) -> Record | None:
    """The record that starts at ``offset``; None where it is of a kind of a later version."""
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
    return None  # a kind of a later version: stepped over


def _unpack_begun(more: bytes) -> Begun | None:
    if not more:
        return None
    sequence_id, since = SEQUENCE_BEGUN.unpack_from(more)
    sums = more[SEQUENCE_BEGUN.size :]
    return Begun(sequence_id, since, struct.unpack(f">{len(sums) // 4}I", sums))
