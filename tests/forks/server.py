"""The process that forks: it takes requests, and becomes in a fork what was asked for."""

import atexit
import contextlib
import json
import os
import runpy
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any, Final, NoReturn

from pulsarbox.cli.main import main
from pulsarbox.cli.process import detach
from pulsarbox.storage.inspection import child
from tests.forks.client import CHUNK, NAME, prepare

_DESCRIPTORS_MAX: Final = 4096
"""More than a command that starts a box has open."""


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
    text, descriptors, _, _ = socket.recv_fds(connection, CHUNK, 4)
    while not text.endswith(b"\n"):
        more = connection.recv(CHUNK)
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
        prepare(asked.get("terminal", False), asked.get("ignored", ()))
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
            run_and_exit(list(command[3:]), "command")

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


def run_and_exit(words: list[str], kind: str) -> NoReturn:
    """Run the command and end this process."""
    code = _command(words, kind)
    threading._shutdown()  # type: ignore[attr-defined]  # waits for non-daemon threads
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # skips the teardown of the loaded modules
