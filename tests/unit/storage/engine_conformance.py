"""What every engine has to do. A test file subclasses ``EngineConformance`` and says how to open one."""

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pulsarbox.errors import PersistenceError
from pulsarbox.storage.engine import Engine, ReadRequest
from pulsarbox.storage.journal import Batch
from pulsarbox.storage.record import Meta, pack_meta
from tests.unit.storage.batches import batch_of, entry_of

ALL = 1 << 30


class Store:
    """A store that can be opened again and again, with one engine at a time."""

    def __init__(self) -> None:
        self.engine: Engine | None = None

    def make(self) -> Engine:
        """A new engine on the same data."""
        raise NotImplementedError

    def reopen(self) -> Engine:
        """Close the engine there is, and recover with another."""
        self.close()
        self.engine = self.make()
        recovery = self.engine.recover()
        self.meta, self.batches = dict(recovery.rows.items(b"")), list(recovery.batches)
        self.next_position = recovery.next_position
        return self.engine

    def close(self) -> None:
        """Let go of it."""
        if self.engine is not None:
            self.engine.close()
            self.engine = None


def ids(engine: Engine, ledger_id: int, first: int, last: int, max_bytes: int = ALL) -> list[int]:
    """Read, check the bytes, and give the ids."""
    entries = engine.read(ReadRequest(1, ledger_id, first, last, max_bytes))
    for entry in entries:
        assert entry == entry_of(ledger_id, entry.entry_id)
    return [entry.entry_id for entry in entries]


def meta_batch(position: int, checkpoint: dict[bytes, bytes | None] | None = None) -> Batch:
    """A batch without entries."""
    batch = Batch(position)
    batch.add(pack_meta(Meta(b"key", b"%d" % position)))
    batch.checkpoint = checkpoint
    return batch


class EngineConformance:
    """The suite; ``store`` is the fixture that a subclass gives."""

    @pytest.fixture
    def store(self) -> Iterator[Store] | Store:
        raise NotImplementedError

    def test_a_new_store_is_empty_and_begins_at_one(self, store: Store) -> None:
        store.reopen()
        assert (store.meta, store.batches, store.next_position) == ({}, [], 1)

    def test_what_is_committed_is_read_and_recovered(self, store: Store) -> None:
        engine = store.reopen()
        batches = [batch_of(1, [(5, 0, 3), (6, 0, 2)]), batch_of(2, [(6, 2, 2)]), meta_batch(3)]
        for batch in batches:
            engine.commit(batch)
        for _ in range(2):
            assert ids(engine, 5, 0, 2) == [0, 1, 2]
            assert ids(engine, 6, 1, 3) == [1, 2, 3]
            engine = store.reopen()
        assert store.batches == [batch.value() for batch in batches]
        assert store.next_position == 4

    def test_a_read_is_visible_as_soon_as_its_commit_returns(self, store: Store) -> None:
        engine = store.reopen()
        for position in range(1, 30):
            engine.commit(batch_of(position, [(1, position - 1, 1)]))
            assert ids(engine, 1, 0, position - 1) == list(range(position))

    def test_a_read_ends_at_its_bytes_but_gives_one(self, store: Store) -> None:
        engine = store.reopen()
        engine.commit(batch_of(1, [(1, 0, 4)]))
        size = len(entry_of(1, 0).body)
        assert ids(engine, 1, 0, 3, 0) == [0]
        assert ids(engine, 1, 0, 3, 2 * size) == [0, 1]
        assert ids(engine, 1, 0, 3, 3 * size - 1) == [0, 1]

    def test_a_read_ends_where_the_ledger_does(self, store: Store) -> None:
        engine = store.reopen()
        engine.commit(batch_of(1, [(1, 0, 4), (2, 0, 1)]))
        assert ids(engine, 1, 2, 99) == [2, 3]

    @pytest.mark.parametrize(("ledger_id", "entry_id"), [(1, 4), (1, 99), (2, 0), (0, 0), (3, 0)])
    def test_what_does_not_exist_cannot_be_read(self, store: Store, ledger_id: int, entry_id: int) -> None:
        engine = store.reopen()
        engine.commit(batch_of(1, [(1, 0, 4), (2, 7, 1)]))
        with pytest.raises(PersistenceError, match="does not exist"):
            ids(engine, ledger_id, entry_id, entry_id)

    def test_a_ledger_may_begin_anywhere(self, store: Store) -> None:
        engine = store.reopen()
        engine.commit(batch_of(1, [(2**63, 1000, 3)]))
        assert ids(engine, 2**63, 1001, 1002) == [1001, 1002]

    def test_a_damaged_entry_is_an_error_or_the_end(self, store: Store) -> None:
        engine = store.reopen()
        batch = batch_of(1, [(1, 0, 3)])
        batch.parts[3] = batch.parts[3][:-1] + b"!"  # header, body, header, body
        engine.commit(batch)
        assert ids(engine, 1, 0, 2) == [0]
        with pytest.raises(PersistenceError, match="damaged"):
            ids(engine, 1, 1, 2)
        assert ids(engine, 1, 2, 2) == [2]

    def test_the_checkpoint_replaces_the_log_before_it(self, store: Store) -> None:
        engine = store.reopen()
        engine.commit(batch_of(1, [(1, 0, 2)]))
        engine.commit(meta_batch(2, {b"a": b"1", b"b": b"", b"gone": b"x"}))
        engine.commit(meta_batch(3))
        store.reopen()
        assert store.meta == {b"a": b"1", b"b": b"", b"gone": b"x"}
        assert store.batches == [meta_batch(3).value()]
        assert store.next_position == 4
        assert store.engine is not None
        store.engine.commit(meta_batch(4, {b"a": b"2", b"gone": None, b"never": None}))
        engine = store.reopen()
        assert (store.meta, store.batches, store.next_position) == ({b"a": b"2", b"b": b""}, [], 5)
        assert ids(engine, 1, 0, 1) == [0, 1]

    def test_keys_of_any_length(self, store: Store) -> None:
        engine = store.reopen()
        rows = {b"k" * size: b"%d" % size for size in (1, 510, 511, 512, 5000)}
        engine.commit(meta_batch(1, dict(rows)))
        store.reopen()
        assert store.meta == rows
        assert store.engine is not None
        store.engine.commit(meta_batch(2, {b"k" * 5000: None, b"k" * 512: b"new"}))
        store.reopen()
        assert store.meta == {**{key: rows[key] for key in rows if len(key) < 512}, b"k" * 512: b"new"}

    def test_positions_grow_by_one(self, store: Store) -> None:
        engine = store.reopen()
        engine.commit(meta_batch(1))
        for position in (0, 1, 3):
            with pytest.raises(ValueError, match="2 is next"):
                engine.commit(meta_batch(position))
        engine.commit(meta_batch(2))

    @settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(data=st.data())
    def test_any_history_reads_as_a_dict_would(self, store: Store, data: st.DataObject) -> None:
        engine = store.reopen()
        ends: dict[int, int] = {}
        base = 100 * store.next_position  # ledgers of this example alone: the store is that of the ones before
        for _ in range(data.draw(st.integers(1, 25))):
            if data.draw(st.integers(0, 9)) == 0:
                engine = store.reopen()
            runs = data.draw(st.dictionaries(st.integers(base, base + 4), st.integers(1, 40), max_size=3))
            position = store.next_position
            engine.commit(batch_of(position, [(key, ends.get(key, 0), count) for key, count in runs.items()]))
            store.next_position = position + 1
            for key, count in runs.items():
                ends[key] = ends.get(key, 0) + count
            if ends:
                ledger_id = data.draw(st.sampled_from(sorted(ends)))
                first = data.draw(st.integers(0, ends[ledger_id] - 1))
                assert ids(engine, ledger_id, first, ALL) == list(range(first, ends[ledger_id]))
        engine = store.reopen()
        for ledger_id, end in ends.items():
            assert ids(engine, ledger_id, 0, ALL) == list(range(end))
