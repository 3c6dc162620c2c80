"""A member of an ensemble on a data directory.

Threads: ``commit`` and ``erase_from`` are called by one thread, reads by others. ``checkpoint``, ``reclaim``,
``replace_rows``, ``adopt`` and ``forget`` may be called by different threads: a lock lets only one of them change the
tables at a time, so each may wait for a step of space reclamation.
"""

import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import lmdb

from pulsarbox.errors import PersistenceError
from pulsarbox.storage.engine import Checkpoint, Compressing, ReadRequest, Reclaimed
from pulsarbox.storage.ensemble.member import NOT_THERE, MemberContent, PackedBatch, Piece
from pulsarbox.storage.ensemble.membership import Membership
from pulsarbox.storage.ensemble.membership_file import read_membership, write_membership
from pulsarbox.storage.ensemble.placed_answer import PlacedAnswer
from pulsarbox.storage.ensemble.stored_ledgers import ListedLedgers
from pulsarbox.storage.lmdb.coverage import coverage, ledgers_of
from pulsarbox.storage.lmdb.engine import LmdbEngine
from pulsarbox.storage.lmdb.environment import failure
from pulsarbox.storage.lmdb.meta_environment import ErasedRun
from pulsarbox.storage.lmdb.row_replacement import replace_rows
from pulsarbox.storage.record import Entry


class LmdbMember:
    """A Member on a data directory. ``settings`` are those of LmdbEngine."""

    is_remote = False

    def __init__(self, path: str | Path, **settings: Any) -> None:
        self.name = str(path)
        self.device = 0
        self.must_exist = False
        """Whether ``open`` raises PersistenceError if the directory is missing, instead of creating it."""
        self._path = Path(path)
        self._settings = settings
        self._tables = threading.RLock()
        self._new = False
        self._engine: LmdbEngine  # set by ``open``
        self._watched: tuple[int, str, tuple[int, int]] = 0, "", (0, 0)
        """The newest volume, its file, and the device and inode of the file that is open."""
        self._size = 0
        """Bytes of that file when it was last looked at; it never shrinks."""

    @property
    def engine(self) -> LmdbEngine:
        """The engine of the directory; available after ``open``."""
        return self._engine

    def open(self) -> MemberContent:
        """See Member."""
        if self.must_exist and not self._path.exists():
            raise PersistenceError(f"{self._path} is missing")
        engine = LmdbEngine(self._path, gaps=True, **self._settings)
        recovery = engine.recover()
        self._engine = engine
        try:
            membership = read_membership(self._path)
            self.device = self._path.stat().st_dev
            with engine.volumes.metas.using(0) as meta:
                mark = meta.marks()[0]
        except (lmdb.Error, OSError) as error:
            engine.close()
            raise failure(f"{self._path} cannot be opened", error, self._path) from error
        except BaseException:
            engine.close()
            raise
        newest = recovery.next_position - 1
        self._new = membership is None and not newest
        return MemberContent(membership, recovery.rows, mark, newest, "" if self._new else engine.instance)

    def batches(self, after: int) -> Iterator[tuple[int, bytes]]:
        """See Member."""
        with self._reported(f"the log of {self._path} cannot be read"):
            yield from self._engine.batches(after)

    def write_membership(self, membership: Membership) -> None:
        """See Member. Raises PersistenceError if the directory belongs to another box."""
        directory = self._engine.volumes.directory
        if membership.box != directory.instance and not self._new:
            raise PersistenceError(f"{self._path} belongs to box {directory.instance}, not to {membership.box}")
        with self._reported(f"the membership of {self._path} could not be stored"):
            directory.adopt_instance(membership.box)
            self._new = False
            write_membership(self._path, membership)

    def commit(self, batch: PackedBatch) -> None:
        """See Member."""
        if batch.position < self._engine.next_position:
            raise ValueError(
                f"{self._path}: batch {batch.position} was committed after {self._engine.next_position - 1}"
            )
        self._engine.store(batch.position, batch.value, batch.runs)
        if not self.is_there():
            raise PersistenceError(f"{self._path} is no longer there: {NOT_THERE}")

    def erase_from(self, position: int) -> None:
        """See Member. Called by the thread that commits, or before the first commit."""
        self._engine.erase_from(position, self._tables)

    def read(self, request: ReadRequest) -> list[Entry]:
        """See Member."""
        return self._engine.read(request)

    def pieces(self, ledger_id: int, first: int, end: int, max_bytes: int) -> list[Piece]:
        """See Member. Entries are read from the volume even if they are cached.

        Repair and scrub read this way, so a file that was truncated is noticed by its size, before it is read.
        """
        self._engine.volumes.check_files()
        request = ReadRequest(0, ledger_id, first, end - 1, max_bytes)
        answer = PlacedAnswer(request, self._engine.unpacker)
        self._engine.fill(answer, ledger_id)
        return answer.pieces()

    def checkpoint(self, checkpoint: Checkpoint) -> None:
        """See Member."""
        with self._tables:
            self._engine.checkpoint(checkpoint)

    def replace_rows(self, rows: Iterable[tuple[bytes, bytes]], mark: int) -> None:
        """See Member. The environment of the rows is built beside the current one, which it then replaces."""
        engine = self._engine
        known = self.ledgers()
        seen = ListedLedgers()
        with self._tables, self._reported("the rows could not be replaced"):
            gone = replace_rows(engine.volumes, seen.noted(rows), mark, lambda: tuple(filter(seen.is_dropped, known)))
            engine.reclaimer.note(Checkpoint(mark, {}, gone))

    def reclaim(self, compressing: Compressing | None = None) -> Reclaimed | None:
        """See Member."""
        with self._tables:
            return self._engine.reclaim(compressing)

    def check_room(self) -> None:
        """See Member."""
        self._engine.check_room()

    def is_there(self) -> bool:
        """See Member. LMDB goes on to write a file that was unlinked, without an error."""
        try:
            number, file, opened = self._watched
            if number != self._engine.volumes.current:
                number, file, opened = self._watched = self._watch()
                self._size = 0
            now = os.stat(file)  # noqa: PTH116  # half the time of Path.stat, for each commit
        except (OSError, PersistenceError, lmdb.Error):
            return False
        truncated = now.st_size < self._size
        self._size = now.st_size
        return (now.st_dev, now.st_ino) == opened and not truncated

    def _watch(self) -> tuple[int, str, tuple[int, int]]:
        volumes = self._engine.volumes
        number = volumes.current
        with volumes.pool.using(number) as volume:
            return number, str(volume.file), volume.inode

    def ledgers(self) -> list[int]:
        """See Member."""
        with self._reported("the ledgers cannot be read"):
            return ledgers_of(self._engine.volumes)

    def coverage(self, ledger_ids: Sequence[int]) -> Mapping[int, list[tuple[int, int]]]:
        """See Member."""
        with self._reported("the index cannot be read"):
            return coverage(self._engine.volumes, ledger_ids)

    def adopt(self, pieces: Iterable[Piece]) -> int:
        """See Member. If the copies fill several volumes, those completed before an error stay."""
        from pulsarbox.storage.packing.adoption import Adoption

        self._engine.check_room()
        engine = self._engine
        with self._reported("copies of entries could not be stored"):
            return Adoption(engine.volumes, engine.reclaimer.packed_numbers, self._tables).adopt(pieces)

    def forget(self, ledger_id: int, first: int, end: int) -> None:
        """See Member. Unsealed volumes are sealed first, because only sealed ones are listed by entries."""
        volumes = self._engine.volumes
        with self._tables, self._reported(f"entries of ledger {ledger_id} could not be removed"):
            volumes.roll()
            self._engine.reclaimer.seal_all()
            with volumes.metas.using(0) as meta:
                meta.cut([ErasedRun(ledger_id, first, end)], {})
            volumes.step("cut")

    @contextmanager
    def _reported(self, what: str) -> Iterator[None]:
        """Turn errors of LMDB and of the operating system into PersistenceError or StoreFull."""
        try:
            yield
        except (lmdb.Error, OSError) as error:
            raise failure(what, error, self._path) from error

    def statistics(self) -> dict[str, Any]:
        """See Member."""
        return self._engine.statistics()

    def release_inherited_lock(self) -> None:
        """See Member."""
        self._engine.release_inherited_lock()

    def close(self) -> None:
        """See Member."""
        self._engine.close()
