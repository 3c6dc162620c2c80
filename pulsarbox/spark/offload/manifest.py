"""Manifest of a topic's offloaded ledgers: an append-only file of lines, each with a checksum.

A line is durable before anything relies on it. So a killed process leaves at most half a line at the end, which the
next writer truncates; concurrent readers ignore it. Kinds of lines:

``begin``    a topic or partition, and the start of its history
``schema``   the columns of files, as Spark's JSON, under an ID
``ledger``   one ledger, and its file if it has rows
``merged``   a file that replaces those of several ledgers
``lost``     a range lost before it was offloaded, and accepted by the operator
``writer``   a writer in object storage, from which on earlier writers can add nothing

In object storage the lines are in numbered objects: ``manifest_parts``.
"""

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pulsarbox.errors import PulsarBoxError
from pulsarbox.protocol.checksum import crc32c
from pulsarbox.spark.durable_files import make_folder, sync
from pulsarbox.spark.offload import manifest_parts
from pulsarbox.spark.offload.layout import LOCK, MANIFEST, TEMPORARY, files_in, has_files, is_merged
from pulsarbox.spark.source.offsets import Mark, parse, text
from pulsarbox.spark.topic_segments import ReadPosition

if TYPE_CHECKING:
    from pulsarbox.spark.offload.object_path import ObjectPath

VERSION: Final = 1
RESTORE: Final = "Restore the file from a copy, or offload what the box still has into another directory"
Line = dict[str, Any]


class OffloadError(PulsarBoxError):
    """Offloading is impossible, or offloaded data is damaged; the message says what to do."""


class OffloadedLedger(NamedTuple):
    """Manifest entry of an offloaded ledger."""

    topic: str
    """Full name; of a partitioned topic, that of the partition."""
    ledger: int
    entries: int
    """All entries, visible to readers or not."""
    rows: int
    messages: int
    """Visible messages as counted by the box, where each chunk counts."""
    payload_bytes: int
    file: str
    """Relative to the topic's directory; empty without rows."""
    file_bytes: int
    file_checksum: str
    content: dict[str, str]
    """Checksum of each column, independent of the file's layout."""
    schema: str
    first: str
    """The first row, as ``ledger:entry`` or ``ledger:entry:batch``; empty without rows."""
    last: str
    publish_time: tuple[int, int] | None
    """Minimum and maximum, in milliseconds since 1970."""
    event_time: tuple[int, int] | None
    before: int
    """Messages ever published to the topic before this ledger."""
    after: int
    closed: int
    """Time of closing, in ms since 1970."""
    unfinished: tuple[str, ...]
    """The first chunk of each message that begins in this ledger and does not end in it."""
    lost: tuple[str, ...]
    """Unreadable ranges accepted by the operator."""
    at: int
    """Time of offloading, in ms since 1970."""

    @property
    def end(self) -> Mark:
        """The position after the ledger, and the messages ever published before it."""
        return Mark(ReadPosition(self.ledger, self.entries), self.after)


class OffloadedFile(NamedTuple):
    """File with the rows of a ledger, or of several that were merged."""

    file: str
    """Relative to the topic's directory."""
    bytes: int
    checksum: str
    schema: str
    ledgers: tuple[OffloadedLedger, ...]
    """In log order, each with rows."""


class Gap(NamedTuple):
    """Range lost before it was offloaded."""

    start: ReadPosition
    end: Mark
    reason: str


class OffloadedTopic:
    """Offloaded history of one topic or partition."""

    def __init__(self, topic: str, begin: Mark, instance: str) -> None:
        self.topic = topic
        self.begin = begin
        self.instance = instance
        """ID of the box's data directory, as ledger IDs are unique only within one."""
        self.ledgers: list[OffloadedLedger] = []
        self.files: list[OffloadedFile] = []
        """The files that have the rows now, in log order."""
        self.gaps: list[Gap] = []
        self.next = begin
        """The first position not offloaded, and the messages ever published before it."""

    def add(self, ledger: OffloadedLedger) -> None:
        """Add the ledger that follows."""
        self.ledgers.append(ledger)
        self.next = ledger.end
        if ledger.file:
            self.files.append(
                OffloadedFile(ledger.file, ledger.file_bytes, ledger.file_checksum, ledger.schema, (ledger,))
            )

    def merge(self, replaced: Sequence[str], file: str, size: int, checksum: str) -> None:
        """Replace consecutive files by one. Raises ValueError if the topic does not have them."""
        names = [each.file for each in self.files]
        first = names.index(replaced[0])
        end = first + len(replaced)
        old = self.files[first:end]
        if names[first:end] != list(replaced) or len({each.schema for each in old}) != 1:
            raise ValueError(f"{file} replaces files that are not consecutive")
        ledgers = tuple(ledger for each in old for ledger in each.ledgers)
        self.files[first:end] = [OffloadedFile(file, size, checksum, old[0].schema, ledgers)]


class OffloadManifest:
    """Manifest of one topic as of reading; ``Writing`` appends to it."""

    def __init__(self, folder: "Path | ObjectPath") -> None:
        """Read the manifest; empty if there never was one.

        Raises OffloadError if it is damaged, or missing next to ledger files.
        """
        self.folder = folder
        self.path = folder / MANIFEST
        self.histories: dict[str, OffloadedTopic] = {}
        """Histories by full name of the topic or partition."""
        self.schemas: dict[str, dict[str, Any]] = {}
        self.replaced: dict[str, int] = {}
        """Files that were merged into others, and when, in ms since 1970. Readers of an earlier manifest need them."""
        self.size = 0
        """Bytes of the complete lines."""
        self.parts = manifest_parts.StoredParts(b"", 0)
        """The objects with the lines, in object storage."""
        stored = self._stored()
        if not stored and has_files(folder) and not self._exists():
            raise OffloadError(f"{self.path} is missing, but there are ledger files. {RESTORE}")
        for number, line in enumerate(_lines(self.path, stored), 1):
            try:
                self.apply_line(line)
            except (KeyError, TypeError, ValueError) as error:
                raise OffloadError(f"{self.path}, line {number}: invalid manifest line: {error!r}") from None
        self.size = stored.rfind(b"\n") + 1

    def _stored(self) -> bytes:
        if isinstance(self.path, Path):
            with contextlib.suppress(FileNotFoundError):
                return self.path.read_bytes()
            return b""
        assert not isinstance(self.folder, Path)
        self.parts = manifest_parts.read(self.folder)
        return self.parts.lines

    def _exists(self) -> bool:
        return isinstance(self.path, Path) and self.path.exists()

    def apply_line(self, line: Mapping[str, Any]) -> None:
        """Apply a line."""
        kind, topic = line["kind"], line.get("topic", "")
        if kind == "begin":
            if line["version"] != VERSION:
                raise ValueError(f"version {line['version']}")
            made = OffloadedTopic(topic, Mark(parse(line["place"]), line["before"]), line["instance"])
            self.histories[topic] = made
        elif kind == "schema":
            self.schemas[line["id"]] = line["columns"]
        elif kind == "ledger":
            known = {name: line[name] for name in OffloadedLedger._fields}
            for name in ("publish_time", "event_time"):
                known[name] = tuple(known[name]) if known[name] is not None else None
            for name in ("unfinished", "lost"):
                known[name] = tuple(known[name])
            self.histories[topic].add(OffloadedLedger(**known))
        elif kind == "merged":
            self.histories[topic].merge(line["replaced"], line["file"], line["file_bytes"], line["file_checksum"])
            self.replaced |= dict.fromkeys(line["replaced"], line["at"])
        elif kind == "lost":
            gap = Gap(parse(line["start"]), Mark(parse(line["end"]), line["before"]), line["reason"])
            self.histories[topic].gaps.append(gap)
            self.histories[topic].next = gap.end
        elif kind != "writer":
            raise ValueError(f"unknown kind {kind!r}")


def _lines(path: "Path | ObjectPath", stored: bytes) -> Iterator[Line]:
    """Yield the complete lines, with verified checksums."""
    for number, raw in enumerate(stored[: stored.rfind(b"\n") + 1].splitlines(), 1):
        try:
            line = json.loads(raw)
            told = line.pop("crc")
        except (ValueError, KeyError, AttributeError, TypeError):
            told, line = "", {}
        if told != _checksum(line):
            raise OffloadError(f"{path}, line {number}: its bytes do not match its checksum. {RESTORE}")
        yield line


def _checksum(line: Mapping[str, Any]) -> str:
    return f"{crc32c(json.dumps(line, sort_keys=True, separators=(',', ':')).encode()):08x}"


class Writing:
    """Exclusive writer of a topic's manifest. A context manager."""

    def __init__(self, folder: "Path | ObjectPath") -> None:
        """Open the manifest; lock it in a directory. Raises OffloadError if locked or damaged, and OSError."""
        self._locked = _LockedFile(folder) if isinstance(folder, Path) else None
        try:
            self.manifest = OffloadManifest(folder)
            if self._locked is not None:
                self._locked.open(self.manifest)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the file, and give up the lock."""
        if self._locked is not None:
            self._locked.close()

    def __enter__(self) -> "Writing":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def clean(self, until: int) -> None:
        """Delete files that killed writers have left, and those replaced by merged ones until then (ms since 1970).

        Deletes none while a file of the manifest is missing: another one may have its rows. Raises OffloadError,
        OSError.
        """
        folder = self.manifest.folder
        is_local = isinstance(folder, Path)
        if isinstance(folder, Path):
            for left in folder.glob(f"partition=*/.*{TEMPORARY}"):
                left.unlink()
        current = {each.file for history in self.manifest.histories.values() for each in history.files}
        replaced = self.manifest.replaced
        present = files_in(folder)
        others = [name for name in present if name not in current]
        if len(present) - len(others) < len(current):
            return
        # A local file of one ledger is written again under its name.
        strays = [name for name in others if name not in replaced and (is_merged(name) or not is_local)]
        if strays and not is_local:
            self._add({"kind": "writer", "id": os.urandom(8).hex()})  # no living writer can add a line for them now
        for name in strays + [name for name in others if name in replaced and replaced[name] <= until]:
            (folder / name).unlink(missing_ok=True)

    def begin(self, topic: str, begin: Mark, instance: str) -> None:
        """Record the start of a topic's history."""
        place = {"place": text(begin.place), "before": begin.seen, "instance": instance}
        self._add({"kind": "begin", "version": VERSION, "topic": topic} | place)

    def schema(self, name: str, columns: dict[str, Any]) -> None:
        """Record the columns of files, unless already recorded."""
        if name not in self.manifest.schemas:
            self._add({"kind": "schema", "id": name, "columns": columns})

    def ledger(self, ledger: OffloadedLedger) -> None:
        """Record a ledger whose file is in place and durable."""
        self._add({"kind": "ledger", **ledger._asdict()})

    def merged(self, topic: str, replaced: Sequence[str], file: str, size: int, checksum: str, at: int) -> None:
        """Record a file that is in place and durable, with the rows of consecutive others. ``at``: ms since 1970."""
        told = {"replaced": list(replaced), "file": file, "file_bytes": size, "file_checksum": checksum, "at": at}
        self._add({"kind": "merged", "topic": topic} | told)

    def lost(self, topic: str, gap: Gap) -> None:
        """Record a lost range."""
        told = {"start": text(gap.start), "end": text(gap.end.place), "before": gap.end.seen, "reason": gap.reason}
        self._add({"kind": "lost", "topic": topic} | told)

    def _add(self, line: Line) -> None:
        line = json.loads(json.dumps(line))
        raw = json.dumps({**line, "crc": _checksum(line)}, separators=(",", ":")).encode() + b"\n"
        manifest = self.manifest
        if self._locked is not None:
            self._locked.append(raw)
        else:
            assert not isinstance(manifest.folder, Path)
            parts = manifest_parts.append(manifest.folder, manifest.parts, raw)
            if parts is None:
                raise OffloadError(f"{manifest.folder} is being written by another offload: stop one of them")
            manifest.parts = parts
        manifest.size += len(raw)
        manifest.apply_line(line)


class _LockedFile:
    """Manifest file in a locked directory."""

    def __init__(self, folder: Path) -> None:
        """Lock the directory. Raises OffloadError, OSError."""
        make_folder(folder)
        self._file = -1
        self._lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            who = os.pread(self._lock, 20, 0).decode(errors="replace").strip()
            os.close(self._lock)
            raise OffloadError(
                f"{folder} is locked by another offload, process {who}: wait for it to finish, or stop it"
            ) from None
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, f"{os.getpid()}\n".encode(), 0)

    def open(self, manifest: OffloadManifest) -> None:
        """Open the file behind its complete lines. Raises OSError."""
        assert isinstance(manifest.path, Path)
        self._file = os.open(manifest.path, os.O_WRONLY | os.O_CREAT, 0o644)
        os.ftruncate(self._file, manifest.size)  # drop an incomplete line
        os.lseek(self._file, 0, os.SEEK_END)
        sync(manifest.path.parent)

    def append(self, raw: bytes) -> None:
        """Add a line, durable on return. Raises OSError."""
        written = 0
        while written < len(raw):
            written += os.write(self._file, raw[written:])
        os.fsync(self._file)

    def close(self) -> None:
        """Close the file, and give up the lock."""
        if self._file >= 0:
            os.close(self._file)
        os.close(self._lock)
