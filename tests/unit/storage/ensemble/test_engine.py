"""The engine over members in memory: the conformance suite, and members that fail."""

import time
import uuid
from collections.abc import Iterator
from copy import copy
from pathlib import Path

import pytest

from pulsarbox.storage.engine import Engine
from pulsarbox.storage.ensemble.engine import EnsembleEngine, EnsembleLimits
from pulsarbox.storage.ensemble.lmdb_member import LmdbMember
from pulsarbox.storage.ensemble.member_writers import ThreadWriters
from pulsarbox.storage.ensemble.memory_member import MemberDisk, MemoryMember
from pulsarbox.storage.journal import Batch
from tests.tools.campaigns import short
from tests.unit.storage.engine_conformance import EngineConformance, Store


class AskingEngine(EnsembleEngine):
    """An engine whose batches ask for copies."""

    asked = (1, 1, 1)

    def commit(self, batch: Batch) -> None:
        asking = copy(batch)
        asking.ask(*self.asked)
        super().commit(asking)


class EnsembleStore(Store):
    """A store on several disks in memory."""

    def __init__(self, directories: int, asked: tuple[int, int, int]) -> None:
        super().__init__()
        self.disks = [MemberDisk(name) for name in "abcde"[:directories]]
        self.asked = asked

    def make(self) -> Engine:
        members = [MemoryMember(disk) for disk in self.disks]
        engine = AskingEngine(members, limits=EnsembleLimits(segment_bytes=2000))
        engine.asked = self.asked
        return engine

    def reopen(self) -> Engine:
        engine = super().reopen()
        self.batches = [batch[:1] + b"\0" + batch[2:] for batch in self.batches]  # without the copies asked for
        return engine


@pytest.mark.parametrize("asked", short([((3, 2, 2),), ((1, 1, 1),), ((2, 2, 2),), ((3, 1, 1),), ((3, 3, 2),)], 2))
class TestEnsembleEngine(EngineConformance):
    """The conformance suite on three members in memory."""

    @pytest.fixture
    def store(self, asked: tuple[int, int, int]) -> Store:
        return EnsembleStore(3, asked)


class ThreadedStore(EnsembleStore):
    """A store in three data directories, which threads write."""

    def __init__(self, path: Path) -> None:
        super().__init__(3, (3, 2, 2))
        self.path = path

    def make(self) -> Engine:
        members = [LmdbMember(self.path / name, volume_size=150_000, index_flush_entries=25) for name in "abc"]
        engine = AskingEngine(
            members,
            limits=EnsembleLimits(segment_bytes=5000),
            writers=ThreadWriters(),
            monotonic=time.monotonic,
            new_id=lambda: str(uuid.uuid4()),
        )
        engine.asked = self.asked
        return engine


@pytest.mark.campaign
class TestDirectories(EngineConformance):
    """The conformance suite on three data directories."""

    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[Store]:
        store = ThreadedStore(tmp_path)
        yield store
        store.close()
