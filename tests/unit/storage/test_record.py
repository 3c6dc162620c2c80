"""Records: round trip, unknown records skipped, damaged records rejected."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarbox.errors import EntryDamaged, PersistenceError
from pulsarbox.protocol.checksum import crc32c
from pulsarbox.storage.format import BATCH_HEADER, ENTRY_HEADER, RECORD_PREFIX, EntryField, EntryFlag
from pulsarbox.storage.journal import Batch
from pulsarbox.storage.record import (
    Acked,
    AckedRange,
    BatchAcked,
    Entry,
    MarkDelete,
    Meta,
    Position,
    Record,
    Redelivered,
    check_batch,
    pack_acked,
    pack_batch_acked,
    pack_entry,
    pack_mark_delete,
    pack_meta,
    pack_redelivered,
    unpack_batch,
    unpack_entry,
)
from tests.unit.storage.batches import batch_of, entry_of

U64 = st.integers(0, 2**64 - 1)
U32 = st.integers(0, 2**32 - 1)
I64 = st.integers(-(2**63), 2**63 - 1)
POSITIONS = st.builds(Position, U64, st.integers(-1, 2**63 - 1))
BODIES = st.binary(max_size=60)
ENTRIES = st.builds(Entry, U64, U64, st.sampled_from([0, 2, 4, 126]), U32, U64, U64, U32, U64, U64, I64, U32, BODIES)
MARK_DELETES = st.builds(MarkDelete, U64, POSITIONS, U64, U64, st.booleans())
RANGES = st.builds(AckedRange, U64, U64, U64, U64, U64, U64, U64)
ACKS = st.builds(Acked, U64, st.lists(RANGES, max_size=3).map(tuple))
COUNTS = st.tuples(st.builds(Position, U64, U64), U32)
REDELIVERED = st.builds(Redelivered, U64, st.lists(COUNTS, max_size=3).map(tuple))
METAS = st.builds(Meta, st.binary(min_size=1, max_size=20), st.none() | BODIES)


@st.composite
def batch_acks(draw: st.DrawFn) -> BatchAcked:
    size = draw(st.integers(1, 200))
    position = Position(draw(U64), draw(U64))
    return BatchAcked(draw(U64), position, size, draw(st.integers(0, 2**size - 1)))


RECORDS = st.lists(ENTRIES | MARK_DELETES | ACKS | batch_acks() | REDELIVERED | METAS, max_size=8)


def add(batch: Batch, record: Record) -> None:
    match record:
        case Entry():
            batch.add_entry(record.ledger_id, record.entry_id, pack_entry(record), record.body)
        case MarkDelete():
            batch.add(pack_mark_delete(record))
        case Acked():
            batch.add(pack_acked(record))
        case BatchAcked():
            batch.add(pack_batch_acked(record))
        case Redelivered():
            batch.add(pack_redelivered(record))
        case Meta():
            batch.add(pack_meta(record))


@given(RECORDS)
def test_every_kind_comes_back(records: list[Record]) -> None:
    batch = Batch(1)
    for record in records:
        add(batch, record)
    value = batch.value()
    assert len(value) == batch.size
    assert [record for _, record in unpack_batch(value)] == records


@given(RECORDS, st.binary(max_size=9), st.binary(max_size=9))
def test_an_unknown_kind_is_stepped_over(records: list[Record], header: bytes, body: bytes) -> None:
    batch = Batch(1)
    unknown = RECORD_PREFIX.pack(200, 0xFF, RECORD_PREFIX.size + len(header), len(body)) + header + body
    for record in records:
        batch.add(unknown)
        add(batch, record)
    batch.add(unknown)
    assert [record for _, record in unpack_batch(batch.value())] == records


def test_the_fields_of_an_entrys_header_are_where_their_names_say() -> None:
    entry = entry_of(3, 5)._replace(
        flags=EntryFlag.KEY, num_messages=6, total_messages=7, total_bytes=8, key_hash=9, publish_time=10,
        append_time=11, deliver_at=12,
    )  # fmt: skip
    header = ENTRY_HEADER.unpack(pack_entry(entry, txn_most=13, txn_least=14))
    named = {name.lower(): header[at] for name, at in vars(EntryField).items() if name.isupper()}
    sizes = {"body_size": len(entry.body), "txn_most": 13, "txn_least": 14}
    assert named == {name: getattr(entry, name) for name in named if name not in sizes} | sizes


def test_a_longer_header_of_a_later_version_is_read() -> None:
    entry = entry_of(1, 0)
    header = bytearray(pack_entry(entry) + b"more")
    header[2:4] = len(header).to_bytes(2, "big")
    batch = Batch(1)
    batch.add_entry(1, 0, bytes(header), entry.body)
    assert [record for _, record in unpack_batch(batch.value())] == [entry]


@given(st.data())
def test_a_damaged_batch_is_refused_and_a_damaged_body_is_one_entry(data: st.DataObject) -> None:
    value = bytearray(batch_of(1, [(1, 0, 2)]).value())
    # The checksum omits the reserved byte, the count and the time: no reader uses them.
    covered = [0, *range(4, 12), *range(BATCH_HEADER.size, len(value))]
    offsets = [offset for offset, _ in unpack_batch(bytes(value))]
    bodies = [offset + ENTRY_HEADER.size for offset in offsets]
    at = data.draw(st.sampled_from(covered))
    value[at] ^= data.draw(st.integers(1, 255))
    damaged = [n for n, start in enumerate(bodies) if start <= at < start + len(entry_of(1, n).body)]
    if not damaged:
        with pytest.raises(PersistenceError, match="batch"):
            list(unpack_batch(bytes(value)))
        return
    assert [offset for offset, _ in unpack_batch(bytes(value))] == offsets
    for number, offset in enumerate(offsets):
        if number not in damaged:
            assert unpack_entry(bytes(value), offset) == entry_of(1, number)
            continue
        with pytest.raises(EntryDamaged) as raised:
            unpack_entry(bytes(value), offset)
        assert (raised.value.ledger_id, raised.value.first, raised.value.last) == (1, number, number)


def test_a_body_without_the_clients_checksum_has_one_of_the_box() -> None:
    body = b"no magic in front"
    flags: int = EntryFlag.OWN_CHECKSUM
    entry = Entry(1, 0, flags, 1, 1, len(body), 0, 1, 2, 0, crc32c(body), body)
    value = bytearray(pack_entry(entry) + body)
    assert unpack_entry(bytes(value), 0) == entry
    value[-1] ^= 1
    with pytest.raises(EntryDamaged):
        unpack_entry(bytes(value), 0)


@given(st.data())
def test_a_batch_that_is_cut_off_is_refused(data: st.DataObject) -> None:
    value = batch_of(1, [(1, 0, 2)]).value()
    with pytest.raises(PersistenceError, match="damaged"):
        check_batch(value[: data.draw(st.integers(0, len(value) - 1))])


@pytest.mark.parametrize("version", [0, 1, 3])
def test_a_batch_of_another_version_is_refused(version: int) -> None:
    value = batch_of(1, [(1, 0, 2)]).value()
    with pytest.raises(PersistenceError, match=f"batch has version {version}, this version of pulsarbox reads 2"):
        check_batch(bytes([version]) + value[1:])


def test_an_entry_is_only_where_one_begins() -> None:
    batch = batch_of(1, [(1, 0, 1)])
    value = batch.value()
    assert unpack_entry(memoryview(value), batch.runs[1].offsets[0]) == entry_of(1, 0)
    with pytest.raises(PersistenceError, match="no entry at offset 0"):
        unpack_entry(value, 0)
    with pytest.raises(PersistenceError, match="no entry"):
        unpack_entry(value[:-1], batch.runs[1].offsets[0])
