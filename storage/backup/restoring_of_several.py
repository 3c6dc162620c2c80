"""Restore of a backup of several data directories into one, which has all entries.

The restored box is one of several directories of which there are no others yet: listed together with empty ones, it
copies to them what the policies of its topics ask for.
"""

import shutil
import uuid
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from pulsarbox.storage.backup.creation_of_several import rows_of
from pulsarbox.storage.backup.entry_files import read_pieces
from pulsarbox.storage.backup.manifest import ROWS_PATH, BackupFile
from pulsarbox.storage.backup.restoring import Restore
from pulsarbox.storage.ensemble.lmdb_member import LmdbMember
from pulsarbox.storage.ensemble.member import MemberState, Piece
from pulsarbox.storage.ensemble.membership import MemberRecord, Membership
from pulsarbox.storage.ensemble.membership_file import write_membership
from pulsarbox.storage.ensemble.stored_ledgers import stored_ledgers
from pulsarbox.storage.format import INSTANCE, LOCK, NEW_SUFFIX
from pulsarbox.storage.inspection.box import name_of

_BUILDING = "restored" + NEW_SUFFIX
"""The folder of the target in which the directory is built."""


class RestoreOfSeveral(Restore):
    """Writes one data directory, whose lock is held."""

    def _fill(self) -> None:
        """See Restore."""
        building = self._target / _BUILDING
        self._build(building)
        for file in self._manifest.files:
            if file.path != ROWS_PATH and not file.runs and not file.volume:
                self._write(file)  # events and history
        for path in building.iterdir():
            if path.name not in (LOCK, INSTANCE):
                path.rename(self._target / path.name)
        shutil.rmtree(building)
        for volume in self._manifest.volumes:
            shutil.rmtree(self._target / name_of(volume), ignore_errors=True)  # empty, from the first opening
            self._write_volume(volume)

    def _build(self, building: Path) -> None:
        """Write the rows and the entries."""
        member = LmdbMember(building)
        member.open()
        try:
            ledgers: set[int] = set()
            member.replace_rows(self._rows(ledgers), self._manifest.checkpoint)
            pieces = self._pieces(ledgers)
            while (first := next(pieces, None)) is not None:
                some = _InOrder(chain([first], pieces))
                member.adopt(some)
                pieces = chain([some.behind], pieces) if some.behind is not None else pieces
        finally:
            member.close()

    def _rows(self, ledgers: set[int]) -> Iterator[tuple[bytes, bytes]]:
        (file,) = (file for file in self._manifest.files if file.path == ROWS_PATH)
        self._pace.what = file.path
        for row in rows_of(self._files.read(file.sha256, file.size)):
            ledgers |= stored_ledgers(row[:1])
            self._pace(len(row[0]) + len(row[1]))
            yield row

    def _pieces(self, ledgers: set[int]) -> Iterator[Piece]:
        """Yield the entries of ledgers that exist."""
        for file in self._manifest.files:
            if any(run[0] in ledgers for run in file.runs):
                pieces = read_pieces(file, self._data(file), str(self._files.path(file.sha256)))
                yield from (piece for piece in pieces if piece.entries[0].ledger_id in ledgers)

    def _data(self, file: BackupFile) -> bytes:
        self._pace.what = file.path
        data = b"".join(self._files.read(file.sha256, file.size))
        self._pace(file.size)
        return data

    def _write_instance(self, keep_id: bool) -> str:
        """See Restore."""
        box = super()._write_instance(keep_id)
        member_id = str(uuid.uuid4())
        record = MemberRecord(member_id, str(self._target.absolute()), MemberState.ACTIVE)
        first = self._manifest.position + 1
        write_membership(
            self._target, Membership(box, member_id, 1, str(uuid.uuid4()), (record,), ack_quorum_min=1, first=first)
        )
        return box


class _InOrder:
    """Pieces up to the first one that is not behind the others of its ledger."""

    def __init__(self, pieces: Iterator[Piece]) -> None:
        self._pieces = pieces
        self._ends: dict[int, int] = {}
        self.behind: Piece | None = None

    def __iter__(self) -> Iterator[Piece]:
        for piece in self._pieces:
            ledger_id = piece.entries[0].ledger_id
            if piece.entries[0].entry_id < self._ends.get(ledger_id, 0):
                self.behind = piece
                return
            self._ends[ledger_id] = piece.entries[-1].entry_id + 1
            yield piece
