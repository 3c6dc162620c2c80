"""The contents of backups, each stored once under its SHA-256."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Final, NamedTuple

from pulsarbox.storage.backup.manifest import BackupDamaged
from pulsarbox.storage.backup.pace import CHUNK, READ_WEIGHT, CopyPace
from pulsarbox.storage.lmdb.directory import sync_directory
from pulsarbox.storage.lmdb.private_files import PRIVATE, make_directory

_SYNC_BYTES: Final = 1 << 20
"""Bytes written between syncs: each sync of the box's journal waits for one in progress."""


class Stored(NamedTuple):
    """Stored contents."""

    size: int
    sha256: str
    linked: bool = False


class StoredFiles:
    """The folders ``files`` and ``incoming`` of a backup directory."""

    def __init__(self, folder: Path) -> None:
        self._files = folder / "files"
        self._incoming = folder / "incoming"
        self._unsynced: set[Path] = set()

    def create(self) -> None:
        """Create the folders. Raises OSError."""
        for folder in (self._files, self._incoming):
            make_directory(folder)

    def path(self, digest: str) -> Path:
        """Return the path of contents."""
        return self._files / digest[:2] / digest

    def has(self, digest: str, size: int) -> bool:
        """Return whether contents are stored in full length; they are not read."""
        try:
            return self.path(digest).stat().st_size == size
        except OSError:
            return False

    def add(self, chunks: Iterable[bytes], pace: CopyPace) -> Stored:
        """Store contents, durable once ``sync`` has returned. Raises OSError and the exceptions of ``chunks``."""
        digest, size, unsynced = sha256(), 0, 0
        with self._new_file() as new:
            descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, PRIVATE)
            try:
                for chunk in chunks:
                    digest.update(chunk)
                    _write(descriptor, chunk)
                    size += len(chunk)
                    unsynced += len(chunk)
                    if unsynced >= _SYNC_BYTES:
                        _sync_and_forget(descriptor)
                        unsynced = 0
                    pace(len(chunk))
                _sync_and_forget(descriptor)
            finally:
                os.close(descriptor)
            self._publish(new, digest.hexdigest())
        return Stored(size, digest.hexdigest())

    def link(self, source: Path, descriptor: int, pace: CopyPace) -> Stored | None:
        """Store the file open as ``descriptor`` as a hard link to ``source``; None if that is impossible.

        The file must be immutable. Raises OSError if it cannot be read.
        """
        with self._new_file() as new:
            try:
                os.link(source, new)
                same = os.path.samestat(new.stat(), os.fstat(descriptor))
            except OSError:
                return None
            if not same:
                return None
            digest, size = sha256(), 0
            for chunk in chunks_of(descriptor):
                digest.update(chunk)
                size += len(chunk)
                pace(len(chunk), READ_WEIGHT)
            self._publish(new, digest.hexdigest())
        return Stored(size, digest.hexdigest(), linked=True)

    def read(self, digest: str, size: int) -> Iterator[bytes]:
        """Yield contents. Raises BackupDamaged, at the latest after the last chunk, and OSError."""
        path, found, read = self.path(digest), sha256(), 0
        try:
            descriptor = os.open(path, os.O_RDONLY)
        except FileNotFoundError:
            raise BackupDamaged(f"{path} is missing") from None
        try:
            length = os.fstat(descriptor).st_size
            if length != size:
                raise BackupDamaged(f"{path} is truncated or extended: {length} bytes, {size} were stored")
            for chunk in chunks_of(descriptor):
                found.update(chunk)
                read += len(chunk)
                yield chunk
        finally:
            os.close(descriptor)
        if found.hexdigest() != digest:
            raise BackupDamaged(f"{path} is damaged: its {read} bytes do not match their checksum")

    def sync(self) -> None:
        """Make the names of all stored contents durable. Raises OSError."""
        for folder in sorted(self._unsynced):
            sync_directory(folder)
        sync_directory(self._files)
        self._unsynced.clear()

    def digests(self) -> list[str]:
        """Return the checksums of all stored contents."""
        return sorted(path.name for path in self._files.glob("??/*"))

    def remove(self, digest: str) -> int:
        """Remove contents; return their size in bytes. Raises OSError."""
        path = self.path(digest)
        size = path.stat().st_size
        path.unlink()
        with suppress(OSError):  # not empty
            path.parent.rmdir()
        return size

    def clear_incoming(self) -> None:
        """Remove partially written files. Raises OSError."""
        for path in self._incoming.iterdir():
            path.unlink()

    @contextmanager
    def _new_file(self) -> Iterator[Path]:
        new = self._incoming / "file"
        new.unlink(missing_ok=True)
        try:
            yield new
        finally:
            new.unlink(missing_ok=True)  # even after the rename, which does nothing if both are links to the same file

    def _publish(self, new: Path, digest: str) -> None:
        path = self.path(digest)
        make_directory(path.parent)
        # Replaces existing contents, which may be damaged.
        new.rename(path)
        self._unsynced.add(path.parent)


def chunks_of(descriptor: int) -> Iterator[bytes]:
    """Yield the contents of an open file, from its beginning. Raises OSError."""
    at = 0
    while chunk := os.pread(descriptor, CHUNK, at):
        at += len(chunk)
        yield chunk


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _sync_and_forget(descriptor: int) -> None:
    os.fdatasync(descriptor)
    with suppress(OSError, AttributeError):
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
