"""Child processes for reads that may crash: a damaged LMDB page can kill the process that maps it.

A child prints one JSON list per line; the first item is the kind of line. ``["at", name, number]`` precedes each piece
of work, so that the parent knows how far a child got. The last line is ``["end"]``.
"""

import importlib
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from pulsarbox.errors import PersistenceError

Line = list[Any]
Task = Callable[[Path, dict[str, Any]], Iterator[Line]]

TASKS: Final = {
    "meta": "pulsarbox.storage.inspection.examination:examine_meta",
    "volume": "pulsarbox.storage.inspection.examination:examine_volume",
    "stat": "pulsarbox.storage.inspection.statistics:gather",
    "dump": "pulsarbox.storage.inspection.dump:dump",
    "dead": "pulsarbox.storage.inspection.dead_box:gather",
}
STALL_SECONDS: Final = 600

_START = (
    "import sys, json; sys.path[:] = json.loads(sys.argv[1]);"
    " from pulsarbox.storage.inspection.child import main; main(*sys.argv[2:])"
)
_FLUSH_AT = {"at", "finding"}


class ChildEnded(PersistenceError):
    """A child ended prematurely. ``where`` and ``number`` are those of its last ``at``."""

    def __init__(self, reason: str, where: str, number: int) -> None:
        super().__init__(reason)
        self.reason = reason
        self.where = where
        self.number = number


def run(task: str, path: Path, options: dict[str, Any]) -> Iterator[Line]:
    """Yield the lines of a child that runs ``task``. Raises ChildEnded."""
    where, number = "", 0
    command = [sys.executable, "-c", _START, json.dumps(sys.path), task, str(path), json.dumps(options)]
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert child.stdout is not None
    try:
        for text in _lines(child.stdout.fileno()):
            line: Line = json.loads(text)
            if line[0] == "end":
                return
            if line[0] == "failed":
                raise ChildEnded(line[1], where, number)
            if line[0] == "at":
                where, number = line[1], line[2]
            yield line
        code = child.wait()
        raise ChildEnded(_ending(code), where, number)
    except TimeoutError:
        raise ChildEnded(f"reading it did not come on for {STALL_SECONDS} s", where, number) from None
    finally:
        child.kill()
        child.wait()
        child.stdout.close()


def main(task: str, path: str, options: str) -> None:
    """Run a task in a child process."""
    write = sys.stdout.write
    try:
        module, _, name = TASKS[task].partition(":")
        function: Task = getattr(importlib.import_module(module), name)
        try:
            for line in function(Path(path), json.loads(options)):
                write(json.dumps(line) + "\n")
                if line[0] in _FLUSH_AT:
                    sys.stdout.flush()
            write('["end"]\n')
        except PersistenceError as error:
            write(json.dumps(["failed", str(error)]) + "\n")
        except Exception as error:  # a damaged file can raise any of them
            write(json.dumps(["failed", repr(error)]) + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        pass
    os._exit(0)  # skips the destructors of LMDB


def _lines(descriptor: int) -> Iterator[bytes]:
    rest = b""
    while True:
        if not select.select([descriptor], [], [], STALL_SECONDS)[0]:
            raise TimeoutError
        data = os.read(descriptor, 1 << 18)
        if not data:
            return
        *lines, rest = (rest + data).split(b"\n")
        yield from lines


def _ending(code: int) -> str:
    if code >= 0:
        return f"reading it ended with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"reading it ended with {name}"
