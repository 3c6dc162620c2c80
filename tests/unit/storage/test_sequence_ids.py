"""Sequence IDs of producers: pushed and persisted values, and the checkpoint rows."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pulsarbox.storage.catalog import sequence_key
from pulsarbox.storage.engine import Checkpoint
from pulsarbox.storage.journal import Batch
from pulsarbox.storage.memory_engine import MemoryDisk, MemoryEngine
from pulsarbox.storage.record import Begun, Meta, SequenceId, pack_meta, pack_sequence, unpack_records
from pulsarbox.storage.recovery import Store
from pulsarbox.storage.sequence_ids import NOTHING, LastSequence, SequenceIds

NAMES = st.sampled_from(["a", "b", "c/d", "ü", "e" * 600])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("push"), NAMES),
        st.tuples(st.just("push_chunk"), NAMES),
        st.tuples(st.just("forget"), NAMES),
        st.tuples(st.sampled_from(["commit", "fail", "checkpoint", "reload"]), st.just("")),
    ),
    max_size=60,
)


def replayed(records: list[bytes], into: SequenceIds) -> None:
    for _, record in unpack_records(b"".join(records)):
        assert isinstance(record, SequenceId)
        into.replay(record)


def test_a_record_is_read_as_it_was_written() -> None:
    records = [
        SequenceId(7, "prodücer", -1, 5), SequenceId(7, "p", 2**63 - 1, 0), SequenceId(7, "q", -1, 0, True),
        SequenceId(7, "ü", NOTHING, 3, begun=Begun(-2, 9, (0, 2**32 - 1))),
        SequenceId(7, "p", 0, 3, begun=Begun(1, 0, ())),
    ]  # fmt: skip
    packed = b"".join(pack_sequence(record) for record in records)
    assert [record for _, record in unpack_records(packed)] == records


Known = tuple[int, Begun | None]


def known(sequences: SequenceIds) -> dict[str, Known]:
    return {name: (last.highest, last.begun) for name, last in sequences.persisted.items()}


class Harness:
    """Sequence IDs with a dictionary of their expected values, a log, and checkpoint rows."""

    def __init__(self) -> None:
        self.sequences = SequenceIds(1)
        self.right: dict[str, Known] = {}
        self.pushed: dict[str, Known] = {}
        self.log: list[bytes] = []
        self.open: list[bytes] = []
        self.rows: dict[str, Any] = {}
        self.count = 0

    def push(self, name: str) -> None:
        self.count += 1
        self.sequences.push(name, self.count)
        _, begun = self.pushed.get(name) or self.right.get(name) or (0, None)
        self.pushed[name] = self.count, begun if begun is not None and begun.sequence_id > self.count else None

    def push_chunk(self, name: str) -> None:
        """Push a chunk whose sequence ID is above the next few, so that other messages may overtake it."""
        self.count += 1
        highest, begun = self.pushed.get(name) or self.right.get(name) or (NOTHING, None)
        begun = begun or Begun(self.count + 3, self.count, ())
        begun = begun._replace(sums=(*begun.sums, self.count))
        self.sequences.push_chunk(name, begun)
        self.pushed[name] = highest, begun

    def forget(self, name: str) -> None:
        if name in self.sequences.names():
            self.open.append(self.sequences.forget(name))
            self.right.pop(name, None)
            self.pushed.pop(name, None)

    def commit(self, name: str = "", *, fails: bool = False, checkpoint: bool = False) -> None:
        changes = self.sequences.take_changes(self.count)
        rows = self.sequences.dirty_rows() if checkpoint else {}
        if fails:
            self.sequences.roll_back()
        else:
            self.log += self.open + changes
            self.open = []
            self.sequences.confirm()
            self.right |= self.pushed
            if checkpoint:
                self.rows |= rows
                self.log.clear()
        self.pushed.clear()

    def fail(self, name: str) -> None:
        self.commit(fails=True)

    def checkpoint(self, name: str) -> None:
        self.commit(checkpoint=True)

    def recovered(self) -> SequenceIds:
        found = SequenceIds(1)
        prefix = len(sequence_key(1))
        found.restore({key[prefix:]: row for key, row in self.rows.items() if row is not None})
        replayed(self.log, found)
        return found

    def reload(self, name: str) -> None:
        self.commit()
        self.sequences = self.recovered()

    def check(self) -> None:
        assert known(self.sequences) == self.right
        for name, (highest, begun) in self.pushed.items():
            assert self.sequences.last_pushed(name) == highest
            assert begun is None or self.sequences.begun_pushed(name) == begun
        self.commit()  # a forgotten producer is logged only by this commit
        assert known(self.recovered()) == self.right


@given(STEPS)
def test_any_history_is_as_a_dictionary_would_have_it(steps: list[tuple[str, str]]) -> None:
    harness = Harness()
    for what, name in steps:
        getattr(harness, what)(name)
    harness.check()


def test_only_changed_rows_are_written() -> None:
    sequences = SequenceIds(1)
    for name in ("a", "b"):
        sequences.push(name, 1)
    sequences.take_changes(10)
    sequences.confirm()
    assert set(sequences.dirty_rows()) == {sequence_key(1, "a"), sequence_key(1, "b")}
    assert sequences.dirty_rows() == {}
    sequences.push("b", 2)
    sequences.take_changes(11)
    assert sequences.dirty_rows() == {sequence_key(1, "b"): {"highest": 2, "published": 11}}
    sequences.roll_back()  # the rows revert, and are written again in their previous state
    assert sequences.dirty_rows() == {sequence_key(1, "b"): {"highest": 1, "published": 10}}


def test_those_untouched_longest_come_first_after_a_load_too() -> None:
    sequences = SequenceIds(1)
    sequences.restore({name: {"highest": 1, "published": at} for name, at in (("a", 30), ("b", 10), ("c", 20))})
    assert list(sequences.persisted) == ["b", "c", "a"]
    sequences.touch("b", 40)
    sequences.touch("unknown", 40)
    assert list(sequences.persisted) == ["c", "a", "b"]
    assert sequences.persisted["b"] == LastSequence(1, 40)


def store_of(*records: bytes) -> Store:
    """The store recovered from a checkpoint with one topic and its sequence ID, and a log with the given records."""
    disk = MemoryDisk()
    engine = MemoryEngine(disk)
    engine.recover()
    empty = Batch(disk.next_position)
    empty.add(pack_meta(Meta(b"tenant/x", b"{}")))
    engine.commit(empty)
    ledger = {"created": 1, "closed": 0, "messages_before": 0, "bytes_before": 0, "entries": 0, "size": 0}
    rows = {
        "topic/t": {"id": 1},
        "owner/0000000000000001": "t",
        "ledger/0000000000000001/0000000000000002": ledger,
        sequence_key(1, "p"): {"highest": 5, "published": 3},
    }
    packed: dict[bytes, bytes | None] = {key.encode(): json.dumps(row).encode() for key, row in rows.items()}
    engine.checkpoint(Checkpoint(empty.position, packed, ()))
    for record in records:
        batch = Batch(disk.next_position)
        batch.add(record)
        engine.commit(batch)
    return Store(engine.recover())


def test_recovery_takes_the_row_and_the_log_behind_it() -> None:
    stored = store_of(pack_sequence(SequenceId(1, "q", 9, 4))).topic("t")
    assert stored is not None
    assert stored.sequences.persisted == {"p": LastSequence(5, 3), "q": LastSequence(9, 4)}
    assert set(stored.sequences.dirty_rows()) == {sequence_key(1, "q")}


def test_recovery_forgets_what_was_forgotten() -> None:
    stored = store_of(pack_sequence(SequenceId(1, "p", -1, 0, forgotten=True))).topic("t")
    assert stored is not None
    assert stored.sequences.persisted == {}
    assert stored.sequences.dirty_rows() == {sequence_key(1, "p"): None}


def test_a_topic_that_the_log_deletes_takes_its_rows_along() -> None:
    store = store_of(pack_sequence(SequenceId(1, "q", 9, 4)), pack_meta(Meta(b"topic/t", None)))
    assert list(store.catalog.keys("sequence/")) == []
    assert store.replayed_sequences == {}


def test_sequence_ids_of_a_topic_that_is_gone_are_stepped_over() -> None:
    store = store_of(pack_sequence(SequenceId(77, "q", 9, 4)))
    assert store.replayed_sequences == {}
