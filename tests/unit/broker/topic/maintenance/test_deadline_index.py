"""The deadline index stays ordered under concurrent changes, and reads each row once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarbox.broker.timers import Timers
from pulsarbox.broker.topic.maintenance import deadline_index
from pulsarbox.broker.topic.maintenance.deadline_index import AT_ONCE, TopicDeadlines
from pulsarbox.clock import Now
from pulsarbox.storage.catalog import Catalog, deadline_key
from pulsarbox.storage.journal import Batch
from pulsarbox.storage.memory_engine import MemoryDisk, MemoryRows


class CountedRows(MemoryRows):
    """Counts the rows that are read."""

    def __init__(self, disk: MemoryDisk) -> None:
        super().__init__(disk)
        self.looked = 0

    def get(self, key: bytes) -> bytes | None:
        self.looked += 1
        return super().get(key)

    def items(self, prefix: bytes, after: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        for item in super().items(prefix, after):
            self.looked += 1
            yield item


class Store:
    """A catalog with a deadline index, checkpoints on request, and the topics whose deadline has passed."""

    def __init__(self, disk: MemoryDisk | None = None) -> None:
        self.disk = disk or MemoryDisk()
        self.rows = CountedRows(self.disk)
        self.catalog = Catalog(self.rows)
        self.timers = Timers()
        self.deadlines = TopicDeadlines(self.catalog, self.timers)
        self.deadlines.passed.add(self._due)
        self.due: list[str] = []
        self.kept: dict[int, int] = {}
        """The deadline of each topic that has one."""
        self.again: dict[int, int] = {}
        """Topics that request another check, and its delay."""
        self._batch = Batch(1)

    def put(self, topic: int, wall: int) -> None:
        """Replace the deadline of a topic. 0 removes the deadline."""
        before = self.kept.pop(topic, 0)
        if before:
            self.catalog.put(self._batch, deadline_key(before, topic), None)
        if wall:
            self.kept[topic] = wall
            self.catalog.put(self._batch, deadline_key(wall, topic), {"topic": str(topic)})
            self.deadlines.add(wall, topic)

    def _due(self, name: str, now: Now) -> None:
        self.due.append(name)
        later = self.again.pop(int(name), 0)
        self.put(int(name), later and now.wall + later)

    def checkpoint(self) -> None:
        for key, value in self.catalog.take().items():
            if value is None:
                self.disk.rows.pop(key, None)
            else:
                self.disk.rows[key] = value
        self.catalog.stored()

    def turn(self, wall: int) -> None:
        self.timers.run(Now(0.0, wall))


topics, walls = st.integers(1, 9), st.integers(1, 30)
steps = st.lists(
    st.tuples(st.just("put"), topics, st.just(0) | walls)
    | st.tuples(st.just("again"), topics, walls)
    | st.tuples(st.sampled_from(["checkpoint", "pass", "restart"]), st.just(0), st.integers(0, 5)),
    max_size=60,
)


@given(steps, st.integers(1, 4))
def test_they_fall_due_in_their_order(history: list[tuple[str, int, int]], page: int) -> None:
    store, wall = Store(), 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(deadline_index, "PAGE", page)
        for what, topic, number in history:
            if what == "put":
                store.put(topic, wall + number if number else 0)
            elif what == "again":
                store.again[topic] = number
            elif what == "pass":
                wall += number
                expected = sorted((at, each) for each, at in store.kept.items() if at <= wall)
                store.due.clear()
                while (following := store.timers.next().wall) is not None and following <= wall:
                    store.turn(wall)
                assert store.due == [str(each) for _, each in expected]
            else:
                store.checkpoint()
                if what == "restart":
                    kept, store = store.kept, Store(store.disk)
                    store.kept = kept
        first = min(store.kept.values(), default=None)
        if first is not None:
            found = store.timers.next().wall
            assert found is not None
            assert found <= first


def test_each_is_read_a_few_times_however_many_were_before_it() -> None:
    """Deleted rows remain in the store until the next checkpoint. The index skips them without reading them again."""
    store, count = Store(), 2000
    for topic in range(count):
        store.put(topic, 1000 + topic)
    store.checkpoint()
    store.rows.looked = 0
    for topic in range(count):
        store.again[topic] = 1_000_000
    turns = 0
    while len(store.due) < count:
        store.turn(500_000)
        turns += 1
    assert turns == count // AT_ONCE
    assert store.rows.looked < 5 * count


def test_keys_that_are_far_ahead_take_no_memory() -> None:
    store = Store()
    for topic in range(3000):
        store.put(topic, 1000 + topic)
    assert len(store.deadlines._ahead) <= 2 * deadline_index.PAGE
    while len(store.due) < 3000:
        store.turn(10_000)
        assert len(store.deadlines._ahead) <= 2 * deadline_index.PAGE
    assert store.due == [str(topic) for topic in range(3000)]
