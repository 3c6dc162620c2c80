"""A consistent cut of a data directory at one batch, held for copying while the box runs.

The order of its steps makes locks unnecessary. First comes a snapshot of ``meta``: its checkpoint covers some batch,
and its tables name the sealed and packed volumes. Those are opened next, then the unsealed volumes. The last batch in
the newest of these is the position of the cut. If a volume was packed or removed between the steps, it is missing, and
the cut is repeated from a newer snapshot.

Open files stay readable whatever the box removes: the kernel keeps their contents, and frees their disk space when this
process closes them or ends in any way. So nothing is pinned in the box, and a killed backup holds no space.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import lmdb

from pulsarbox.errors import PersistenceError
from pulsarbox.storage.backup.manifest import BackupError
from pulsarbox.storage.backup.pace import CHUNK
from pulsarbox.storage.format import CONTENT, LOG_KEY, META, NEED, PACKED
from pulsarbox.storage.inspection.box import Box, OpenEnvironment, name_of, open_readonly
from pulsarbox.storage.lmdb.directory import DATA_FILE, verify_environment
from pulsarbox.storage.record import check_batch

_ATTEMPTS: Final = 100
_PAUSE_SECONDS: Final = 0.05
"""Pause between attempts. Packing removes a volume within a few seconds, so the second attempt usually succeeds."""
META_SECONDS_MAX: Final = 600.0
"""While ``meta`` is copied the box cannot reuse its pages, and each checkpoint makes the file grow."""

Known = Callable[[str, int, int], bool]
"""Whether a file (its path, size, modification time in ns) is already in the backup directory."""


class _Moved(Exception):
    """A volume named by the snapshot is missing: it was packed or removed since."""


class SealedVolume(NamedTuple):
    """A volume that is never written again."""

    path: str
    """Path of its file in the data directory."""
    size: int
    modified: int
    """Nanoseconds since 1970."""
    descriptor: int
    """The open file; -1 if an earlier backup has stored it."""
    last: int = 0
    """The position of its last batch."""


class GrowingVolume(NamedTuple):
    """An unsealed volume. Its log is append-only, so it is read without a long transaction."""

    number: int
    first: int
    last: int
    """Positions of its first and last batch, 0 if it has none."""
    environment: OpenEnvironment

    def batches(self, first: int) -> Iterator[tuple[int, bytes]]:
        """Yield positions and values from ``first`` to ``last``. Raises BackupError if one is missing or damaged."""
        for chunk in self.environment.chunks(b"log", LOG_KEY.pack(first)):
            for key, value in chunk:
                (position,) = LOG_KEY.unpack(key)
                if position > self.last:
                    return
                if position != first:
                    raise BackupError(self._damaged(first, "it is missing"))
                try:
                    check_batch(value)
                except PersistenceError as error:
                    raise BackupError(self._damaged(position, str(error))) from error
                yield position, value
                first += 1
        if first <= self.last:
            raise BackupError(self._damaged(first, "it is missing"))

    def _damaged(self, position: int, why: str) -> str:
        return (
            f"batch {position} of {name_of(self.number)} cannot be copied: {why}; `pulsarbox storage check` shows the"
            " damage"
        )


class Cut:
    """The state held. ``meta`` is held until ``release_meta``, the rest inside ``held_cut``."""

    def __init__(self, box: Box, held: ExitStack) -> None:
        self._held = held
        self._meta_held = held.enter_context(ExitStack())
        self._locked = True
        self._box = box
        self._meta = self._open(META)
        self._meta_held.callback(self._meta.close)
        self._meta_held.enter_context(self._meta.snapshot())
        self.identity = box.identity
        self.checkpoint = self._meta.number(b"mark", b"position")
        self._sealed = self._meta.number(b"mark", b"sealed")
        self.codecs = _codecs(self._meta)
        self.meta_size = self._meta.size
        self.sealed: list[SealedVolume] = []
        self.growing: list[GrowingVolume] = []
        self.position = self.checkpoint

    @property
    def path(self) -> Path:
        """The data directory."""
        return self._box.path

    @property
    def meta(self) -> OpenEnvironment:
        """The snapshot of ``meta``, until it is released."""
        return self._meta

    def hold(self, known: Known) -> None:
        """Open all volumes. Raises _Moved, PersistenceError, OSError."""
        for key, value in self._meta.rows(b"contents"):
            number, content = LOG_KEY.unpack(key)[0], CONTENT.unpack(value)
            self.sealed.append(self._sealed_volume(number, known)._replace(last=content[1]))
            if number < PACKED:
                self.position = max(self.position, content[1])
        numbers = sorted(int(path.name) for path in (self._box.path / "volumes").iterdir() if path.name.isdigit())
        growing = [number for number in numbers if number > self._sealed]
        if not growing or growing != list(range(self._sealed + 1, growing[-1] + 1)):
            raise _Moved("volumes")
        for number in growing:
            environment = self._open(name_of(number))
            self._held.callback(environment.close)
            first, last = environment.extent()
            self.growing.append(GrowingVolume(number, first, last, environment))
            self.position = max(self.position, last)

    def release_meta(self) -> None:
        """End the snapshot of ``meta``, whose pages may be reused then. Raises BackupError if it was not protected."""
        self._meta_held.close()
        if not self._locked and Box(self._box.path).live:
            raise BackupError(
                f"{self._box.path}: a box was started during the backup, and this user cannot lock its files: run the"
                " backup again, as the box's user"
            )

    def meta_chunks(self) -> Iterator[bytes]:
        """Yield the bytes of a compact copy of the snapshot of ``meta``. Raises BackupError."""
        until = time.monotonic() + META_SECONDS_MAX
        failed: list[Exception] = []
        reading, writing = os.pipe()

        def copy() -> None:
            try:
                self._meta.copy(writing)
            except (lmdb.Error, OSError) as error:
                failed.append(error)
            finally:
                os.close(writing)

        copier = threading.Thread(target=copy, name="meta copier", daemon=True)
        copier.start()
        try:
            while chunk := os.read(reading, CHUNK):
                yield chunk
                if time.monotonic() > until:
                    raise BackupError(
                        f"copying meta took longer than {META_SECONDS_MAX:.0f} s, during which the box cannot reuse its"
                        " pages: use a faster disk for the backup, or a higher --rate"
                    )
        finally:
            os.close(reading)
            copier.join()
        if failed:
            raise BackupError(
                f"{self._box.path / META} cannot be copied: {failed[0]}; `pulsarbox storage check` shows damage"
            ) from failed[0]

    def _sealed_volume(self, number: int, known: Known) -> SealedVolume:
        path = f"{name_of(number)}/{DATA_FILE}"
        try:
            status = (self._box.path / path).stat()
            if known(path, status.st_size, status.st_mtime_ns):
                return SealedVolume(path, status.st_size, status.st_mtime_ns, -1)
            descriptor = os.open(self._box.path / path, os.O_RDONLY)
        except FileNotFoundError:
            raise _Moved(path) from None
        self._held.callback(os.close, descriptor)
        status = os.fstat(descriptor)
        return SealedVolume(path, status.st_size, status.st_mtime_ns, descriptor)

    def _open(self, name: str) -> OpenEnvironment:
        box, path = self._box, self._box.path / name
        lock = box.can_lock(name)
        if not lock and box.live:
            raise BackupError(f"{path / 'lock.mdb'} cannot be written: run the backup as the box's user")
        self._locked = self._locked and lock
        try:
            verify_environment(path)
            return OpenEnvironment(open_readonly(path, lock=lock))
        except (lmdb.Error, OSError, PersistenceError) as error:
            if box.is_gone(name):
                raise _Moved(name) from error
            raise BackupError(f"{path} cannot be opened: {error}; `pulsarbox storage check` shows damage") from error


@contextmanager
def held_cut(path: Path, known: Known) -> Iterator[Cut]:
    """Make a cut of the data directory at ``path``, and hold it inside the block.

    Raises BackupError, and PersistenceError if it is not a data directory.
    """
    _check_source(path)
    missing = ""
    for attempt in range(_ATTEMPTS):
        if attempt:
            time.sleep(_PAUSE_SECONDS)
        with ExitStack() as held:
            try:
                cut = Cut(Box(path), held)
                cut.hold(known)
            except _Moved as error:
                missing = str(error)
                continue
            except OSError as error:
                raise BackupError(f"{error.filename or path} cannot be read: {error.strerror or error}") from error
            yield cut
            return
    raise BackupError(
        f"{path} cannot be backed up: {missing} is missing, though its tables name it; `pulsarbox storage check {path}`"
        " shows the damage"
    )


def _check_source(path: Path) -> None:
    box = Box(path)
    if not (box.path / META).exists():
        raise BackupError(f"{path} is empty: no box has completed a start on it")


def _codecs(meta: OpenEnvironment) -> tuple[str, ...]:
    tags = {NEED.unpack(key)[0]: value.decode() for key, value in meta.rows(b"needs")}
    return tuple(sorted(set(tags.values())))
