"""Directories of a simulated ensemble on disk: each operation runs on LMDB, and on a shadow in memory.

The shadow injects the faults, and tells the model what a directory has while it is not open. Each incarnation has its
own path, so a directory that was replaced can stay open.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pulsarbox.errors import PersistenceError
from pulsarbox.storage.engine import Checkpoint, Compressing, ReadRequest, Reclaimed
from pulsarbox.storage.ensemble.lmdb_member import LmdbMember
from pulsarbox.storage.ensemble.member import Member, MemberContent, PackedBatch, Piece
from pulsarbox.storage.ensemble.membership import Membership
from pulsarbox.storage.ensemble.memory_member import MemoryMember
from pulsarbox.storage.record import Entry
from tests.simulation.ensemble.directories import Directory
from tests.simulation.world import World

SETTINGS = {"volume_size": 60_000, "index_flush_entries": 25}


class LmdbDirectory(Directory):
    """A Directory whose contents are in ``folder``."""

    def __init__(self, world: World, name: str, device: int, folder: Path) -> None:
        super().__init__(world, name, device)
        self._folder = folder
        self.real: LmdbMember | None = None
        """Open in the present life of the box; None if it is not."""

    @property
    def path(self) -> Path:
        """Where the present incarnation is."""
        return self._folder / f"{self.name.strip('/')}.{self.disk.incarnation}"

    @property
    def _old_path(self) -> Path:
        return self._folder / f"{self.name.strip('/')}.old"

    def member(self) -> Member:
        """See Directory."""
        return LmdbPair(self)

    def mend(self) -> None:
        """See Directory. Late writes of a directory that is not open complete when it is opened."""
        self.failing, self.full, self.late, self.lying = 0.0, False, False, False
        self.disk.present = True
        if self.real is not None:
            for batch in self.disk.waiting:
                self.real.commit(batch)
            self.disk.settle()

    def reads(self, entry: Entry) -> bool:
        """See Directory."""
        if self.real is None or not self.has(entry):
            return super().reads(entry)
        try:
            pieces = self.real.pieces(entry.ledger_id, entry.entry_id, entry.entry_id + 1, 1)
        except PersistenceError:
            return False
        return [each for piece in pieces for each in piece.entries] == [entry]

    def wipe(self) -> None:
        """See Directory."""
        self.real = None
        super().wipe()

    def remember(self) -> None:
        """See Directory."""
        super().remember()
        shutil.rmtree(self._old_path, ignore_errors=True)
        if self.path.exists():
            shutil.copytree(self.path, self._old_path, ignore=shutil.ignore_patterns("lock.mdb"))
        else:
            self._old_path.mkdir()

    def go_back(self) -> None:
        """See Directory."""
        self.real = None
        super().go_back()
        self._old_path.rename(self.path)

    def damage(self, entry: Entry) -> bool:
        """See Directory."""
        found = False
        for file in self.path.rglob("data.mdb") if self.path.exists() else ():
            content = file.read_bytes()
            at = content.find(entry.body)
            while at >= 0:
                found = True
                with file.open("r+b") as stored:
                    stored.seek(at + len(entry.body) - 1)
                    stored.write(bytes([entry.body[-1] ^ 1]))
                at = content.find(entry.body, at + 1)
        return found and super().damage(entry)


class LmdbPair:
    """A Member on an LmdbDirectory, for one life of the box."""

    def __init__(self, directory: LmdbDirectory) -> None:
        self.name = directory.name
        self.device = directory.disk.device
        self.is_remote = False
        self._directory = directory
        self._shadow = MemoryMember(directory.disk)
        self._real: LmdbMember

    def open(self) -> MemberContent:
        """See Member."""
        late = list(self._directory.disk.waiting)
        known = self._shadow.open()
        real = LmdbMember(self._directory.path, **SETTINGS)
        content = real.open()
        try:
            for batch in late:
                real.commit(batch)
            assert content.mark == known.mark
            assert content.membership == known.membership
        except BaseException:
            real.close()
            raise
        self._real = self._directory.real = real
        return content._replace(newest=known.newest)

    def batches(self, after: int) -> Iterator[tuple[int, bytes]]:
        """See Member."""
        self._shadow._begin("batches", after)
        yield from self._real.batches(after)

    def write_membership(self, membership: Membership) -> None:
        """See Member."""
        self._shadow.write_membership(membership)
        self._real.write_membership(membership)

    def commit(self, batch: PackedBatch) -> None:
        """See Member."""
        self._shadow.commit(batch)
        self._real.commit(batch)

    def erase_from(self, position: int) -> None:
        """See Member."""
        self._shadow.erase_from(position)
        self._real.erase_from(position)

    def read(self, request: ReadRequest) -> list[Entry]:
        """See Member."""
        self._shadow._begin("read", request)
        return self._real.read(request)

    def checkpoint(self, checkpoint: Checkpoint) -> None:
        """See Member."""
        self._shadow.checkpoint(checkpoint)
        self._real.checkpoint(checkpoint)

    def replace_rows(self, rows: Iterable[tuple[bytes, bytes]], mark: int) -> None:
        """See Member."""
        copied = list(rows)
        self._shadow.replace_rows(copied, mark)
        self._real.replace_rows(copied, mark)

    def reclaim(self, compressing: Compressing | None = None) -> Reclaimed | None:
        """See Member."""
        self._shadow.reclaim(compressing)
        return self._real.reclaim(compressing)

    def check_room(self) -> None:
        """See Member."""
        self._shadow.check_room()
        self._real.check_room()

    def is_there(self) -> bool:
        """See Member."""
        return self._shadow.is_there() and self._real.is_there()

    def ledgers(self) -> list[int]:
        """See Member."""
        self._shadow._begin("ledgers", None)
        return self._real.ledgers()

    def coverage(self, ledger_ids: Sequence[int]) -> Mapping[int, list[tuple[int, int]]]:
        """See Member."""
        self._shadow._begin("coverage", ledger_ids)
        return self._real.coverage(ledger_ids)

    def pieces(self, ledger_id: int, first: int, end: int, max_bytes: int) -> list[Piece]:
        """See Member."""
        self._shadow._begin("pieces", (ledger_id, first, end))
        return self._real.pieces(ledger_id, first, end, max_bytes)

    def adopt(self, pieces: Iterable[Piece]) -> int:
        """See Member."""
        copied = list(pieces)
        self._shadow.adopt(copied)
        return self._real.adopt(copied)

    def forget(self, ledger_id: int, first: int, end: int) -> None:
        """See Member."""
        self._shadow.forget(ledger_id, first, end)
        self._real.forget(ledger_id, first, end)

    def statistics(self) -> dict[str, Any]:
        """See Member."""
        self._shadow._begin("statistics", None)
        return self._real.statistics()

    def release_inherited_lock(self) -> None:
        """See Member."""
        self._real.release_inherited_lock()

    def close(self) -> None:
        """See Member."""
        if self._directory.real is self._real:
            self._directory.real = None
        self._real.close()
