"""Creation of a backup: hold a cut, store what is not stored yet, and complete the manifest."""

import errno
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from pulsarbox import __version__
from pulsarbox.errors import PersistenceError
from pulsarbox.storage.backup.cut import Cut, SealedVolume, held_cut
from pulsarbox.storage.backup.last import note_backup
from pulsarbox.storage.backup.log_parts import store_log
from pulsarbox.storage.backup.manifest import META_PATH, BackupConflict, BackupError, BackupFile, Manifest
from pulsarbox.storage.backup.pace import CHUNK, CopyPace, Progress
from pulsarbox.storage.backup.repository import Journal, Repository
from pulsarbox.storage.backup.stored_files import Stored, chunks_of
from pulsarbox.storage.inspection.box import Box
from pulsarbox.storage.lmdb.directory import read_identity
from pulsarbox.storage.recording.event_files import FOLDER as EVENTS
from pulsarbox.storage.recording.event_files import event_files
from pulsarbox.storage.recording.history_files import FOLDER as HISTORY
from pulsarbox.storage.recording.history_files import files as history_files

RATE_DEFAULT: Final = 16 << 20
"""Bytes per second written beside a running box. A higher rate delays receipts (docs/PERFORMANCE.md)."""
ROOM_LEFT: Final = 64 << 20
"""Bytes that a backup leaves free on its disk."""


class Made(NamedTuple):
    """A completed backup, and its cost."""

    manifest: Manifest
    copied: int
    """Bytes copied."""
    linked: int
    """Bytes of files that are hard links to those of the data directory."""
    reused: int
    """Bytes that an earlier backup had stored."""


class Plan(NamedTuple):
    """Options of a backup."""

    rate: int | None = None
    """Bytes written per second, 0 for no limit; None for RATE_DEFAULT beside a running box, otherwise no limit."""
    link: bool = True
    """Hard-link sealed volumes if the file system allows it."""
    full: bool = False
    """Store everything again, even if earlier backups have stored it."""


def create(source: Path, target: Path, plan: Plan, progress: Progress, others: Sequence[Path] = ()) -> Made:
    """Back up the data directory ``source`` into the backup directory ``target``, which is created if missing.

    If it is one of several, all of them are read; ``others`` are paths where they may be besides those that they list.
    The next backup reuses what an interrupted one stored. Raises BackupConflict if another backup is running there,
    BackupError, and PersistenceError if ``source`` is not a data directory.
    """
    box = Box(source)
    sources = [source]
    if box.is_member:
        from pulsarbox.storage.backup.box_directories import box_directories

        sources = [*box_directories([source, *others]).paths]
    for each in sources:
        if is_within(target, each) or is_within(each, target):
            raise BackupConflict(
                f"{target} and the data directory {each} contain one another: choose another directory"
            )
    repository = Repository.create(target)
    with repository.locked():
        rate = plan.rate if plan.rate is not None else RATE_DEFAULT if box.live else 0
        try:
            made = _creation(sources, repository, plan, CopyPace(rate, progress), is_member=box.is_member).run()
        except OSError as error:
            raise _failed(repository, error) from error
    for each in sources:
        with suppress(OSError):  # the data directory may be mounted read-only
            note_backup(each, target, made.manifest)
    return made


def _creation(
    sources: Sequence[Path], repository: Repository, plan: Plan, pace: CopyPace, *, is_member: bool
) -> "Creation":
    if not is_member:
        return Creation(sources[0], repository, plan, pace)
    from pulsarbox.storage.backup.creation_of_several import CreationOfSeveral

    return CreationOfSeveral(sources, repository, plan, pace)


class Creation:
    """One backup in progress."""

    def __init__(self, source: Path, repository: Repository, plan: Plan, pace: CopyPace) -> None:
        self._source = source
        self._repository = repository
        self._plan = plan
        self._pace = pace
        self._stored: dict[str, list[BackupFile]] = {}
        self._files: list[BackupFile] = []
        self._sizes = {"copied": 0, "linked": 0, "reused": 0}
        self._journal: Journal
        box = read_identity(source)
        self._instances = {box.instance, *box.lineage}
        self._collect_stored()

    def run(self) -> Made:
        """Make the backup. Raises BackupError, OSError."""
        begun = now_ms()
        with held_cut(self._source, self._is_stored) as cut:
            self._check_room(cut)
            self._journal = self._repository.begin()
            self._pace.what = "checkpoint"
            self._add(META_PATH, self._copied(cut.meta_chunks()))
            cut.release_meta()
            for volume in cut.sealed:
                self._add_sealed(volume)
            for growing in cut.growing:
                self._pace.what = f"log of volume {growing.number}"
                known = [file for files in self._stored.values() for file in files if file.volume == growing.number]
                before = {file.sha256 for file in known}
                parts = store_log(growing, known, self._repository.files, self._pace, self._journal.note)
                self._files += parts
                for part in parts:
                    self._sizes["reused" if part.sha256 in before else "copied"] += part.size
            self._add_recordings()
            manifest = self._manifest(cut, begun)
            self._repository.complete(manifest)
        return Made(manifest, **self._sizes)

    def _collect_stored(self) -> None:
        """Collect what complete and interrupted backups of this box have stored. Raises BackupConflict."""
        found: list[BackupFile] = []
        for name in self._repository.names():
            try:
                manifest = self._repository.manifest(name)
            except BackupError:
                continue  # `verify` reports it
            if manifest.box.instance not in self._instances:
                raise BackupConflict(
                    f"{self._repository.path} holds backups of another box ({manifest.box.instance}; {self._source} is"
                    f" {', '.join(sorted(self._instances))}): choose another directory"
                )
            found += manifest.files
        if not self._plan.full:
            for file in (*found, *self._repository.stored_by_interrupted()):
                self._stored.setdefault(file.path, []).append(file)

    def _is_stored(self, path: str, size: int, modified: int) -> bool:
        return self._stored_as(path, size, modified) is not None

    def _stored_as(self, path: str, size: int, modified: int) -> BackupFile | None:
        for file in self._stored.get(path, ()):
            if (file.size, file.modified) == (size, modified) and self._repository.files.has(file.sha256, size):
                return file
        return None

    def _check_room(self, cut: Cut) -> None:
        """Fail early if the backup cannot fit: it may share the disk with the box."""
        copied = [one for one in cut.sealed if one.descriptor >= 0 and not (self._plan.link and self._can_link())]
        logs = sum(one.environment.size for one in cut.growing)
        needed = cut.meta_size + sum(one.size for one in copied) + logs
        self._pace.total = needed + sum(one.size for one in cut.sealed if one.descriptor >= 0 and one not in copied)
        self._refuse_too_large(needed)

    def _refuse_too_large(self, needed: int) -> None:
        free = shutil.disk_usage(self._repository.path).free
        if needed + ROOM_LEFT > free:
            raise BackupError(
                f"{self._repository.path} has {_mib(free)} free, the backup may need {_mib(needed)} and must leave"
                f" {_mib(ROOM_LEFT)}: free up space, or choose a directory on another disk"
            )

    def _can_link(self) -> bool:
        return self._source.stat().st_dev == self._repository.path.stat().st_dev

    def _add_sealed(self, volume: SealedVolume) -> None:
        self._pace.what = volume.path.partition("/data")[0]
        known = self._stored_as(volume.path, volume.size, volume.modified)
        if known is not None:
            self._files.append(known)
            self._sizes["reused"] += known.size
            return
        stored = None
        if self._plan.link and self._can_link():
            stored = self._repository.files.link(self._source / volume.path, volume.descriptor, self._pace)
        if stored is None:
            stored = self._repository.files.add(chunks_of(volume.descriptor), self._pace)
        self._sizes["linked" if stored.linked else "copied"] += stored.size
        self._add(volume.path, stored, volume.modified)

    def _add_recordings(self) -> None:
        """Add events and the history of the views, which the box writes asynchronously for inspection."""
        self._pace.what = "events and history"
        events = [path for _, path in event_files(self._source / EVENTS)]
        for path in (*events, *(each.path for each in history_files(self._source / HISTORY))):
            try:
                status = path.stat()
                known = self._stored_as(str(path.relative_to(self._source)), status.st_size, status.st_mtime_ns)
                if known is not None:
                    self._files.append(known)
                    self._sizes["reused"] += known.size
                    continue
                stored = self._copied(_chunks_of_file(path, status.st_size))
            except FileNotFoundError:
                continue  # the box has removed its oldest files
            self._add(str(path.relative_to(self._source)), stored, status.st_mtime_ns)

    def _copied(self, chunks: Iterator[bytes]) -> Stored:
        stored = self._repository.files.add(chunks, self._pace)
        self._sizes["copied"] += stored.size
        return stored

    def _add(self, path: str, stored: Stored, modified: int = 0) -> None:
        file = BackupFile(path, stored.size, stored.sha256, modified)
        self._files.append(file)
        self._journal.note(file)

    def _manifest(self, cut: Cut, begun: int) -> Manifest:
        growing = tuple(one.number for one in cut.growing)
        return Manifest(
            name=self._journal.name,
            pulsarbox=__version__,
            box=cut.identity,
            position=cut.position,
            checkpoint=cut.checkpoint,
            begun=begun,
            completed=now_ms(),
            volumes=growing,
            codecs=cut.codecs,
            files=tuple(self._files),
        )


def _chunks_of_file(path: Path, size: int) -> Iterator[bytes]:
    """Yield the first ``size`` bytes of a file that may grow."""
    with path.open("rb") as file:
        while size > 0 and (chunk := file.read(min(size, CHUNK))):
            size -= len(chunk)
            yield chunk


def is_within(path: Path, folder: Path) -> bool:
    """Return whether a path is a folder or inside it."""
    return path.resolve().is_relative_to(folder.resolve())


def _failed(repository: Repository, error: OSError) -> BackupError:
    where = error.filename or repository.path
    if error.errno not in (errno.ENOSPC, errno.EDQUOT):
        return BackupError(f"{where}: {error.strerror or error}; run the command again to resume the backup")
    # The box may need this disk: release what was stored, which is useless until there is more space.
    with suppress(OSError, PersistenceError):
        repository.drop_interrupted()
    return BackupError(
        f"{where}: the disk is full; the files of the backup were removed: free up space, or choose another disk"
    )


def _mib(size: int) -> str:
    return f"{size / (1 << 20):,.0f} MiB"


def now_ms() -> int:
    """Return the time in milliseconds since 1970."""
    return round(time.time() * 1000)
