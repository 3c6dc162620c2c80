"""A data directory for tests, with the history of changes and its expected content."""

from collections.abc import Callable
from pathlib import Path

from pulsarbox.storage.format import ENTRY_HEADER
from pulsarbox.storage.lmdb.engine import LmdbEngine
from tests.unit.storage.batches import batch_of, body_of
from tests.unit.storage.engine_conformance import Store, checkpoint_at, read_all, reclaim_all

SIZE = 400
LEDGERS = tuple(range(10))
VOLUME_SIZE = 150_000


class DiskStore(Store):
    """A data directory, its history of operations, and its expected content."""

    def __init__(self, path: Path, volume_size: int = VOLUME_SIZE) -> None:
        super().__init__()
        self.path = path
        self.volume_size = volume_size
        self.steps: list[str] = []
        self.on_step: Callable[[str], None] = lambda _: None
        self.ends: dict[int, int] = {}
        self.dropped: set[int] = set()

    def make(self) -> LmdbEngine:
        return LmdbEngine(
            self.path, volume_size=self.volume_size, index_flush_entries=25, open_volumes_max=2, step=self._step
        )

    def open(self) -> LmdbEngine:
        engine = self.reopen()
        assert isinstance(engine, LmdbEngine)
        return engine

    @property
    def now(self) -> LmdbEngine:
        assert isinstance(self.engine, LmdbEngine)
        return self.engine

    def commit(self, rounds: int, ledgers: tuple[int, ...] = LEDGERS, size: int = SIZE) -> None:
        """Commit two entries to each ledger per round."""
        for _ in range(rounds):
            runs = [(ledger_id, self.ends.get(ledger_id, 0), 2) for ledger_id in ledgers]
            self.now.commit(batch_of(self.next_position, runs, size))
            self.next_position += 1
            for ledger_id, first, _ in runs:
                self.ends[ledger_id] = first + 2

    def drop(self, *ledgers: int) -> None:
        """Delete ledgers and write a checkpoint without them."""
        self.dropped.update(ledgers)
        checkpoint_at(self.now, self.next_position - 1, {b"a": b"%d" % self.next_position}, ledgers)

    def check(self, size: int = SIZE) -> None:
        """Check that all live entries are readable."""
        for ledger_id, end in self.ends.items():
            if ledger_id not in self.dropped:
                read_all(self.now, ledger_id, 0, end, size)

    def disk(self) -> int:
        """Return the size of the data directory on disk, in bytes."""
        return sum(path.stat().st_blocks * 512 for path in self.path.rglob("*"))

    def live(self, size: int = SIZE) -> int:
        """Return the size of the live records, in bytes."""
        entries = sum(end for ledger_id, end in self.ends.items() if ledger_id not in self.dropped)
        return entries * (ENTRY_HEADER.size + len(body_of(0, 0, size)))

    def names(self) -> list[str]:
        """Return the names of the existing volumes."""
        paths = [*(self.path / "volumes").iterdir(), *(self.path / "packed").iterdir()]
        return sorted(f"{path.parent.name}/{path.name}" for path in paths)

    def _step(self, name: str) -> None:
        self.steps.append(name)
        self.on_step(name)


def assert_nothing_is_left_over(store: DiskStore) -> None:
    """Check that each directory is listed in the tables or open for writes, and that the tables list no dead data."""
    volumes = store.now._volumes
    with volumes.metas.using(0) as meta:
        contents = meta.contents()
        for ledger_id in store.dropped:
            assert meta.stretches_of([ledger_id], frozenset(contents)) == []
        entries = sum(content.entries for content in contents.values())
        ledgers = sorted(set(store.ends) - store.dropped)
        stretches = meta.stretches_of(ledgers, frozenset(contents))
        assert sum(one.entries for one in stretches) == entries
        assert sum(one.bytes for one in stretches) == sum(content.bytes for content in contents.values())
        assert all(one.bytes == one.entries * (ENTRY_HEADER.size + len(body_of(0, 0, SIZE))) for one in stretches)
    assert store.names() == sorted(map(volumes.directory.name, {*contents, *volumes.live}))


def sealed_store(store: DiskStore) -> tuple[int, Path]:
    """Create sealed volumes and close the store; return the number of entries of ledger 1 in the first volume, and its
    file."""
    store.commit(60)
    checkpoint_at(store.now, store.next_position - 1)
    reclaim_all(store.now)
    with store.now._volumes.metas.using(0) as meta:
        stretch = meta.stretch_of(1, 0)
    assert stretch is not None
    store.close()
    return stretch.entries, store.path / "volumes" / "00000001" / "data.mdb"
