"""The memory engine: the conformance suite, and a failing disk."""

import pytest

from pulsarbox.errors import PersistenceError
from pulsarbox.storage.engine import Engine
from pulsarbox.storage.journal import Batch
from pulsarbox.storage.memory_engine import MemoryDisk, MemoryEngine
from tests.unit.storage.batches import batch_of
from tests.unit.storage.engine_conformance import EngineConformance, Store, ids


class MemoryStore(Store):
    """A store in memory."""

    def __init__(self) -> None:
        super().__init__()
        self.disk = MemoryDisk()

    def make(self) -> Engine:
        return MemoryEngine(self.disk)


class TestMemoryEngine(EngineConformance):
    """The conformance suite on the memory engine."""

    @pytest.fixture
    def store(self) -> Store:
        return MemoryStore()


def test_a_refused_batch_leaves_nothing_behind() -> None:
    def refuse(batch: Batch) -> None:
        raise PersistenceError(f"no {batch.position}")

    disk = MemoryDisk(refuse)
    engine = MemoryEngine(disk)
    with pytest.raises(PersistenceError, match="no 1"):
        engine.commit(batch_of(1, [(1, 0, 1)]))
    with pytest.raises(PersistenceError, match="does not exist"):
        ids(engine, 1, 0, 0)
    disk.before_commit = None
    engine.commit(batch_of(1, [(1, 0, 1)]))
    assert ids(engine, 1, 0, 0) == [0]


def test_damage_is_found_at_recovery() -> None:
    disk = MemoryDisk()
    MemoryEngine(disk).commit(batch_of(1, [(1, 0, 1)]))
    disk.log[1] = disk.log[1][:40] + b"?" + disk.log[1][41:]
    with pytest.raises(PersistenceError, match="damaged"):
        list(MemoryEngine(disk).recover().batches)
