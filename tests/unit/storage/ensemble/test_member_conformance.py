"""Both kinds of members pass the same suite."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pulsarbox.storage.ensemble.lmdb_member import LmdbMember
from pulsarbox.storage.ensemble.member import Member
from pulsarbox.storage.ensemble.memory_member import MemberDisk, MemoryMember
from tests.unit.storage.ensemble.member_conformance import MemberConformance, MemberStore


class MemoryStore(MemberStore):
    """A member in memory."""

    def __init__(self) -> None:
        self.disk = MemberDisk("a")

    def make(self) -> Member:
        """See MemberStore."""
        return MemoryMember(self.disk)


class DirectoryStore(MemberStore):
    """A member on a data directory with small volumes."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def make(self) -> Member:
        """See MemberStore."""
        return LmdbMember(self.path, volume_size=1 << 16, index_flush_entries=7, open_volumes_max=2)


class TestMemoryMember(MemberConformance):
    """The member of the simulation."""

    @pytest.fixture
    def store(self) -> MemberStore:
        return MemoryStore()

    @pytest.fixture
    def make_store(self) -> Callable[[], MemberStore]:
        return MemoryStore


class TestLmdbMember(MemberConformance):
    """The member on a data directory."""

    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[MemberStore]:
        store = DirectoryStore(tmp_path / "member")
        yield store
        store.close()

    @pytest.fixture
    def make_store(self, tmp_path: Path) -> Iterator[Callable[[], MemberStore]]:
        stores: list[DirectoryStore] = []

        def make() -> MemberStore:
            stores.append(DirectoryStore(tmp_path / f"member-{len(stores)}"))
            return stores[-1]

        yield make
        for store in stores:
            store.close()
