"""Data directories to back up, and the expected content of a restored one."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pulsarbox.storage.backup.creation import Made, Plan, create
from pulsarbox.storage.backup.pace import CopyPace
from pulsarbox.storage.backup.repository import Repository
from pulsarbox.storage.backup.restoring import Restored, restore
from tests import forks
from tests.unit.storage.directories import make_sample
from tests.unit.storage.disk_store import DiskStore
from tests.unit.storage.engine_conformance import checkpoint_at, reclaim_all


def quiet(what: str, done: int, total: int) -> None:
    """Discard progress reports."""
    assert what
    assert 0 <= done <= total


def backed_up(source: Path, target: Path, plan: Plan | None = None) -> Made:
    return create(source, target, plan or Plan(), quiet)


def restored(target: Path, data: Path, name: str | None = None, **options: bool) -> Restored:
    return restore(Repository(target), name, data, CopyPace(0, quiet), **options)


def fill(store: DiskStore) -> None:
    """Create sealed volumes, packed ones, and a growing one, with live and dead ledgers."""
    store.commit(60)
    store.drop(0, 1, 2, 3, 4, 5, 6)
    reclaim_all(store.now)
    store.commit(30, (20, 21, 22))
    checkpoint_at(store.now, store.next_position - 1)
    reclaim_all(store.now)
    store.commit(3, (20, 21, 22))
    names = store.names()
    assert sum(name.startswith("packed/") for name in names) == 2
    assert sum(name.startswith("volumes/") for name in names) == 2
    store.close()


def opened(store: DiskStore, data: Path) -> DiskStore:
    """Open the store of a restored directory, with the expected content of ``store``."""
    copy = DiskStore(data)
    copy.ends, copy.dropped = dict(store.ends), set(store.dropped)
    copy.open()
    return copy


def assert_restored(store: DiskStore, data: Path) -> None:
    """Check that a directory has the content of a store and accepts writes."""
    copy = opened(store, data)
    try:
        assert copy.next_position == store.next_position
        copy.check()
        copy.commit(2)
        copy.check()
    finally:
        copy.close()


@pytest.fixture(autouse=True)
def _forked_children(monkeypatch: pytest.MonkeyPatch) -> None:
    forks.children(monkeypatch)


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    return make_sample(tmp_path / "data")


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "backups"


@pytest.fixture
def filled(tmp_path: Path) -> Iterator[DiskStore]:
    """A closed store."""
    store = DiskStore(tmp_path / "data")
    store.open()
    fill(store)
    yield store
    store.close()
