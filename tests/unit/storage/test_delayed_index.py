"""The index of delayed entries, in memory and in the checkpoint, on both engines."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pulsarbox.storage import delayed_index as module
from pulsarbox.storage.catalog import topic_key
from pulsarbox.storage.delayed_index import DelayedChunk, Delays, chunk_entries, unpack_chunk
from pulsarbox.storage.engine import Checkpoint, Engine
from pulsarbox.storage.journal import Batch
from pulsarbox.storage.lmdb.engine import LmdbEngine
from pulsarbox.storage.memory_engine import MemoryDisk, MemoryEngine
from pulsarbox.storage.record import Position
from pulsarbox.storage.recovery import Store
from tests.tools.campaigns import examples

TOPIC, TOPIC_ID = "persistent://public/default/t", 7
CHUNK = 16
TIMES = st.one_of(st.integers(1, 30), st.integers(1, 2**63 - 1))
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("record"), st.tuples(st.integers(3, 5), st.integers(0, 100), TIMES)),
        st.tuples(
            st.just("record_all"),
            st.tuples(st.integers(3, 5), st.integers(0, 100), st.lists(TIMES, max_size=2 * CHUNK)),
        ),
        st.tuples(st.just("roll_back"), st.tuples(st.integers(3, 5), st.integers(-1, 100))),
        st.tuples(st.just("drop"), st.integers(3, 5)),
        st.tuples(st.sampled_from(["checkpoint", "reopen", "unload"]), st.none()),
    ),
    max_size=60,
)


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "DELAY_CHUNK", CHUNK)
    monkeypatch.setattr(module, "CACHED_CHUNKS", 2)


@pytest.fixture(params=["memory", "lmdb"])
def opener(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Callable[[], Engine]]:
    """Return a function that creates a store and returns a reusable function to open an engine on it."""
    numbers = count()

    def new() -> Callable[[], Engine]:
        if request.param == "memory":
            disk = MemoryDisk()
            return lambda: MemoryEngine(disk)
        path = tmp_path / str(next(numbers))
        return lambda: LmdbEngine(path)

    return new


class Harness:
    """A delayed index with a dictionary of its expected content.

    The log is empty: a reopening would lose everything after the last checkpoint, so it writes a checkpoint first.
    """

    def __init__(self, make: Callable[[], Engine]) -> None:
        self.make = make
        self.right: dict[Position, int] = {}
        self.engine = make()
        self.store = Store(self.engine.recover())
        self.stored = self.store.create(TOPIC, TOPIC_ID)
        batch = Batch(1)
        self.store.catalog.put(batch, topic_key(TOPIC), {"id": TOPIC_ID})
        self.engine.commit(batch)
        self.position = 1

    @property
    def delays(self) -> Delays:
        return self.stored.delays

    def record(self, entry: tuple[int, int, int]) -> None:
        ledger_id, entry_id, time = entry
        if Position(ledger_id, entry_id) not in self.right:
            self.delays.record(ledger_id, entry_id, time, _size(entry_id))
            self.right[Position(ledger_id, entry_id)] = time

    def record_all(self, run: tuple[int, int, list[int]]) -> None:
        """Record consecutive entries, as read by a log replay; some may exist already."""
        ledger_id, first, times = run
        found = [(first + i, time) for i, time in enumerate(times)]
        found = [(entry_id, self.right.get(Position(ledger_id, entry_id), time)) for entry_id, time in found]
        entries, sizes = [entry_id for entry_id, _ in found], [_size(entry_id) for entry_id, _ in found]
        self.delays.record_all(ledger_id, entries, [time for _, time in found], sizes)
        self.right.update((Position(ledger_id, entry_id), time) for entry_id, time in found)

    def roll_back(self, last: tuple[int, int]) -> None:
        self.delays.roll_back(Position(*last))
        self.right = {position: time for position, time in self.right.items() if position <= last}

    def drop(self, ledger_id: int) -> None:
        self.delays.drop(ledger_id)
        self.right = {position: time for position, time in self.right.items() if position.ledger_id != ledger_id}

    def checkpoint(self, nothing: None = None) -> None:
        self.store.note_delays(self.delays)
        self.engine.checkpoint(Checkpoint(self.position, self.store.catalog.take(), ()))
        self.store.catalog.stored()

    def reopen(self, nothing: None = None) -> None:
        self.checkpoint()
        self.engine.close()
        self.engine = self.make()
        self.store = Store(self.engine.recover())
        self._load()

    def unload(self, nothing: None = None) -> None:
        self.store.unload(self.stored)
        self._load()

    def _load(self) -> None:
        found = self.store.topic(TOPIC)
        assert found is not None
        self.stored = found

    def check(self) -> None:
        delays = self.delays
        assert rows_of(delays) == self.right
        assert len(delays) == len(self.right)
        for position, time in self.right.items():
            assert delays.has(*position, time)
            assert not delays.has(*position, time + 1)
        for after in [(2, 0), (3, -1), (3, 40), (4, 15), (4, 16), (9, 0)]:
            for time in (0, 15, 2**62):
                late = {position: at for position, at in self.right.items() if position > after and at > time}
                size = sum(_size(position.entry_id) for position in late)
                assert delays.not_due(after, time) == (len(late), size, min(late.values(), default=0))


def _size(entry_id: int) -> int:
    return entry_id % 7 * 1000


def rows_of(delays: Delays) -> dict[Position, int]:
    found = {}
    for (ledger_id, number), extent in delays.extents():
        chunk = delays.chunk(ledger_id, number)
        rows = list(chunk.rows())
        assert rows == sorted(rows)
        size = sum(size for *_, size in rows)
        assert (extent.count, extent.first, extent.last, extent.size) == (len(rows), rows[0][0], rows[-1][0], size)
        for time, place, size in rows:
            assert chunk.due(place) == time
            assert size == _size(number * CHUNK + place)
            found[Position(ledger_id, number * CHUNK + place)] = time
    return found


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=examples(60))
@given(steps=STEPS)
def test_any_history_is_as_a_dictionary_would_have_it(
    opener: Callable[[], Callable[[], Engine]], steps: list[tuple[str, Any]]
) -> None:
    harness = Harness(opener())
    try:
        for what, argument in steps:
            getattr(harness, what)(argument)
        harness.check()
        harness.reopen()
        harness.check()
        harness.drop(3)
        harness.drop(4)
        harness.drop(5)
        harness.reopen()
        assert not [key for key in harness.store.catalog.keys("") if key.startswith("delay")]
    finally:
        harness.engine.close()


@given(st.lists(st.tuples(TIMES, st.integers(0, CHUNK - 1)), unique_by=lambda row: row[1]))
def test_a_chunk_reads_as_it_was_packed(rows: list[tuple[int, int]]) -> None:
    chunk = DelayedChunk()
    for row in rows:
        assert chunk.add(*row, row[1] * 3)
        assert not chunk.add(*row, row[1] * 3)
    packed = chunk.pack()
    assert chunk_entries(packed) == len(rows)
    assert list(unpack_chunk(packed, len(rows)).rows()) == sorted((*row, row[1] * 3) for row in rows)


def test_a_row_that_is_cut_off_is_none() -> None:
    with pytest.raises(ValueError, match="11 bytes"):
        unpack_chunk(bytes(11), 1)


@given(
    st.lists(st.tuples(st.integers(1, 5), st.integers(0, CHUNK - 1)), unique_by=lambda row: row[1]),
    st.tuples(st.integers(0, 6), st.integers(3, 5), st.integers(0, 3 * CHUNK)),
)
def test_what_is_behind_a_key(rows: list[tuple[int, int]], key: tuple[int, int, int]) -> None:
    chunk, ledger_id, base = DelayedChunk(), 4, CHUNK
    for row in rows:
        chunk.add(*row, 1)
    keys = sorted((time, ledger_id, base + place) for time, place in rows)
    assert chunk.behind(key, ledger_id, base) == sum(each <= key for each in keys)


def test_memory_does_not_grow_with_their_number(opener: Callable[[], Callable[[], Engine]]) -> None:
    harness = Harness(opener())
    for entry_id in range(40 * CHUNK):
        harness.delays.record(3, entry_id, 1000 + entry_id * 7919 % 5000, 1)
        if entry_id % (5 * CHUNK) == 0:
            harness.checkpoint()
            assert not harness.delays._changed
    harness.checkpoint()
    for number in range(40):
        assert len(harness.delays.chunk(3, number)) == CHUNK
    assert len(harness.delays._cached) == 2
    harness.engine.close()


def test_a_checkpoint_writes_what_changed() -> None:
    harness = Harness(lambda: MemoryEngine(MemoryDisk()))
    for entry_id in range(3 * CHUNK):
        harness.delays.record(3, entry_id, 1000, 1)
    assert len(harness.delays.dirty_rows()) == 4
    assert harness.delays.dirty_rows() == {}
    harness.delays.record(3, 3 * CHUNK, 1000, 1)
    assert len(harness.delays.dirty_rows()) == 2
