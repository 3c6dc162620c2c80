"""Parts of a log: the batches of an unsealed volume, as immutable files.

A growing volume cannot be linked, and copying all of it would copy its beginning with each backup. So its log is
stored in parts, and the next backup stores only later batches. A part is MAGIC, then its batches, each preceded by its
position and size::

    position u64 | size u32 | batch
"""

import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Protocol

from pulsarbox.storage.backup.manifest import BackupDamaged, BackupFile
from pulsarbox.storage.backup.pace import CopyPace
from pulsarbox.storage.backup.stored_files import StoredFiles

MAGIC: Final = b"pbxlog\0\1"
PART_BYTES: Final = 64 << 20
"""A part ends with the batch that reaches this size."""
SMALL_BYTES: Final = 4 << 20
"""A last part smaller than this is stored again together with what follows it."""
_HEAD: Final = struct.Struct(">QI")


class LogVolume(Protocol):
    """A volume whose log is stored."""

    @property
    def number(self) -> int:
        """The number of the volume."""

    @property
    def first(self) -> int:
        """The position of its first batch, 0 if it has none."""

    @property
    def last(self) -> int:
        """The position of its last batch, 0 if it has none."""

    def batches(self, first: int) -> Iterator[tuple[int, bytes]]:
        """Yield positions and values from ``first`` to ``last``. Raises BackupError."""


def store_log(
    volume: LogVolume,
    known: Sequence[BackupFile],
    files: StoredFiles,
    pace: CopyPace,
    stored: Callable[[BackupFile], None],
) -> list[BackupFile]:
    """Store the log of a volume; return its parts. ``known`` are parts of earlier backups of this box.

    ``stored`` is called with each new part. Raises BackupError, OSError.
    """
    parts = [] if not volume.last else _continued(volume, known, files)
    following = parts[-1].last + 1 if parts else volume.first
    batches = volume.batches(following) if volume.last and following <= volume.last else iter(())
    ahead = next(batches, None)
    while ahead is not None:
        part = _Part(ahead, batches)
        contents = files.add(part.chunks(), pace)
        path = f"log/{volume.number:08d}/{part.first:020d}"
        parts.append(BackupFile(path, contents.size, contents.sha256, first=part.first, last=part.last))
        stored(parts[-1])
        ahead = part.behind
    return parts


def read_part(file: BackupFile, data: bytes, where: str) -> Iterator[tuple[int, bytes]]:
    """Yield the positions and batches of a part. Raises BackupDamaged if it does not match ``file``."""
    at, position = len(MAGIC), file.first - 1
    if not data.startswith(MAGIC):
        raise BackupDamaged(f"{where} is not a part of a log")
    while at < len(data):
        try:
            position, size = _HEAD.unpack_from(data, at)
        except struct.error:
            break
        at += _HEAD.size
        if at + size > len(data):
            break
        yield position, data[at : at + size]
        at += size
    if at != len(data) or position != file.last:
        raise BackupDamaged(f"{where} is damaged: it does not end with batch {file.last}")


class _Part:
    """Collects batches until a part is full."""

    def __init__(self, first: tuple[int, bytes], batches: Iterator[tuple[int, bytes]]) -> None:
        self.first = self.last = first[0]
        self.behind: tuple[int, bytes] | None = first
        self._batches = batches

    def chunks(self) -> Iterator[bytes]:
        size = len(MAGIC)
        yield MAGIC
        while self.behind is not None and size < PART_BYTES:
            position, value = self.behind
            self.last = position
            size += _HEAD.size + len(value)
            yield _HEAD.pack(position, len(value)) + value
            self.behind = next(self._batches, None)


def _continued(volume: LogVolume, known: Sequence[BackupFile], files: StoredFiles) -> list[BackupFile]:
    """Return the longest run of known parts that is the beginning of the log."""
    found: list[BackupFile] = []
    expected = volume.first
    by_first = {file.first: file for file in sorted(known, key=lambda file: file.last) if file.volume == volume.number}
    while (
        (part := by_first.get(expected)) is not None and part.last <= volume.last and files.has(part.sha256, part.size)
    ):
        found.append(part)
        expected = part.last + 1
    # A restored box has a different history, so it may have other batches at these positions.
    while found and not _is_end_of(found[-1], volume, files):
        found.pop()
    if found and found[-1].size < SMALL_BYTES and found[-1].last < volume.last:
        found.pop()
    return found


def _is_end_of(part: BackupFile, volume: LogVolume, files: StoredFiles) -> bool:
    """Return whether the last batch of a part equals the volume's batch at that position; False for a damaged part."""
    try:
        stored = list(read_part(part, b"".join(files.read(part.sha256, part.size)), str(files.path(part.sha256))))
    except (BackupDamaged, OSError):
        return False
    return next(volume.batches(part.last), None) == stored[-1]
