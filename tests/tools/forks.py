"""Commands and boxes of this project as forks of a process that has already loaded the modules.

A process that imports the modules itself needs several times the CPU time of most commands. A fork has its own input,
output, environment, directory and exit. Tests of the imports themselves use ordinary processes
(``tests/unit/test_imports.py``, ``tests/e2e/process/test_process.py``).
"""

import atexit
import contextlib
import fcntl
import functools
import gc
import importlib
import itertools
import json
import os
import pkgutil
import runpy
import select
import selectors
import shutil
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
from typing import IO, TYPE_CHECKING, Any, Final, NoReturn, Self, cast

from pulsarbox.cli.main import COMMANDS, main
from pulsarbox.cli.process import detach
from pulsarbox.storage.inspection import child

if TYPE_CHECKING:
    import pytest

ROOT: Final = Path(__file__).parents[2]
NAME: Final = "python -m pulsarbox"
LOADED: Final = (
    *("asyncio", "difflib", "encodings.idna", "encodings.utf_8_sig", "http.client", "tomllib", "uvloop"),
    *("pulsarbox.embed.child", "pulsarbox.server.http"),
    *{task.partition(":")[0] for task in child.TASKS.values()},
)
"""Modules to load besides those of the commands."""
WHOLE: Final = ("pulsarbox.cli", "pulsarbox.client", "pulsarbox.server.recording", "pulsarbox.tui")
"""Packages to load with all their modules, which commands and boxes import when they use them."""
OURS: Final = "tests."
"""Start of the names of modules of tests that run as processes."""
OPTIONAL: Final = "pulsarbox.cli.sql"
"""Package that needs a large library, which may be missing."""
_CHUNK: Final = 1 << 16
_DESCRIPTORS_MAX: Final = 4096
"""More than a command that starts a box has open."""


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
    if not hasattr(os, "pidfd_open"):  # not Linux
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
            code = int(connection.recv(_CHUNK))
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
    if is_known and hasattr(os, "pidfd_open") and _of_python(given["env"]) == _server().of_python:
        return cast("subprocess.Popen[bytes]", Process(command, terminal=terminal, ignored=ignored, **given))
    if terminal or ignored:
        given |= {"start_new_session": True, "preexec_fn": functools.partial(_prepare, terminal, ignored)}
    return subprocess.Popen(command, **given)


def _assigned(command: Sequence[str]) -> list[str]:
    """Return the words of a command that set variables: those of ``env NAME=VALUE ... COMMAND``."""
    return [*itertools.takewhile(lambda word: "=" in word, command[1:])] if command[0] == "env" else []


def _prepare(terminal: bool, ignored: Sequence[int]) -> None:
    """Prepare a process, the first of its session."""
    if terminal:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)


def attached(command: Sequence[str]) -> list[str]:
    """Return a command line with the same effect in a terminal, which runs the command as a fork if possible."""
    assigned = _assigned(command)
    start = 1 + len(assigned) if assigned else 0
    if list(command[start : start + 3]) != [sys.executable, "-m", "pulsarbox"] or not hasattr(os, "pidfd_open"):
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
    sent = socket.send_fds(connection, [text[:_CHUNK]], descriptors)
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
                    data = file.read(_CHUNK)
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
            command = [sys.executable, "-m", "tests.tools.forks", str(listener.fileno())]
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
    if hasattr(os, "pidfd_open"):
        _server()


_STARTING: Final = threading.Lock()


def _server() -> _Server:
    with _STARTING:
        return _started()


@functools.cache
def _started() -> _Server:
    return _Server()


class _Fork:
    """A process, as the server sees it."""

    def __init__(self, pid: int, connection: socket.socket) -> None:
        self.connection = connection
        self._pid = pid
        self.process = os.pidfd_open(pid)

    def kill(self) -> None:
        signal.pidfd_send_signal(self.process, signal.SIGKILL)

    def tell(self) -> None:
        """Send the exit code of the process, which has ended, to the client."""
        code = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
        with contextlib.suppress(OSError):
            self.connection.sendall(str(code).encode())
        self.close()

    def close(self) -> None:
        self.connection.close()
        os.close(self.process)


class _Forks:
    """The processes that run. Each is killed if its client disconnects."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._running: set[_Fork] = set()

    def wait(self, *others: IO[str] | socket.socket) -> list[object]:
        """Serve the processes until one of the other files can be read, and return those."""
        for each in others:
            if each not in self._selector.get_map():
                self._selector.register(each, selectors.EVENT_READ)
        while True:
            ready = [(key.fileobj, key.data) for key, _ in self._selector.select()]
            for file, fork in ready:
                if fork in self._running:
                    self._serve(fork, file == fork.process)
            asked: list[object] = [file for file, fork in ready if fork is None]
            if asked:
                return asked

    def _serve(self, fork: _Fork, has_ended: bool) -> None:
        if has_ended:
            self._running.remove(fork)
            self._selector.unregister(fork.process)
            if fork.connection in self._selector.get_map():
                self._selector.unregister(fork.connection)
            fork.tell()
        else:
            self._selector.unregister(fork.connection)
            fork.kill()

    def add(self, pid: int, connection: socket.socket) -> None:
        fork = _Fork(pid, connection)
        self._running.add(fork)
        for file in (fork.process, connection):
            self._selector.register(file, selectors.EVENT_READ, fork)

    def forget(self) -> None:
        """Close, in a fork, what belongs to the server."""
        self._selector.close()
        for fork in self._running:
            fork.close()

    def kill(self) -> None:
        for fork in self._running:
            fork.kill()


def serve(listener: socket.socket) -> dict[str, Any]:
    """Fork for each connection until stdin closes. Returns in the forks, with the request."""
    forks = _Forks()
    while True:
        if sys.stdin in forks.wait(sys.stdin, listener):
            forks.kill()
            shutil.rmtree(Path(listener.getsockname()).parent)
            sys.exit()
        connection, _ = listener.accept()
        asked, descriptors = _asked(connection)
        pid = os.fork() if asked else 0
        if asked and pid == 0:
            listener.close()
            forks.forget()
            return _become(asked, descriptors, connection)
        for each in descriptors:
            os.close(each)
        if asked:
            forks.add(pid, connection)
        else:
            connection.close()


def _asked(connection: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """Return the request and its descriptors; an empty request from a client that has ended."""
    text, descriptors, _, _ = socket.recv_fds(connection, _CHUNK, 4)
    while not text.endswith(b"\n"):
        more = connection.recv(_CHUNK)
        if not more:
            return {}, descriptors
        text += more
    return json.loads(text), descriptors


def _become(asked: dict[str, Any], descriptors: list[int], connection: socket.socket) -> dict[str, Any]:
    """Take over what was asked for: output, environment, directory, umask. A box gets a session of its own."""
    if asked["kind"] in ("box", "embedded"):
        os.setsid()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        connection.sendall(b"%d\n" % os.getpid())
    connection.close()
    for number, descriptor in enumerate(descriptors[:3]):
        os.dup2(descriptor, number)
        os.close(descriptor)
    if asked["kind"] == "embedded":
        asked["words"] = [str(descriptors[3])]
    if asked["kind"] == "box":
        _prepare(asked.get("terminal", False), asked.get("ignored", ()))
    os.chdir(asked["cwd"])
    if asked.get("umask") is not None:
        os.umask(asked["umask"])
    os.environ.clear()
    os.environ.update(asked["env"])
    tempfile.tempdir = None  # it is determined anew, by the environment
    time.tzset()
    sys.argv = ["pulsarbox", *asked["words"]]
    if asked.get("module"):
        asked |= {"kind": "module", "words": [asked["module"]]}
    return asked


class Detached:
    """Replacement for the ``Popen`` of a box in the background: a fork of the command that starts it."""

    def __init__(self, command: Sequence[str], *, stdout: int, pass_fds: Sequence[int], **_: object) -> None:
        self.pid = os.fork()
        if self.pid == 0:
            os.setsid()
            _take_over(stdout, pass_fds)
            sys.argv = ["pulsarbox", *command[3:]]
            _run(list(command[3:]), "command")

    def wait(self) -> int:
        """See subprocess.Popen."""
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def terminate(self) -> None:
        """See subprocess.Popen."""
        os.kill(self.pid, signal.SIGTERM)


def _take_over(log: int, passed: Sequence[int]) -> None:
    """Read nothing, write to the log, and close all descriptors except those that are passed."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    for number, descriptor in enumerate((nothing, log, log)):
        os.dup2(descriptor, number)
    first = 3
    for kept in sorted(passed):
        os.closerange(first, kept)
        first = kept + 1
    os.closerange(first, _DESCRIPTORS_MAX)


def _command(words: list[str], kind: str) -> int:
    """Run the command and return its exit code."""
    vars(detach)["subprocess"] = SimpleNamespace(Popen=Detached, DEVNULL=subprocess.DEVNULL)
    try:
        if kind == "embedded":
            from pulsarbox.embed import child as embedded

            return embedded.main(int(words[0]))
        if kind == "reads":
            child.main(*words)
        if kind == "module":
            runpy.run_module(words[0], run_name="__main__", alter_sys=True)
            return 0
        main(args=words, prog_name=NAME)
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else bool(ended.code)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        return 1
    return 0


def _run(words: list[str], kind: str) -> NoReturn:
    """Run the command and end this process."""
    code = _command(words, kind)
    threading._shutdown()  # type: ignore[attr-defined]  # waits for non-daemon threads
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # skips the teardown of the loaded modules


if __name__ == "__main__":
    os.environ["TEXTUAL_ANIMATIONS"] = "none"  # which the dashboard reads when its modules are loaded
    for target in (*(command.target for command in COMMANDS.values()), *LOADED):
        importlib.import_module(target.partition(":")[0])
    for package in map(importlib.import_module, WHOLE):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.startswith(OPTIONAL):
                with contextlib.suppress(ImportError):
                    importlib.import_module(module.name)
    importlib.import_module("pulsarbox.server.http.route_table").all_routes()  # the table of every box
    gc.freeze()  # keeps unwritten pages shared with the forks
    wanted = serve(socket.socket(fileno=int(sys.argv[1])))
    _run(wanted["words"], wanted["kind"])
