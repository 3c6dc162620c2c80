"""What is known of a topic's offloaded ledgers: lines that are only ever added, each with its checksum.

A line is durable before what it says is relied upon, so what a process that was killed has left is at most half a line
at the end, which the next one cuts off; who reads meanwhile has what there was. Kinds of lines:

``begin``    a topic, or partition, and where its history begins
``schema``   the columns of files, as Spark's JSON has them, under an id
``ledger``   one ledger, and its file where it has rows
``lost``     what was gone before it could be offloaded, and somebody has said to go on
"""

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, NamedTuple

from pulsarbox.errors import PulsarBoxError
from pulsarbox.protocol.checksum import crc32c
from pulsarbox.spark.durable_files import make_folder, sync
from pulsarbox.spark.offload.layout import LOCK, MANIFEST, has_files
from pulsarbox.spark.source.offsets import Mark, parse, text
from pulsarbox.spark.topic_segments import Place

VERSION: Final = 1
RESTORE: Final = "Restore the file from a copy, or offload into another directory what the box still has"
Line = dict[str, Any]


class OffloadError(PulsarBoxError):
    """It cannot be offloaded so, or what was offloaded is not as it was; says what to do."""


class Ledger(NamedTuple):
    """A ledger that is offloaded."""

    topic: str
    """Full name, of a partition its own."""
    ledger: int
    entries: int
    """All of them, be they seen or not."""
    rows: int
    messages: int
    """That a reader sees, as the box counts them: a message in chunks is several."""
    payload_bytes: int
    file: str
    """Below the topic's folder; empty where there are no rows."""
    file_bytes: int
    file_checksum: str
    content: dict[str, str]
    """A checksum for each column, whatever the layout of the file."""
    schema: str
    first: str
    """The first row, as ``ledger:entry`` or ``ledger:entry:batch``; empty where there is none."""
    last: str
    publish_time: tuple[int, int] | None
    """First and last of all, milliseconds since 1970."""
    event_time: tuple[int, int] | None
    before: int
    """The topic's messages in front of it, counted from its first one on."""
    after: int
    closed: int
    """When it was closed (ms since 1970)."""
    unfinished: tuple[str, ...]
    """The first chunk of each message that begins here and does not end here."""
    lost: tuple[str, ...]
    """What could not be read of it, and somebody has said to go on."""
    at: int
    """When it was offloaded (ms since 1970)."""

    @property
    def end(self) -> Mark:
        """The first place that is not in it, and the topic's messages up to there."""
        return Mark(Place(self.ledger, self.entries), self.after)


class Gap(NamedTuple):
    """What was gone before it could be offloaded."""

    start: Place
    end: Mark
    reason: str


class History:
    """What is offloaded of one topic or partition."""

    def __init__(self, topic: str, begin: Mark, instance: str) -> None:
        self.topic = topic
        self.begin = begin
        self.instance = instance
        """The id of the box's data directory: the numbers of ledgers are its own."""
        self.ledgers: list[Ledger] = []
        self.gaps: list[Gap] = []
        self.next = begin
        """The first place that is not offloaded, and the topic's messages up to there."""


class Manifest:
    """The manifest of one topic, as it was when it was read; ``Writing`` adds to it."""

    def __init__(self, folder: Path) -> None:
        """Raises OffloadError where it is damaged, or gone and files are there; one that was never there is empty."""
        self.folder = folder
        self.path = folder / MANIFEST
        self.histories: dict[str, History] = {}
        """By full name of the topic or partition."""
        self.schemas: dict[str, dict[str, Any]] = {}
        self.size = 0
        """Bytes of its complete lines."""
        try:
            stored = self.path.read_bytes()
        except FileNotFoundError:
            if has_files(folder):
                raise OffloadError(f"{self.path} is gone, and files of ledgers are there. {RESTORE}") from None
            return
        for number, line in enumerate(_lines(self.path, stored), 1):
            try:
                self.take(line)
            except (KeyError, TypeError, ValueError) as error:
                raise OffloadError(f"{self.path}, line {number}: {error!r} is not what a manifest has") from None
        self.size = stored.rfind(b"\n") + 1

    def take(self, line: Mapping[str, Any]) -> None:
        """Know what a line says."""
        kind, topic = line["kind"], line.get("topic", "")
        if kind == "begin":
            if line["version"] != VERSION:
                raise ValueError(f"version {line['version']}")
            made = History(topic, Mark(parse(line["place"]), line["before"]), line["instance"])
            self.histories[topic] = made
        elif kind == "schema":
            self.schemas[line["id"]] = line["columns"]
        elif kind == "ledger":
            known = {name: line[name] for name in Ledger._fields}
            for name in ("publish_time", "event_time"):
                known[name] = tuple(known[name]) if known[name] is not None else None
            for name in ("unfinished", "lost"):
                known[name] = tuple(known[name])
            found = Ledger(**known)
            self.histories[topic].ledgers.append(found)
            self.histories[topic].next = found.end
        elif kind == "lost":
            gap = Gap(parse(line["start"]), Mark(parse(line["end"]), line["before"]), line["reason"])
            self.histories[topic].gaps.append(gap)
            self.histories[topic].next = gap.end
        else:
            raise ValueError(f"a line of kind {kind!r}")


def _lines(path: Path, stored: bytes) -> Iterator[Line]:
    """The complete lines, their checksums verified."""
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
    """Who adds to the manifest of a topic: one process at a time. To be used with ``with``."""

    def __init__(self, folder: Path) -> None:
        """Raises OffloadError where somebody else does, or the manifest is damaged; OSError."""
        make_folder(folder)
        self._lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            self._take_lock(folder)
            self.manifest = Manifest(folder)
            self._file = os.open(self.manifest.path, os.O_WRONLY | os.O_CREAT, 0o644)
            os.ftruncate(self._file, self.manifest.size)  # half a line that somebody has left
            os.lseek(self._file, 0, os.SEEK_END)
            sync(folder)
        except BaseException:
            os.close(self._lock)
            raise

    def _take_lock(self, folder: Path) -> None:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            who = os.pread(self._lock, 20, 0).decode(errors="replace").strip()
            raise OffloadError(
                f"{folder} is written by another offload, process {who}: let it end, or stop it"
            ) from None
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, f"{os.getpid()}\n".encode(), 0)

    def __enter__(self) -> "Writing":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._file)
        os.close(self._lock)

    def begin(self, topic: str, begin: Mark, instance: str) -> None:
        """Say where the history of a topic begins."""
        place = {"place": text(begin.place), "before": begin.seen, "instance": instance}
        self._add({"kind": "begin", "version": VERSION, "topic": topic} | place)

    def schema(self, name: str, columns: dict[str, Any]) -> None:
        """Say what columns files have, unless that is known."""
        if name not in self.manifest.schemas:
            self._add({"kind": "schema", "id": name, "columns": columns})

    def ledger(self, ledger: Ledger) -> None:
        """Add a ledger, whose file is where it belongs and durable."""
        self._add({"kind": "ledger", **ledger._asdict()})

    def lost(self, topic: str, gap: Gap) -> None:
        """Add what is gone."""
        told = {"start": text(gap.start), "end": text(gap.end.place), "before": gap.end.seen, "reason": gap.reason}
        self._add({"kind": "lost", "topic": topic} | told)

    def _add(self, line: Line) -> None:
        line = json.loads(json.dumps(line))
        raw = json.dumps({**line, "crc": _checksum(line)}, separators=(",", ":")).encode() + b"\n"
        written = 0
        while written < len(raw):
            written += os.write(self._file, raw[written:])
        os.fsync(self._file)
        self.manifest.size += len(raw)
        self.manifest.take(line)
