"""The recorder: compiles ``record.c``, runs a process under it, and reads the log as events."""

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from enum import IntEnum
from pathlib import Path
from struct import Struct
from typing import Final, NamedTuple

SOURCE: Final = Path(__file__).with_name("record.c")
_HEADER: Final = Struct("=BBHIQqQ")
_DURABLE: Final = 1
_DIRECTORY: Final = 2
_KEEP_SIZE: Final = 4


class Op(IntEnum):
    """Kind of an event; the numbers up to UNSEEN are those of record.c."""

    CREATE = 1
    MKDIR = 2
    WRITE = 3
    TRUNCATE = 4
    ALLOCATE = 5
    SYNC_BEGIN = 6
    SYNC_END = 7
    RENAME = 8
    UNLINK = 9
    RMDIR = 10
    MARK = 11
    UNSEEN = 12
    DURABLE = 13
    """The preceding write through an O_DSYNC descriptor has returned."""


SYNC_POINTS: Final = (Op.SYNC_BEGIN, Op.SYNC_END, Op.DURABLE)


class Event(NamedTuple):
    """One record of the log; paths are below the root."""

    op: Op
    inode: int = 0
    at: int = 0
    """Offset of a write, size of a truncated or allocated file, or number of a sync."""
    data: bytes = b""
    path: str = ""
    other: str = ""
    directory: bool = False
    """Whether a sync is one of a directory."""


class RecorderError(Exception):
    """Recording failed: no compiler, a failed process, or writes that cannot be recorded."""


def compile_recorder(folder: Path) -> Path:
    """Compile the preload library into ``folder`` and return its path. Raises RecorderError."""
    compiler = next(filter(None, map(shutil.which, (os.environ.get("CC", "cc"), "cc", "gcc", "clang"))), None)
    if compiler is None:
        raise RecorderError("no C compiler (cc) is installed: what LMDB writes cannot be recorded")
    library = folder / "record.so"
    command = [compiler, "-shared", "-fPIC", "-O2", "-o", str(library), str(SOURCE), "-lpthread"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    if done.returncode:
        raise RecorderError(f"{SOURCE.name} does not compile here:\n{done.stderr}")
    return library


def record(library: Path, command: Sequence[str], root: Path, log: Path) -> None:
    """Run a command and record its file operations below ``root``. Raises RecorderError if it fails."""
    root.mkdir(parents=True, exist_ok=True)
    environment = os.environ | {
        "LD_PRELOAD": str(library),
        "POWERCUT_ROOT": str(root.resolve()),
        "POWERCUT_LOG": str(log.resolve()),
    }
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        raise RecorderError(f"the workload ended with {done.returncode}:\n{done.stderr[-3000:]}")


def load(log: Path) -> list[Event]:
    """Return the events of a log. Raises RecorderError if the process bypassed the recorder."""
    return list(parse(log.read_bytes()))


def parse(data: bytes) -> Iterator[Event]:
    """Yield the events in a log's bytes. An O_DSYNC write yields two: the write, and its return."""
    at = 0
    while at < len(data):
        number, flags, path_size, other_size, inode, where, data_size = _HEADER.unpack_from(data, at)
        at += _HEADER.size
        path = data[at : at + path_size].decode()
        other = data[at + path_size : at + path_size + other_size].decode()
        at += path_size + other_size
        op = Op(number)
        if op == Op.UNSEEN:
            raise RecorderError("a file was changed in a way that leaves no record: a writable map or the like")
        if op == Op.ALLOCATE and flags & _KEEP_SIZE:
            at += data_size
            continue
        yield Event(op, inode, where, data[at : at + data_size], path, other, bool(flags & _DIRECTORY))
        at += data_size
        if op == Op.WRITE and flags & _DURABLE:
            yield Event(Op.DURABLE, inode)
