"""A member of an ensemble on a data directory.

Threads: ``commit`` and ``erase_from`` are called by one thread, reads by others. ``checkpoint``, ``reclaim``,
``replace_rows``, ``adopt`` and ``forget`` may be called by different threads: a lock lets only one of them change the
tables at a time, so each may wait for a step of space reclamation.
"""

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import lmdb

from pulsarbox.errors import PersistenceError
from pulsarbox.storage.engine import Checkpoint, Compressing, ReadRequest, Reclaimed
from pulsarbox.storage.ensemble.member import MemberContent, PackedBatch, Piece
from pulsarbox.storage.ensemble.membership import Membership
from pulsarbox.storage.ensemble.membership_file import read_membership, write_membership
from pulsarbox.storage.ensemble.placed_answer import PlacedAnswer
from pulsarbox.storage.lmdb.coverage import coverage, ledgers_of
from pulsarbox.storage.lmdb.engine import LmdbEngine
from pulsarbox.storage.lmdb.volume import failure
from pulsarbox.storage.record import Entry

_NOT_THERE = "it was removed or replaced, or its disk is gone"


class LmdbMember:
    """A Member on a data directory. ``settings`` are those of LmdbEngine."""

    def __init__(self, path: str | Path, **settings: Any) -> None:
        self.name = str(path)
        self.device = 0
        self._path = Path(path)
        self._settings = settings
        self._tables = threading.RLock()
        self._new = False
        self._engine: LmdbEngine  # set by ``open``
        self._watched: tuple[int, Path, tuple[int, int]] = 0, self._path, (0, 0)
        """The newest volume, its file, and the device and inode of the file that is open."""

    @property
    def engine(self) -> LmdbEngine:
        """The engine of the directory; available after ``open``."""
        return self._engine

    def open(self) -> MemberContent:
        """See Member."""
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
        try:
            yield from self._engine.batches(after)
        except (lmdb.Error, OSError) as error:
            raise failure(f"the log of {self._path} cannot be read", error, self._path) from error

    def write_membership(self, membership: Membership) -> None:
        """See Member. Raises PersistenceError if the directory belongs to another box."""
        directory = self._engine.volumes.directory
        if membership.box != directory.instance and not self._new:
            raise PersistenceError(f"{self._path} belongs to box {directory.instance}, not to {membership.box}")
        try:
            directory.adopt_instance(membership.box)
            self._new = False
            write_membership(self._path, membership)
        except OSError as error:
            raise failure(f"the membership of {self._path} could not be stored", error, self._path) from error

    def commit(self, batch: PackedBatch) -> None:
        """See Member."""
        self._engine.store(batch.position, batch.value, batch.runs)
        if not self.is_there():
            raise PersistenceError(f"{self._path} is no longer there: {_NOT_THERE}")

    def erase_from(self, position: int) -> None:
        """See Member. Called by the thread that commits, or before the first commit."""
        self._engine.erase_from(position, self._tables)

    def read(self, request: ReadRequest) -> list[Entry]:
        """See Member."""
        return self._engine.read(request)

    def pieces(self, ledger_id: int, first: int, end: int, max_bytes: int) -> list[Piece]:
        """See Member. Entries are read from the volume even if they are cached."""
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
        raise NotImplementedError

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
            now = file.stat()
        except (OSError, PersistenceError, lmdb.Error):
            return False
        return (now.st_dev, now.st_ino) == opened

    def _watch(self) -> tuple[int, Path, tuple[int, int]]:
        volumes = self._engine.volumes
        number = volumes.current
        with volumes.pool.using(number) as volume:
            return number, volume.file, volume.inode

    def ledgers(self) -> list[int]:
        """See Member."""
        try:
            return ledgers_of(self._engine.volumes)
        except (lmdb.Error, OSError) as error:
            raise failure("the ledgers cannot be read", error, self._path) from error

    def coverage(self, ledger_ids: Sequence[int]) -> Mapping[int, list[tuple[int, int]]]:
        """See Member."""
        try:
            return coverage(self._engine.volumes, ledger_ids)
        except (lmdb.Error, OSError) as error:
            raise failure("the index cannot be read", error, self._path) from error

    def adopt(self, pieces: Iterable[Piece]) -> int:
        """See Member."""
        raise NotImplementedError

    def forget(self, ledger_id: int, first: int, end: int) -> None:
        """See Member. Unsealed volumes are sealed first."""
        raise NotImplementedError

    def statistics(self) -> dict[str, Any]:
        """See Member."""
        return self._engine.statistics()

    def release_inherited_lock(self) -> None:
        """See Member."""
        self._engine.release_inherited_lock()

    def close(self) -> None:
        """See Member."""
        self._engine.close()
