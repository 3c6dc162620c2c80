"""Shared fixtures for tests of the disk store."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.storage.disk_store import DiskStore


@pytest.fixture
def store(tmp_path: Path) -> Iterator[DiskStore]:
    """A data directory with an open engine, closed at the end."""
    store = DiskStore(tmp_path / "data")
    store.open()
    yield store
    store.on_step = lambda _: None
    store.close()
