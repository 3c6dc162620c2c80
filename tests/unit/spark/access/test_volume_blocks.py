"""Entries of many ledgers extracted from batches, from the requested start of each ledger."""

from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarbox.errors import PersistenceError
from pulsarbox.protocol.metadata import encode_entry
from pulsarbox.protocol.PulsarApi_pb2 import MessageMetadata
from pulsarbox.spark.access.volume_blocks import BatchWalk, Block, WantedEntries
from pulsarbox.storage.format import EntryFlag
from pulsarbox.storage.journal import Batch
from pulsarbox.storage.record import Entry, MarkDelete, Position, pack_entry, pack_mark_delete

KINDS = ("usual", "usual", "usual", "key", "marker", "chunk", "unchecked", "damaged", "packed", "cursor")
FLAGS = {"key": EntryFlag.KEY, "marker": EntryFlag.MARKER, "chunk": EntryFlag.CHUNK}


class Record(NamedTuple):
    """A record in a batch: an entry of some kind, or a cursor update."""

    ledger: int
    entry: int
    kind: str

    @property
    def body(self) -> bytes:
        metadata = MessageMetadata(producer_name="p", sequence_id=self.entry, publish_time=1)
        return encode_entry(metadata, b"%d:%d" % self[:2] * (self.entry % 5))

    def write(self, batch: Batch) -> None:
        if self.kind == "cursor":
            batch.add(pack_mark_delete(MarkDelete(self.ledger, Position(self.ledger, self.entry), 1, 1, False)))
            return
        checksum = int.from_bytes(self.body[2:6])
        flags = EntryFlag.OWN_CHECKSUM if self.kind == "unchecked" else EntryFlag.CHECKSUM | FLAGS.get(self.kind, 0)
        body = self.body[:-1] + bytes([self.body[-1] ^ 1]) if self.kind == "damaged" else self.body
        entry = Entry(self.ledger, self.entry, flags, 1, 1, 1, 7, 1, 2, 0, checksum, body)
        header = bytearray(pack_entry(entry))
        if self.kind == "packed":
            header[92:96] = b"zstd"
        batch.add_entry(self.ledger, self.entry, bytes(header), body)


def value_of(records: list[Record]) -> bytes:
    batch = Batch(1)
    batch.wall = 5
    for record in records:
        record.write(batch)
    return batch.value()


def expected(records: list[Record], wanted: dict[int, WantedEntries]) -> dict[int, list[tuple[int, int, bytes]]]:
    found: dict[int, list[tuple[int, int, bytes]]] = {}
    for ledger, (number, first, last) in wanted.items():
        at = first
        for record in records:
            if record.ledger != ledger or record.kind == "cursor" or record.entry < at:
                continue
            is_marker = record.kind == "marker" and at < last
            if at > last or record.entry > at or not (is_marker or record.kind in ("usual", "key")):
                break
            if not is_marker:
                found.setdefault(number, []).append((ledger, at, record.body))
            at += 1
    return found


def swept(walk: BatchWalk, batches: list[list[Record]], at_once: int) -> tuple[dict[int, list[Any]], list[Block]]:
    found: dict[int, list[Any]] = {}
    blocks = []
    for at in range(0, len(batches), at_once):
        values = [value_of(records) for records in batches[at : at + at_once]]
        block = walk.collect(b"".join(values), [sum(map(len, values[: end + 1])) for end in range(len(values))])
        for number, entries in block.each().items():
            found.setdefault(number, []).extend(entries)
        blocks.append(block)
    return found, blocks


steps = st.lists(st.tuples(st.sampled_from((3, 5, 9)), st.sampled_from(KINDS), st.integers(0, 30)), max_size=40)


@given(steps, st.integers(1, 9), st.integers(1, 4), st.integers(0, 4), st.integers(0, 12))
def test_what_is_usual_is_taken_up_to_what_is_not(
    given: list[tuple[int, str, int]], size: int, at_once: int, first: int, count: int
) -> None:
    nexts = {3: 0, 5: 0, 9: 0}
    records = []
    for ledger, kind, dice in given:
        jump = {0: -1, 1: 1}.get(dice, 0)  # a duplicate, or a gap
        entry = max(0, nexts[ledger] + jump)
        nexts[ledger] = max(nexts[ledger], entry + (kind != "cursor"))
        records.append(Record(ledger, entry, kind))
    wanted = {3: WantedEntries(8, 0, 99), 9: WantedEntries(6, first, first + count)}
    batches = [records[at : at + size] for at in range(0, len(records), size)]
    walk = BatchWalk(wanted)
    found, blocks = swept(walk, batches, at_once)
    assert found == expected(records, wanted)
    for number, entries in found.items():
        assert walk.ends[number] > entries[-1][1]
    for block in blocks:
        each = block.each()
        at, parts = 0, []
        while at < len(block.entries):
            part = block.part(at, 3, 60)
            assert len(part.entries) == 1 or (len(part.entries) <= 3 and part.bodies[-1] - part.bodies[0] <= 60), (
                "no more than was asked for"
            )
            parts += [entry for entries in part.each().values() for entry in entries]
            at += len(part.entries)
        assert sorted(parts) == sorted(entry for entries in each.values() for entry in entries)


def test_it_is_over_when_all_is_taken() -> None:
    walk = BatchWalk({3: WantedEntries(0, 0, 1), 5: WantedEntries(1, 0, 0)})
    found, _ = swept(walk, [[Record(3, 0, "usual"), Record(5, 0, "usual"), Record(7, 0, "usual")]], 1)
    assert (sorted(found), walk.is_over, walk.others) == ([0, 1], False, 1)
    swept(walk, [[Record(3, 1, "usual")]], 1)
    assert walk.is_over


def test_what_are_no_records_is_refused() -> None:
    value = value_of([Record(3, 0, "cursor"), Record(3, 0, "usual")])
    wrong = value + value[:22] + b"\0\7" + value[24:]
    walk = BatchWalk({3: WantedEntries(4, 0, 9)})
    with pytest.raises(PersistenceError, match="invalid header size: 7 bytes"):
        walk.collect(wrong, [len(value), len(wrong)])
    assert walk.ends == {4: 0}, "nothing was taken"


@given(st.binary(max_size=400), st.integers(0, 300))
def test_bytes_of_anybody_are_taken_for_nothing(wrong: bytes, at: int) -> None:
    whole = value_of([Record(3, entry, "usual") for entry in range(3)])
    value = whole[:at] + wrong + whole[at:]
    try:
        found = BatchWalk({3: WantedEntries(0, 0, 9)}).collect(value, [len(value)]).each().get(0, [])
    except PersistenceError:
        return
    assert found == [(3, entry, Record(3, entry, "usual").body) for entry in range(len(found))]
