"""Conformance suite of engines. A test file subclasses ``EngineConformance`` and supplies a fixture that opens one."""

from collections.abc import Iterator, Mapping

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pulsarbox.errors import EntryDamaged, PersistenceError
from pulsarbox.storage.engine import Checkpoint, Compressing, Engine, ReadRequest
from pulsarbox.storage.journal import Batch
from pulsarbox.storage.record import Meta, pack_meta
from tests.tools.campaigns import examples
from tests.unit.storage.batches import batch_of, compress_with, entry_of

ALL = 1 << 30
OF_A_SUITE = [HealthCheck.function_scoped_fixture, HealthCheck.differing_executors, HealthCheck.too_slow]
"""Several classes run the suite, each with its own store fixture."""


class Store:
    """A store that can be reopened repeatedly, with one engine at a time."""

    def __init__(self) -> None:
        self.engine: Engine | None = None

    def make(self) -> Engine:
        """Create a new engine on the same data."""
        raise NotImplementedError

    def reopen(self) -> Engine:
        """Close the current engine, and recover with a new one."""
        self.close()
        self.engine = self.make()
        recovery = self.engine.recover()
        self.rows = recovery.rows
        self.meta, self.batches = dict(recovery.rows.items(b"")), list(recovery.batches)
        self.next_position = recovery.next_position
        return self.engine

    def close(self) -> None:
        """Close the engine."""
        if self.engine is not None:
            self.engine.close()
            self.engine = None


def ids(engine: Engine, ledger_id: int, first: int, last: int, max_bytes: int = ALL) -> list[int]:
    """Read entries, verify their bytes, and return their IDs."""
    entries = engine.read(ReadRequest(1, ledger_id, first, last, max_bytes))
    for entry in entries:
        assert entry == entry_of(ledger_id, entry.entry_id)
    return [entry.entry_id for entry in entries]


def meta_batch(position: int) -> Batch:
    """A batch without entries."""
    batch = Batch(position)
    batch.add(pack_meta(Meta(b"key", b"%d" % position)))
    return batch


def checkpoint_at(
    engine: Engine, position: int, rows: Mapping[bytes, bytes | None] | None = None, dropped: tuple[int, ...] = ()
) -> None:
    """Commit a checkpoint."""
    engine.checkpoint(Checkpoint(position, rows or {}, dropped))


def reclaim_all(engine: Engine, compressing: Compressing | None = None) -> list[str]:
    """Reclaim space until nothing is left to reclaim; return the completed steps."""
    done: list[str] = []
    while (reclaimed := engine.reclaim(compressing)) is not None:
        assert reclaimed.volumes
        done.append(reclaimed.what)
        assert len(done) < 2000
    return done


def read_all(engine: Engine, ledger_id: int, first: int, end: int, size: int = 40) -> None:
    """Read all entries in requests of 50,000 bytes, and verify their bytes."""
    while first < end:
        entries = engine.read(ReadRequest(1, ledger_id, first, end - 1, 50_000))
        assert entries == [entry_of(ledger_id, first + at, size) for at in range(len(entries))]
        first += len(entries)


class EngineConformance:
    """The suite; a subclass supplies the fixture ``store``."""

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

    @settings(max_examples=examples(100), suppress_health_check=OF_A_SUITE)
    @given(
        left_out=st.sets(st.integers(0, 45)), first=st.integers(0, 39), span=st.integers(0, 45), room=st.integers(0, 20)
    )
    def test_what_is_left_out_is_stepped_over(
        self, left_out_store: Store, left_out: set[int], first: int, span: int, room: int
    ) -> None:
        engine = left_out_store.engine
        assert engine is not None
        size = len(entry_of(1, 0).body)
        wanted = [each for each in range(first, min(first + span + 1, 40)) if each == first or each not in left_out]
        runs = tuple((each, each) for each in sorted(left_out) if each > first)
        answer = engine.read(ReadRequest(1, 1, first, first + span, room * size, runs))
        assert answer == [entry_of(1, each) for each in wanted[: max(1, room)]]

    @pytest.fixture
    def left_out_store(self, store: Store) -> Store:
        """Forty entries of a ledger in batches of one to four, interleaved with another ledger."""
        engine = store.reopen()
        position, first = 1, 0
        while first < 40:
            count = min(position % 4 + 1, 40 - first)
            engine.commit(batch_of(position, [(1, first, count), (2, position - 1, 1)]))
            position, first = position + 1, first + count
        return store

    def test_runs_that_are_left_out_may_overlap_the_end(self, left_out_store: Store) -> None:
        engine = left_out_store.engine
        assert engine is not None
        answer = engine.read(ReadRequest(1, 1, 2, 30, ALL, ((0, 1), (3, 9), (11, 28), (30, 90))))
        assert [each.entry_id for each in answer] == [2, 10, 29]

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
        with pytest.raises(EntryDamaged, match="cannot read entry 1:1: its bytes do not match") as caught:
            ids(engine, 1, 1, 2)
        assert (caught.value.ledger_id, caught.value.first, caught.value.last) == (1, 1, 1)
        assert ids(engine, 1, 2, 2) == [2]

    def test_the_checkpoint_replaces_the_log_before_it(self, store: Store) -> None:
        engine = store.reopen()
        engine.commit(batch_of(1, [(1, 0, 2)]))
        engine.commit(meta_batch(2))
        engine.commit(meta_batch(3))
        checkpoint_at(engine, 2, {b"a": b"1", b"b": b"", b"gone": b"x"})
        assert dict(store.rows.items(b"")) == {b"a": b"1", b"b": b"", b"gone": b"x"}
        engine = store.reopen()
        assert store.meta == {b"a": b"1", b"b": b"", b"gone": b"x"}
        assert store.batches == [meta_batch(3).value()]
        assert store.next_position == 4
        engine.commit(meta_batch(4))
        checkpoint_at(engine, 4, {b"a": b"2", b"gone": None, b"never": None})
        engine = store.reopen()
        assert (store.meta, store.batches, store.next_position) == ({b"a": b"2", b"b": b""}, [], 5)
        assert ids(engine, 1, 0, 1) == [0, 1]

    def test_a_checkpoint_covers_what_is_committed(self, store: Store) -> None:
        engine = store.reopen()
        engine.commit(meta_batch(1))
        with pytest.raises(ValueError, match="checkpoint at 2, but 2 is the next batch"):
            checkpoint_at(engine, 2, {b"a": b"1"})
        assert store.rows.get(b"a") is None

    def test_keys_of_any_length(self, store: Store) -> None:
        engine = store.reopen()
        engine.commit(meta_batch(1))
        rows = {b"k" * size: b"%d" % size for size in (1, 478, 479, 480, 510, 511, 512, 5000)}
        checkpoint_at(engine, 1, rows)
        engine = store.reopen()
        assert store.meta == rows
        assert {key: store.rows.get(key) for key in rows} == rows
        assert store.rows.get(b"k" * 513) is None
        checkpoint_at(engine, 1, {b"k" * 5000: None, b"k" * 512: b"new"})
        store.reopen()
        assert store.meta == {**{key: rows[key] for key in rows if len(key) < 512}, b"k" * 512: b"new"}

    @pytest.mark.parametrize("stem", [b"", b"s", b"s" * 470, b"s" * 479, b"s" * 600])
    def test_rows_are_listed_by_prefix_in_the_order_of_their_whole_keys(self, store: Store, stem: bytes) -> None:
        engine = store.reopen()
        engine.commit(meta_batch(1))
        tails = [b"a", b"b" * 600, b"b" * 601, b"b", b"c/1", b"c/1" + b"x" * 520, b"c/2", b"c", b"d" * 30, b"\xff" * 9]
        rows = {stem + tail: b"v" + tail for tail in tails} | {b"r": b"", b"t": b"", b"z" * 700: b""}
        checkpoint_at(engine, 1, rows)
        for prefix in (b"", stem, stem + b"b", stem + b"c/", stem + b"c/1x", stem + b"e", b"z"):
            expected = sorted(row for row in rows.items() if row[0].startswith(prefix))
            assert list(store.rows.items(prefix)) == expected
            for after in (prefix, stem + b"b", stem + b"b" * 600, stem + b"c/1", stem + b"c/1" + b"x" * 700, b"zz"):
                assert list(store.rows.items(prefix, after)) == [row for row in expected if row[0] > after]

    def test_the_last_row_of_a_prefix_is_found(self, store: Store) -> None:
        engine = store.reopen()
        engine.commit(meta_batch(1))
        rows = {key: b"v" + key for key in (b"a/1", b"b/03", b"b/07", b"b/0a", b"c")}
        checkpoint_at(engine, 1, rows)
        for prefix in (b"a/", b"b/", b"c", b"d"):
            for rest in (b"", b"0", b"1", b"03", b"06", b"09", b"0a", b"zz"):
                behind = [row for row in rows.items() if row[0].startswith(prefix) and row[0] <= prefix + rest]
                assert store.rows.last(prefix, prefix + rest) == max(behind, default=None), (prefix, rest)

    def test_rows_may_be_written_while_they_are_listed(self, store: Store) -> None:
        engine = store.reopen()
        engine.commit(meta_batch(1))
        checkpoint_at(engine, 1, {b"%06d" % number: b"1" for number in range(3000)})
        listed = store.rows.items(b"")
        found = [next(listed)[0] for _ in range(700)]
        checkpoint_at(engine, 1, {b"%06d" % number: b"2" for number in range(0, 3000, 2)})
        found += [key for key, _ in listed]
        assert found == [b"%06d" % number for number in range(3000)]
        assert store.rows.get(b"000002") == b"2"

    def test_what_is_dropped_is_given_back_and_the_rest_stays(self, store: Store) -> None:
        engine = store.reopen()
        for position in range(1, 121):
            engine.commit(batch_of(position, [(ledger, 2 * position - 2, 2) for ledger in range(1, 9)], 400))
        checkpoint_at(engine, 60, {b"a": b"1"}, (2, 3, 4))
        reclaim_all(engine)
        checkpoint_at(engine, 120, {}, (5, 6, 7, 8))
        reclaim_all(engine)
        assert engine.reclaim() is None
        for _ in range(2):
            read_all(engine, 1, 0, 240, 400)
            engine = store.reopen()
            assert (store.meta, store.batches, store.next_position) == ({b"a": b"1"}, [], 121)
        engine.commit(batch_of(121, [(1, 240, 2)], 400))
        read_all(engine, 1, 0, 242, 400)
        checkpoint_at(engine, 121, {}, (1,))
        reclaim_all(engine)
        engine = store.reopen()
        assert (store.batches, store.next_position) == ([], 122)
        engine.commit(batch_of(122, [(9, 0, 1)]))
        assert ids(engine, 9, 0, 0) == [0]

    @pytest.mark.parametrize("codec", ["zstd", "zlib", "lz4", "snappy"])
    def test_what_is_compressed_comes_back_as_it_came(self, store: Store, codec: str) -> None:
        engine = store.reopen()
        for position in range(1, 61):
            engine.commit(batch_of(position, [(ledger, 2 * position - 2, 2) for ledger in range(1, 7)], 400))
        checkpoint_at(engine, 60)
        compressing = compress_with(codec, 1, 2, 3)
        reclaim_all(engine, compressing)
        assert engine.reclaim(compressing) is None
        for _ in range(2):
            for ledger in range(1, 7):
                read_all(engine, ledger, 0, 120, 400)
            assert [entry.entry_id for entry in engine.read(ReadRequest(1, 1, 3, 99, 1000))] == [3, 4]
            engine = store.reopen()
            assert store.batches == []
        checkpoint_at(engine, 60, {}, (1, 2))
        reclaim_all(engine, None)
        for ledger in range(3, 7):
            read_all(engine, ledger, 0, 120, 400)

    def test_what_the_checkpoint_does_not_cover_is_not_compressed(self, store: Store) -> None:
        engine = store.reopen()
        batches = [batch_of(position, [(1, position - 1, 1)], 4000) for position in range(1, 40)]
        for batch in batches:
            engine.commit(batch)
        checkpoint_at(engine, 10)
        reclaim_all(engine, compress_with("zlib"))
        read_all(engine, 1, 0, 39, 4000)
        engine = store.reopen()
        assert store.batches == [batch.value() for batch in batches[10:]]
        read_all(engine, 1, 0, 39, 4000)

    def test_what_the_checkpoint_does_not_cover_stays(self, store: Store) -> None:
        engine = store.reopen()
        batches = [batch_of(position, [(1, position - 1, 1), (2, position - 1, 1)], 4000) for position in range(1, 40)]
        for batch in batches:
            engine.commit(batch)
        checkpoint_at(engine, 10, {}, (1,))
        reclaim_all(engine)
        engine = store.reopen()
        assert store.batches == [batch.value() for batch in batches[10:]]
        read_all(engine, 2, 0, 39, 4000)

    def test_positions_grow_by_one(self, store: Store) -> None:
        engine = store.reopen()
        engine.commit(meta_batch(1))
        for position in (0, 1, 3):
            with pytest.raises(ValueError, match="2 is next"):
                engine.commit(meta_batch(position))
        engine.commit(meta_batch(2))

    @settings(max_examples=examples(20), suppress_health_check=OF_A_SUITE)
    @given(data=st.data())
    def test_any_history_reads_as_a_dict_would(self, store: Store, data: st.DataObject) -> None:
        engine = store.reopen()
        ends: dict[int, int] = {}
        rows = dict(store.meta)
        next_ledger = 100 * store.next_position  # ledgers unique to this example: the examples share one store
        alive = [next_ledger + number for number in range(4)]
        next_ledger += 4
        dropped: list[int] = []
        for _ in range(data.draw(st.integers(1, 40))):
            what = data.draw(st.integers(0, 13))
            position = store.next_position
            if what == 0:
                engine = store.reopen()
            elif what == 1:
                checkpoint_at(engine, position - 1, {b"row": b"%d" % position}, tuple(dropped))
                rows[b"row"] = b"%d" % position
                dropped = []
            elif what in (2, 3):
                codec = data.draw(st.sampled_from(("", "zlib", "zstd")))
                compressing = compress_with(codec, generation=len(codec)) if codec else None
                for _ in range(data.draw(st.integers(1, 6))):
                    engine.reclaim(compressing)
            elif what == 4:
                gone = data.draw(st.sampled_from(alive))
                alive[alive.index(gone)] = next_ledger
                next_ledger += 1
                ends.pop(gone, None)
                dropped.append(gone)
            else:
                runs = data.draw(st.dictionaries(st.sampled_from(alive), st.integers(1, 60), max_size=3))
                engine.commit(batch_of(position, [(key, ends.get(key, 0), count) for key, count in runs.items()]))
                store.next_position = position + 1
                for key, count in runs.items():
                    ends[key] = ends.get(key, 0) + count
            if ends:
                ledger_id = data.draw(st.sampled_from(sorted(ends)))
                first = data.draw(st.integers(0, ends[ledger_id] - 1))
                assert ids(engine, ledger_id, first, ALL) == list(range(first, ends[ledger_id]))
        for _ in range(2):
            for ledger_id, end in ends.items():
                assert ids(engine, ledger_id, 0, ALL) == list(range(end))
            position = store.next_position
            engine = store.reopen()
            assert (store.next_position, store.meta) == (position, rows)
            reclaim_all(engine)
