"""The daemon's memory engine: the engine conformance suite, and multi-step jobs with one result."""

import os
from pathlib import Path

import pytest

from pulsarbox.server.memory_engine_adapter import SharedMemoryEngine, memory_size
from pulsarbox.storage.engine import Checkpoint, Engine
from pulsarbox.storage.memory_engine import MemoryDisk
from tests.unit.storage.batches import batch_of
from tests.unit.storage.engine_conformance import EngineConformance, Store


class SharedStore(Store):
    """An in-memory store."""

    def __init__(self) -> None:
        super().__init__()
        self.disk = MemoryDisk()

    def make(self) -> Engine:
        return SharedMemoryEngine(self.disk)


class TestSharedMemoryEngine(EngineConformance):
    """The conformance suite."""

    @pytest.fixture
    def store(self) -> Store:
        return SharedStore()


def test_giving_back_many_batches_is_one_step() -> None:
    engine = SharedMemoryEngine()
    for position in range(1, 6):
        engine.commit(batch_of(position, [(1, position - 1, 1)]))
    engine.checkpoint(Checkpoint(5, {}, (1,)))
    reclaimed = engine.reclaim()
    assert reclaimed is not None
    assert (reclaimed.volumes, reclaimed.bytes_after) == (("5 batches",), 0)
    assert engine.reclaim() is None


def test_the_size_of_the_memory_is_the_machines_or_the_containers(tmp_path: Path) -> None:
    machine = memory_size(tmp_path)
    assert machine == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    (tmp_path / "memory.max").write_text("max\n")
    assert memory_size(tmp_path) == machine
    (tmp_path / "memory.max").write_text("1048576\n")
    assert memory_size(tmp_path) == 1 << 20
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "memory.limit_in_bytes").write_text("4096")
    assert memory_size(tmp_path) == 4096
