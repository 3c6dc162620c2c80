"""Creation of a backup of several data directories: rows, entries from any intact copy, and the log behind the rows.

The cut is taken without the help of the box. The directories are opened one after the other, so each shows the log up
to another batch. All batches that were confirmed before are in one of them, and the cut ends before the first one that
is in none. Batches up to the checkpoint are covered by its rows and by the entries that these list, so only later
batches are stored as such.
"""

import json
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Final

import lmdb

from pulsarbox import __version__
from pulsarbox.errors import PersistenceError
from pulsarbox.plugins.compression.rest import RestCodecs
from pulsarbox.storage.backup.box_directories import BoxDirectories, box_directories
from pulsarbox.storage.backup.creation import Creation, Made, Plan, now_ms
from pulsarbox.storage.backup.cut import held_cut
from pulsarbox.storage.backup.entry_files import EntryFileWriter, NeededEntries
from pulsarbox.storage.backup.log_parts import store_log
from pulsarbox.storage.backup.manifest import ROWS_PATH, BackupError, BackupFile, Manifest
from pulsarbox.storage.backup.member_cut import MemberCut
from pulsarbox.storage.backup.merged_log import CutChanged, MergedLog, sources_of
from pulsarbox.storage.backup.pace import CopyPace
from pulsarbox.storage.backup.repository import Repository
from pulsarbox.storage.ensemble.keeping.expected_entries import expected_ledger
from pulsarbox.storage.ensemble.recovery import EnsembleIncomplete, LogSource, check_complete, find_holes
from pulsarbox.storage.ensemble.stored_ledgers import LEDGER_ROWS
from pulsarbox.storage.inspection.box import Box
from pulsarbox.storage.lmdb.coverage import merged
from pulsarbox.storage.lmdb.meta_environment import unpack_row
from pulsarbox.storage.recording.event_files import FOLDER as EVENTS
from pulsarbox.storage.recording.event_files import event_files

ROW_HEAD: Final = struct.Struct(">II")
"""Sizes of key and value, before each row of the file of rows."""
_ATTEMPTS: Final = 20
_USEFUL: Final = 2
"""A file of entries is used again if one in this many of its entries is needed."""


class CreationOfSeveral(Creation):
    """One backup of several data directories in progress."""

    def __init__(self, sources: Sequence[Path], repository: Repository, plan: Plan, pace: CopyPace) -> None:
        super().__init__(_home(sources), repository, plan, pace)
        self._sources = sources
        self._epoch = ""
        self._names = self._numbers()

    def run(self) -> Made:
        """See Creation."""
        begun = now_ms()
        with self._held() as (directories, cuts, log):
            self._epoch = _folder_of(directories.membership.epoch)
            self._check_size(cuts, log)
            self._journal = self._repository.begin()
            base = max(cuts, key=lambda each: each.mark)
            ledgers = self._store_rows(base)
            for each in cuts:
                each.cut.release_meta()
            needed = NeededEntries(ledgers)
            self._reuse(needed, {_folder_of(epoch) for epoch in directories.epochs})
            self._store_entries(cuts, needed, base.mark)
            lost = _lost(needed, ledgers, cuts, base.mark)
            if lost and directories.replicas:
                raise _unread(f"{lost:,} entries have no intact copy on this machine", directories.replicas)
            self._pace.what = "log"
            for part in store_log(log, (), self._repository.files, self._pace, self._journal.note):
                self._files.append(part)
                self._sizes["copied"] += part.size
            self._add_recordings()
            manifest = Manifest(
                name=self._journal.name,
                pulsarbox=__version__,
                box=base.cut.identity,
                position=log.last or base.mark,
                checkpoint=base.mark,
                begun=begun,
                completed=now_ms(),
                volumes=(log.number,) if log.last else (),
                codecs=(),
                files=tuple(self._files),
                directories=len(cuts),
                lost=lost,
            )
            self._repository.complete(manifest)
        return Made(manifest, **self._sizes)

    @contextmanager
    def _held(self) -> Iterator[tuple[BoxDirectories, list[MemberCut], MergedLog]]:
        """Hold a consistent cut. Raises BackupError."""
        changed: CutChanged | None = None
        for _ in range(_ATTEMPTS):
            with ExitStack() as held:
                try:
                    found = self._cut(held)
                except CutChanged as error:
                    changed = error
                    continue
                yield found
                return
        replicas = box_directories(self._sources).replicas
        if replicas:
            raise _unread(f"batches may have no copy on this machine ({changed})", replicas)
        raise BackupError(f"the data directories have no common state: {changed}; run the backup again")

    def _cut(self, held: ExitStack) -> tuple[BoxDirectories, list[MemberCut], MergedLog]:
        directories = box_directories(self._sources)
        codecs = RestCodecs()
        cuts = [MemberCut(held.enter_context(held_cut(path, _nothing_known)), codecs) for path in directories.paths]
        is_live = any(Box(path).live for path in directories.paths)
        mark = max(each.mark for each in cuts)
        if not is_live:
            _refuse_incomplete(directories, sources_of(cuts), mark)
        log = MergedLog(cuts, mark, directories.membership.first)
        if box_directories(self._sources).membership.epoch != directories.membership.epoch:
            raise CutChanged("the membership changed")
        return directories, cuts, log

    def _check_size(self, cuts: Sequence[MemberCut], log: MergedLog) -> None:
        entries = max((sum(run.bytes for run in each.runs) for each in cuts), default=0)
        rows = max(each.cut.meta_size for each in cuts)
        self._pace.total = rows + entries + log.size
        self._refuse_too_large(rows + log.size)

    def _store_rows(self, base: MemberCut) -> dict[int, int | None]:
        """Store the rows; return the ledgers that they list, with the numbers of their entries if known."""
        self._pace.what = "checkpoint"
        ledgers: dict[int, int | None] = {}
        self._add(ROWS_PATH, self._copied(_rows(base, ledgers)))
        return ledgers

    def _reuse(self, needed: NeededEntries, folders: set[str]) -> None:
        """Refer to files of earlier backups of this history. Entries never change."""
        for file in [file for files in self._stored.values() for file in files if file.runs]:
            if file.path.split("/")[1] not in folders or not self._repository.files.has(file.sha256, file.size):
                continue
            useful = sum(needed.count(*run) for run in file.runs)
            if useful and useful * _USEFUL >= sum(end - first for _, first, end in file.runs):
                self._files.append(file)
                self._journal.note(file)
                self._sizes["reused"] += file.size
                for run in file.runs:
                    needed.stored(*run)

    def _store_entries(self, cuts: Sequence[MemberCut], needed: NeededEntries, mark: int) -> None:
        writer = EntryFileWriter(self._store_file)
        for cut in cuts:
            for volume in cut.volumes:
                self._pace.what = f"entries of {cut.cut.path}"
                if volume.runs and not any(needed.count(run.ledger_id, run.first, run.end) for run in volume.runs):
                    continue
                try:
                    for piece in cut.pieces(volume, needed, mark):
                        writer.add(piece)
                        first, last = piece.entries[0], piece.entries[-1]
                        needed.stored(first.ledger_id, first.entry_id, last.entry_id + 1)
                except BackupError:
                    raise
                except (PersistenceError, lmdb.Error):
                    continue  # damaged: other directories may have these entries
        writer.finish()

    def _store_file(self, content: bytes, runs: tuple[tuple[int, int, int], ...]) -> None:
        stored = self._repository.files.add([content], self._pace)
        self._sizes["copied"] += stored.size
        file = BackupFile(f"entries/{self._epoch}/{next(self._names):08d}", stored.size, stored.sha256, runs=runs)
        self._files.append(file)
        self._journal.note(file)

    def _numbers(self) -> Iterator[int]:
        """Yield numbers of files that no earlier backup has used."""
        used = [int(path.rpartition("/")[2]) for path, files in self._stored.items() if files[0].runs]
        number = max(used, default=0)
        while True:
            number += 1
            yield number


def rows_of(chunks: Iterable[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """Yield the rows of the file of rows."""
    data = b""
    for chunk in chunks:
        data += chunk
        at = 0
        while len(data) >= at + ROW_HEAD.size:
            key_size, size = ROW_HEAD.unpack_from(data, at)
            begin = at + ROW_HEAD.size
            end = begin + key_size + size
            if len(data) < end:
                break
            yield data[begin : begin + key_size], data[begin + key_size : end]
            at = end
        data = data[at:]


def _rows(base: MemberCut, ledgers: dict[int, int | None]) -> Iterator[bytes]:
    """Yield the file of rows, and note the ledgers."""
    for stored_key, stored_value in base.cut.meta.rows(b"rows"):
        key, value = unpack_row(stored_key, stored_value)
        if key.startswith(LEDGER_ROWS):
            ledger = expected_ledger(key, value)
            ledgers[ledger.ledger_id] = ledger.entries if is_closed(value) else None
        yield ROW_HEAD.pack(len(key), len(value)) + key + value


def is_closed(row: bytes) -> bool:
    """Return whether the row of a ledger has the final number of its entries. Those without the time have it."""
    return bool(json.loads(row).get("closed", True))


def _lost(needed: NeededEntries, ledgers: Mapping[int, int | None], cuts: Sequence[MemberCut], mark: int) -> int:
    """Return how many entries exist and are not stored."""
    count = sum(needed.count(ledger, 0, entries) for ledger, entries in ledgers.items() if entries is not None)
    listed: dict[int, list[tuple[int, int]]] = {}
    for volume in (volume for cut in cuts for volume in cut.volumes if volume.last <= mark):
        for run in volume.runs:
            if ledgers.get(run.ledger_id, 0) is None:
                listed.setdefault(run.ledger_id, []).append((run.first, run.end))
    return count + sum(needed.count(ledger, *run) for ledger, runs in listed.items() for run in merged(runs))


def _refuse_incomplete(directories: BoxDirectories, sources: Sequence[LogSource], mark: int) -> None:
    """Raise BackupError if a start of the stopped box would be refused for lack of directories."""
    membership = directories.membership
    holes = find_holes(sources, mark, membership.first)
    try:
        check_complete(holes, directories.missing, membership.ack_quorum_min, membership.first)
    except EnsembleIncomplete as error:
        if directories.replicas:
            raise _unread("acknowledged messages may have no copy on this machine", directories.replicas) from error
        raise BackupError(f"the backup would be incomplete: {error}") from error


def _unread(what: str, replicas: Sequence[str]) -> BackupError:
    """Return the error for a backup that would lack what only replicas may have."""
    return BackupError(
        f"{what}, and a backup does not read {', '.join(replicas)}: set the write and ack quorums to"
        f" {len(replicas) + 1}, wait with `pulsarbox storage under-replicated --wait`, and run the backup again"
    )


def _home(sources: Sequence[Path]) -> Path:
    """Return the directory with the newest events."""

    def newest(path: Path) -> int:
        return max((number for number, _ in event_files(path / EVENTS)), default=-1)

    return max(sources, key=newest)


def _folder_of(epoch: str) -> str:
    return sha256(epoch.encode()).hexdigest()[:16]


def _nothing_known(path: str, size: int, modified: int) -> bool:
    return False
