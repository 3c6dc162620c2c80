"""Recorded samples of the live views: frames in a few files beside the store, thinned with age.

::

    file     = frame*                                 named by the time of its first frame, and how often it was thinned
    frame    = u32 size | u32 crc32 of what follows | u64 time (ms since 1970) | u8 kind | body
    body     = u32 size of the head | head | rows, both JSON   packed by zstd

The first frame of a file, and every KEY_EVERY-th, is a key frame, compressed independently. The frames after it are
compressed with the key as their dictionary, because they mostly repeat it. An incomplete frame ends its file: a crash
loses one frame. No commit waits for these files, and no error here prevents startup.
"""

import json
import os
import struct
import zlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import zstandard

from pulsarbox.storage.format import HISTORY
from pulsarbox.storage.lmdb.private_files import PRIVATE

FOLDER: Final = HISTORY
SUFFIX: Final = ".frames"
_NEW: Final = ".new"
KEY_EVERY: Final = 60
LEVEL: Final = 3
"""Compression level of zstd."""
FRAME_MAX: Final = 64 << 20
"""Maximum bytes of an uncompressed frame."""
FILE_MS: Final = 3_600_000
"""Maximum time span of a file, in milliseconds."""

_HEADER: Final = struct.Struct(">IIQB")
_HEAD: Final = struct.Struct(">I")
_KEY, _DELTA = 1, 2

Head = dict[str, Any]


class Coarser(NamedTuple):
    """Thinning of older frames: within each ``step``, one is kept."""

    age: int
    step: int


TIERS: Final = (Coarser(6 * 3_600_000, 60_000), Coarser(48 * 3_600_000, 600_000))
"""In milliseconds: after six hours one per minute, after two days one per ten minutes."""


class HistoryFrame(NamedTuple):
    """The views at one time."""

    time: int
    """Milliseconds since 1970, by the box's clock."""
    head: bytes
    """JSON: totals."""
    rows: bytes
    """JSON: views."""


class FileName(NamedTuple):
    """A file of frames."""

    first: int
    """The time of its first frame."""
    tier: int
    """Number of times it was thinned."""
    path: Path


def files(folder: Path) -> list[FileName]:
    """Return all files, oldest first; empty if nothing was written."""
    found = []
    try:
        for path in folder.iterdir():
            first, _, tier = path.name.removesuffix(SUFFIX).partition("-")
            if path.suffix == SUFFIX and first.isdecimal() and tier.isdecimal():
                found.append(FileName(int(first), int(tier), path))
    except OSError:
        return []
    return sorted(found)


class _Place(NamedTuple):
    time: int
    at: int
    """Offset of the body in the file."""
    size: int
    key: int
    """Index of its key frame in the file."""


def _places(data: bytes) -> list[_Place]:
    """Return the frames of a file, up to the first incomplete one."""
    found: list[_Place] = []
    at, key = 0, -1
    while at + _HEADER.size <= len(data):
        size, checksum, time, kind = _HEADER.unpack_from(data, at)
        body = at + _HEADER.size
        if body + size > len(data) or zlib.crc32(data[at + 8 : body + size]) != checksum:
            break
        if kind == _KEY:
            key = len(found)
        elif key < 0:
            break
        found.append(_Place(time, body, size, key))
        at = body + size
    return found


def _unpack(packed: bytes, key: bytes | None) -> bytes:
    """Decompress a frame. Raises ValueError if it is invalid."""
    dictionary = None if key is None else zstandard.ZstdCompressionDict(key, zstandard.DICT_TYPE_RAWCONTENT)
    try:
        if zstandard.frame_content_size(packed) > FRAME_MAX:
            raise ValueError("a frame exceeds the maximum size")
        return zstandard.ZstdDecompressor(dict_data=dictionary).decompress(packed, FRAME_MAX)
    except zstandard.ZstdError as error:
        raise ValueError(f"a frame cannot be decompressed: {error}") from None


def _split(time: int, plain: bytes) -> HistoryFrame:
    (size,) = _HEAD.unpack_from(plain)
    return HistoryFrame(time, plain[_HEAD.size : _HEAD.size + size], plain[_HEAD.size + size :])


class FrameFile:
    """One file, read as a whole: an hour of a busy box is a few MiB."""

    def __init__(self, path: Path) -> None:
        """Raises OSError."""
        self._data = path.read_bytes()
        self._places = _places(self._data)
        self._key: tuple[int, bytes] | None = None
        self.times = [place.time for place in self._places]

    def frame(self, number: int) -> HistoryFrame:
        """Return a frame. Raises ValueError if it is damaged."""
        place = self._places[number]
        if place.key == number:
            return _split(place.time, self._plain_key(number))
        return _split(place.time, _unpack(self._body(place), self._plain_key(place.key)))

    def _plain_key(self, number: int) -> bytes:
        if self._key is None or self._key[0] != number:
            self._key = number, _unpack(self._body(self._places[number]), None)
        return self._key[1]

    def _body(self, place: _Place) -> bytes:
        return self._data[place.at : place.at + place.size]


class FrameWriter:
    """Appends frames to a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size = 0
        self._frames = 0
        self._key = b""

    def append(self, frame: HistoryFrame, *, sync: bool = True) -> None:
        """Append a frame, durably with ``sync``. Raises OSError; no other frame may be appended then."""
        plain = b"".join((_HEAD.pack(len(frame.head)), frame.head, frame.rows))
        is_key = self._frames % KEY_EVERY == 0
        dictionary = None
        if is_key:
            self._key = plain
        else:
            dictionary = zstandard.ZstdCompressionDict(self._key, zstandard.DICT_TYPE_RAWCONTENT)
        packed = zstandard.ZstdCompressor(level=LEVEL, dict_data=dictionary).compress(plain)
        tail = _HEADER.pack(0, 0, frame.time, _KEY if is_key else _DELTA)[8:] + packed
        data = struct.pack(">II", len(packed), zlib.crc32(tail)) + tail
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, PRIVATE)
        try:
            written = os.write(descriptor, data)
            if written != len(data):
                raise OSError(f"{self.path}: {written} of {len(data)} bytes were written")
            if sync:
                os.fdatasync(descriptor)
        finally:
            os.close(descriptor)
        self.size += len(data)
        self._frames += 1


def write_all(path: Path, frames: Iterable[HistoryFrame]) -> None:
    """Write a file of these frames, atomically. Raises OSError."""
    new = path.with_name(path.name + _NEW)
    new.unlink(missing_ok=True)
    writer = FrameWriter(new)
    for frame in frames:
        writer.append(frame, sync=False)
    if not writer.size:
        return
    descriptor = os.open(new, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    new.rename(path)


def thinned(times: list[int], step: int) -> list[int]:
    """Return the indexes of the times to keep: the first in each step."""
    kept, before = [], -1
    for number, time in enumerate(times):
        if time // step != before:
            kept.append(number)
            before = time // step
    return kept


def thin(folder: Path, now: int) -> bool:
    """Thin one hour of frames that is old enough; return whether there was one. Raises OSError."""
    every = files(folder)
    for tier, (age, step) in enumerate(TIERS):
        old = [each for each in every if each.tier == tier and each.first + FILE_MS < now - age]
        if not old:
            continue
        hour = old[0].first // FILE_MS
        group = [each for each in old if each.first // FILE_MS == hour]
        target = folder / f"{group[0].first:015d}-{tier + 1}{SUFFIX}"
        write_all(target, _kept(group, step))
        for each in group:
            each.path.unlink(missing_ok=True)
        return True
    return False


def _kept(group: list[FileName], step: int) -> Iterator[HistoryFrame]:
    read = [FrameFile(each.path) for each in group]
    places = sorted((time, at, number) for at, file in enumerate(read) for number, time in enumerate(file.times))
    for kept in thinned([time for time, _, _ in places], step):
        _, at, number = places[kept]
        try:
            yield read[at].frame(number)
        except ValueError:
            continue


def make_room(folder: Path, most: int, oldest: int) -> None:
    """Remove the oldest files to leave at most ``most`` bytes, and all files that end before ``oldest``."""
    left = most
    for each in reversed(files(folder)):
        try:
            left -= each.path.stat().st_size
        except OSError:
            continue
        if left < 0 or each.first + FILE_MS < oldest:
            each.path.unlink(missing_ok=True)
    for leftover in folder.glob("*" + _NEW):
        leftover.unlink(missing_ok=True)


class History:
    """All frames of a folder, by time. Used by one thread at a time."""

    _FILES_KEPT: Final = 2

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._read: dict[tuple[Path, int], FrameFile] = {}

    def extent(self) -> tuple[int, int, int]:
        """Return the times of the first and the last frame (0 if there is none), and the bytes of all files."""
        every = files(self.folder)
        size = 0
        for each in every:
            try:
                size += each.path.stat().st_size
            except OSError:
                continue
        last = 0
        for each in reversed(every):
            file = self._file(each)
            if file is not None and file.times:
                last = file.times[-1]
                break
        return (every[0].first if last else 0), last, size

    def times(self, begin: int, end: int, most: int) -> list[int]:
        """Return the times of frames from ``begin`` to ``end``; if more than ``most``, an even selection."""
        found: set[int] = set()
        for each in files(self.folder):
            if each.first <= end and each.first + FILE_MS >= begin:
                file = self._file(each)
                found.update(time for time in (file.times if file is not None else ()) if begin <= time <= end)
        every = sorted(found)
        if len(every) <= most:
            return every
        return [every[number * (len(every) - 1) // max(most - 1, 1)] for number in range(most)]

    def at(self, time: int) -> HistoryFrame | None:
        """Return the last frame at or before ``time``, or None."""
        return next(self.before(time), None)

    def before(self, time: int) -> Iterator[HistoryFrame]:
        """Yield the frames at or before ``time``, newest first, each once: a copied folder may have some twice."""
        every = files(self.folder)
        for each in reversed(every[: bisect_right([one.first for one in every], time)]):
            file = self._file(each)
            if file is None:
                continue
            for number in range(bisect_right(file.times, time) - 1, -1, -1):
                try:
                    frame = file.frame(number)
                except ValueError:
                    continue
                if frame.time <= time:
                    time = frame.time - 1
                    yield frame

    def _file(self, name: FileName) -> FrameFile | None:
        try:
            key = name.path, name.path.stat().st_size
            found = self._read.pop(key, None) or FrameFile(name.path)
        except OSError:
            return None
        self._read[key] = found
        while len(self._read) > self._FILES_KEPT:
            del self._read[next(iter(self._read))]
        return found


def packed_rows(views: dict[str, Any]) -> bytes:
    """Encode views as the rows of a frame, with column names only once."""
    told = {}
    for name, (total, rows) in views.items():
        columns = list(rows[0]) if rows else []
        told[name] = {"total": total, "columns": columns, "rows": [list(row.values()) for row in rows]}
    return json.dumps(told, separators=(",", ":")).encode()


def rows_of(frame: HistoryFrame, view: str) -> tuple[int, list[dict[str, Any]]] | None:
    """Return the total and the recorded rows of a view; None if it was not recorded."""
    told = json.loads(frame.rows).get(view)
    if told is None:
        return None
    return told["total"], [dict(zip(told["columns"], row, strict=True)) for row in told["rows"]]
