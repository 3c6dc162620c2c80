"""Ask the process that forks for commands, boxes and modules of tests, and behave as ``subprocess`` does."""

import contextlib
import fcntl
import functools
import itertools
import json
import os
import select
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import termios
import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from io import FileIO
from pathlib import Path
from types import SimpleNamespace
from typing import IO, TYPE_CHECKING, Any, Final, Self, cast

from pulsarbox.storage.inspection import child

if TYPE_CHECKING:
    import pytest

ROOT: Final = Path(__file__).parents[2]
NAME: Final = "python -m pulsarbox"
OURS: Final = "tests."
"""Start of the names of modules of tests that run as processes."""
CHUNK: Final = 1 << 16


def are_used() -> bool:
    """Return whether processes are forks: on Linux, but not in benchmarks, which measure whole processes."""
    program = getattr(sys.modules["__main__"], "__spec__", None)
    return hasattr(os, "pidfd_open") and not (program is not None and program.name.startswith("benchmarks."))


def run(
    *words: str,
    stdin: bytes = b"",
    seconds: float = 250.0,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    reads: bool = False,
    umask: int | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """Run a command, or a reading child (``pulsarbox.storage.inspection.child``), to its end. Raises
    subprocess.TimeoutExpired after killing it."""
    if not are_used():
        given = ["-c", child._START, json.dumps(sys.path)] if reads else NAME.split()[1:]
        command = [sys.executable, *given, *words]
        return subprocess.run(
            command, input=stdin, capture_output=True, timeout=seconds, check=False, env=env, cwd=cwd,
            umask=-1 if umask is None else umask,
        )  # fmt: skip
    asked = {
        "words": words,
        "env": dict(os.environ if env is None else env),
        "cwd": str(cwd or Path.cwd()),
        "kind": "reads" if reads else "command",
        "umask": umask,
    }
    deadline = time.monotonic() + seconds
    with contextlib.ExitStack() as ours, socket.socket(socket.AF_UNIX) as connection:
        with contextlib.ExitStack() as theirs:
            source, into = _pipe(theirs, ours)
            out, told = _pipe(ours, theirs)
            err, warned = _pipe(ours, theirs)
            connection.connect(str(_server().path))
            _ask(connection, asked, [each.fileno() for each in (source, told, warned)])
        try:
            outputs = _communicate(stdin, into, (out, err), deadline)
            connection.settimeout(max(deadline - time.monotonic(), 0.001))
            code = int(connection.recv(CHUNK))
        except TimeoutError:  # the server kills it when this connection closes
            raise subprocess.TimeoutExpired([NAME, *words], seconds) from None
        return subprocess.CompletedProcess([NAME, *words], code, *outputs)


def text(done: "subprocess.CompletedProcess[bytes]") -> "subprocess.CompletedProcess[str]":
    """Decode the outputs of a finished process."""
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


class Child:
    """Replacement for the ``Popen`` of a reading child: a fork that has finished."""

    def __init__(self, command: Sequence[str], **_: object) -> None:
        done = run(*command[4:], reads=True)
        self.stdout = tempfile.TemporaryFile()  # noqa: SIM115 # closed by its reader, like that of a Popen
        self.stdout.write(done.stdout)
        self.stdout.seek(0)
        self._code = done.returncode

    def wait(self) -> int:
        """See subprocess.Popen."""
        return self._code

    def kill(self) -> None:
        """See subprocess.Popen."""


def children(patch: "pytest.MonkeyPatch") -> None:
    """Run reading children as forks, which saves a tenth of a CPU second each."""
    patch.setattr(child, "subprocess", SimpleNamespace(Popen=Child, DEVNULL=None, PIPE=None))


class Process:
    """Replacement for the ``Popen`` of a box or a command: a fork in a new session, killed when this process ends.

    Takes ``python -m pulsarbox WORDS``, ``python -m pulsarbox.embed.child FD`` and ``python -m tests.MODULE WORDS``.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        env: Mapping[str, str],
        stdin: int | IO[bytes],
        stdout: int | IO[bytes],
        stderr: int | IO[bytes],
        cwd: Path | None = None,
        terminal: bool = False,
        ignored: Sequence[int] = (),
        **_: object,
    ) -> None:
        self.args = command
        self.returncode: int | None = None
        module = command[2]
        embeds = module == "pulsarbox.embed.child"
        asked = {
            "words": command[3:],
            "env": dict(env),
            "cwd": str(cwd or Path.cwd()),
            "kind": "embedded" if embeds else "box",
            "module": module if module.startswith(OURS) else None,
            "terminal": terminal,
            "ignored": [*ignored],
        }
        passed = [int(command[3])] if embeds else []
        self._connection = socket.socket(socket.AF_UNIX)
        self._connection.connect(str(_server().path))
        with contextlib.ExitStack() as theirs:
            source, self.stdin = _stream(stdin, "wb", theirs)
            out, self.stdout = _stream(stdout, "rb", theirs)
            err, self.stderr = (out, None) if stderr == subprocess.STDOUT else _stream(stderr, "rb", theirs)
            _ask(self._connection, asked, [source, out, err, *passed])
        self._told = self._connection.makefile("rb")
        self.pid = int(self._told.readline())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for each in (self.stdin, self.stdout, self.stderr):
            if each is not None:
                with contextlib.suppress(BrokenPipeError):
                    each.close()
        self.wait()

    def communicate(self, *, timeout: float) -> tuple[bytes | None, bytes | None]:
        """See subprocess.Popen. Kills the process after the timeout."""
        if self.stdin is not None:
            self.stdin.close()
        with ThreadPoolExecutor() as pool:
            reading = [pool.submit(each.read) if each is not None else None for each in (self.stdout, self.stderr)]
            try:
                self.wait(timeout)
            except subprocess.TimeoutExpired:
                self.kill()
                raise
        out, err = [each.result() if each is not None else None for each in reading]
        return out, err

    def poll(self) -> int | None:
        """See subprocess.Popen."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """See subprocess.Popen."""
        if self.returncode is None:
            if not select.select([self._connection], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self.args, timeout or 0)
            self.returncode = int(self._told.readline())
            self._told.close()
            self._connection.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        """See subprocess.Popen."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        """See subprocess.Popen."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """See subprocess.Popen."""
        self.send_signal(signal.SIGKILL)


def _stream(given: int | IO[bytes], mode: str, theirs: contextlib.ExitStack) -> tuple[int, IO[bytes] | None]:
    """Return the descriptor for the process, and our end if it is a pipe. ``mode`` is that of our end."""
    if given == subprocess.DEVNULL:
        return theirs.enter_context(Path(os.devnull).open("r+b", buffering=0)).fileno(), None
    if given != subprocess.PIPE:
        return given if isinstance(given, int) else given.fileno(), None
    read, write = os.pipe()
    ours, other = (write, read) if mode == "wb" else (read, write)
    theirs.callback(os.close, other)
    return other, os.fdopen(ours, mode)


def box(
    command: Sequence[str], *, terminal: bool = False, ignored: Sequence[int] = (), **given: Any
) -> "subprocess.Popen[bytes]":
    """Start a box or a command like subprocess.Popen: as a fork if possible.

    With ``terminal``, stdin is the controlling terminal of its new session. It ignores the given signals. The command
    may set variables with ``env``.
    """
    assigned = _assigned(command)
    if assigned:
        command = command[1 + len(assigned) :]
        given["env"] = {**given["env"], **dict(word.split("=", 1) for word in assigned)}
    is_known = list(command[:2]) == [sys.executable, "-m"] and (
        command[2] in ("pulsarbox", "pulsarbox.embed.child") or command[2].startswith(OURS)
    )
    if is_known and are_used() and _of_python(given["env"]) == _server().of_python:
        return cast("subprocess.Popen[bytes]", Process(command, terminal=terminal, ignored=ignored, **given))
    if terminal or ignored:
        given |= {"start_new_session": True, "preexec_fn": functools.partial(prepare, terminal, ignored)}
    return subprocess.Popen(command, **given)


def _assigned(command: Sequence[str]) -> list[str]:
    """Return the words of a command that set variables: those of ``env NAME=VALUE ... COMMAND``."""
    return [*itertools.takewhile(lambda word: "=" in word, command[1:])] if command[0] == "env" else []


def prepare(terminal: bool, ignored: Sequence[int]) -> None:
    """Prepare a process, the first of its session."""
    if terminal:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)


def attached(command: Sequence[str]) -> list[str]:
    """Return a command line with the same effect in a terminal, which runs the command as a fork if possible."""
    assigned = _assigned(command)
    start = 1 + len(assigned) if assigned else 0
    if list(command[start : start + 3]) != [sys.executable, "-m", "pulsarbox"] or not are_used():
        return [*command]
    script = Path(__file__).with_name("attached.py")
    forking = [sys.executable, "-I", "-S", str(script), str(_server().path)]
    return [*command[:start], *forking, *command[start + 3 :]]


def boxes(patch: "pytest.MonkeyPatch") -> None:
    """Run boxes that are embedded as subprocesses as forks."""
    from pulsarbox.embed import process_runner

    needed = SimpleNamespace(Popen=box, DEVNULL=subprocess.DEVNULL, TimeoutExpired=subprocess.TimeoutExpired)
    patch.setattr(process_runner, "subprocess", needed)
    _server()  # start it now, as tests may count open files


def _of_python(env: Mapping[str, str]) -> dict[str, object]:
    """Return the environment variables that take effect before any of our code runs."""
    return {
        name: {*value.split(os.pathsep)} - {str(ROOT)} if name == "PYTHONPATH" else value
        for name, value in ({"PYTHONPATH": str(ROOT)} | dict(env)).items()
        if name.startswith(("PYTHON", "LD_", "MALLOC"))
    }


def _ask(connection: socket.socket, asked: Mapping[str, object], descriptors: list[int]) -> None:
    text = json.dumps(asked).encode() + b"\n"
    sent = socket.send_fds(connection, [text[:CHUNK]], descriptors)
    if sent < len(text):  # an empty remainder: the receiver may have closed already
        connection.sendall(text[sent:])


def _pipe(reading: contextlib.ExitStack, writing: contextlib.ExitStack) -> tuple[FileIO, FileIO]:
    """Return both ends of a pipe, each closed with its own stack."""
    read, write = os.pipe()
    return reading.enter_context(FileIO(read, "r")), writing.enter_context(FileIO(write, "w"))


def _communicate(stdin: bytes, into: FileIO, outputs: tuple[FileIO, ...], deadline: float) -> list[bytes]:
    """Write the input and read the outputs until they end. Raises TimeoutError."""
    found = {each: bytearray() for each in outputs}
    os.set_blocking(into.fileno(), False)
    with selectors.DefaultSelector() as selector:
        selector.register(into, selectors.EVENT_WRITE)
        for each in outputs:
            selector.register(each, selectors.EVENT_READ)
        while selector.get_map():
            for key, _ in _until(selector, deadline):
                file = cast("FileIO", key.fileobj)
                if file is into:
                    stdin = _written(file, stdin)
                    is_over = not stdin
                else:
                    data = file.read(CHUNK)
                    found[file] += data
                    is_over = not data
                if is_over:
                    selector.unregister(file)
                    file.close()
    return [bytes(each) for each in found.values()]


def _until(selector: selectors.BaseSelector, deadline: float) -> list[tuple[selectors.SelectorKey, int]]:
    """Wait for files. Raises TimeoutError after the deadline."""
    ready = selector.select(max(deadline - time.monotonic(), 0))
    if not ready and time.monotonic() >= deadline:
        raise TimeoutError
    return ready


def _written(pipe: FileIO, data: bytes) -> bytes:
    """Write to a pipe with space; return the rest, or nothing if nobody reads it."""
    try:
        return data[pipe.write(data) :]
    except BrokenPipeError:
        return b""


class _Server:
    """Process that has loaded the modules and forks; it ends with this one."""

    def __init__(self) -> None:
        self.of_python = _of_python(os.environ)
        self.path = Path(tempfile.mkdtemp(prefix="pulsarbox-forks-"), "socket")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(self.path))
            listener.listen(64)
            command = [sys.executable, "-m", "tests.forks", str(listener.fileno())]
            self._process = subprocess.Popen(
                command, cwd=ROOT, stdin=subprocess.PIPE, pass_fds=[listener.fileno()], start_new_session=True
            )
        weakref.finalize(self, _end, self._process)


def _end(process: "subprocess.Popen[bytes]") -> None:
    assert process.stdin is not None
    process.stdin.close()
    process.wait()


def start() -> None:
    """Start the process that forks, for this process and for those that it forks itself."""
    if are_used():
        _server()


_STARTING: Final = threading.Lock()


def _server() -> _Server:
    with _STARTING:
        return _started()


@functools.cache
def _started() -> _Server:
    return _Server()
