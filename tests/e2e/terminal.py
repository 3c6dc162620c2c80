"""Commands in a terminal: their raw bytes, or the screen as a user sees it (tmux)."""

import contextlib
import fcntl
import os
import pty
import select
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from tests import forks

SECONDS = 90.0
ENVIRONMENT = {"TERM": "xterm-256color", "COLORTERM": "truecolor", "TEXTUAL_ANIMATIONS": "none"}


def pulsarbox(*words: str) -> list[str]:
    return [sys.executable, "-m", "pulsarbox", *words]


class RawTerminal:
    """Terminal that records every byte that the program writes."""

    def __init__(self, command: list[str], home: Path, columns: int = 120, lines: int = 36, **variables: str) -> None:
        self.seen = b""
        self._fd, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        own = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
        own |= {**ENVIRONMENT, "XDG_CONFIG_HOME": str(home), "XDG_STATE_HOME": str(home), **variables}
        try:
            self._process = forks.box(command, stdin=theirs, stdout=theirs, stderr=theirs, env=own, terminal=True)
        finally:
            os.close(theirs)
        self.pid = self._process.pid

    def until(self, holds: Callable[[bytes], bool]) -> bytes:
        """Read until the condition holds for all output so far."""
        end = time.monotonic() + SECONDS
        while not holds(self.seen):
            assert time.monotonic() < end, f"never came: {self.seen[-3000:]!r}"
            if select.select([self._fd], [], [], 0.2)[0]:
                self.seen += os.read(self._fd, 65536)
        return self.seen

    def send(self, keys: bytes) -> None:
        os.write(self._fd, keys)

    def hang_up(self) -> None:
        """Close the terminal, as a closed window or a lost ssh connection does."""
        os.close(self._fd)
        self._fd = -1

    def wait(self) -> int:
        """Return the exit code of the program once it has exited.

        Output is read meanwhile: a program whose terminal accepts no more output blocks before its exit.
        """
        end = time.monotonic() + SECONDS
        is_open = self._fd >= 0
        while is_open and time.monotonic() < end:
            if select.select([self._fd], [], [], 0.2)[0]:
                try:
                    read = os.read(self._fd, 65536)
                except OSError:  # the program has closed its side
                    read = b""
                self.seen += read
                is_open = bool(read)
        return self._process.wait(max(end - time.monotonic(), 1.0))

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        if self._fd >= 0:
            self.hang_up()


class Tmux:
    """Terminal with a readable screen."""

    def __init__(self, command: list[str], columns: int, lines: int) -> None:
        self._folder = tempfile.mkdtemp(prefix="tmux-")
        self._socket = f"{self._folder}/s"
        environment = "-u COLUMNS -u LINES -u NO_COLOR " + " ".join(
            f"{name}={value}" for name, value in ENVIRONMENT.items()
        )
        words = shlex.join(forks.attached(command))
        line = f"env {environment} XDG_CONFIG_HOME={self._folder} {words}; echo ended; exec sleep 600"
        self._tmux("new-session", "-d", "-x", str(columns), "-y", str(lines), line)
        self._tmux("set-option", "-s", "set-clipboard", "on")

    def _tmux(self, *words: str) -> str:
        done = subprocess.run(
            ["tmux", "-f", "/dev/null", "-S", self._socket, *words],
            check=True,
            capture_output=True,
            text=True,
            timeout=60,
        )
        return done.stdout

    def screen(self) -> str:
        return self._tmux("capture-pane", "-p")

    def copied(self) -> str:
        """Return the text that a program has copied to its terminal's clipboard."""
        return self._tmux("show-buffer")

    def memory(self) -> int:
        """Return the memory of the command in bytes."""
        shell = psutil.Process(int(self._tmux("display-message", "-p", "#{pane_pid}")))
        (command,) = shell.children()
        return int(command.memory_info().rss)

    def keys(self, *keys: str) -> None:
        """Send keys, by tmux's names."""
        self._tmux("send-keys", *keys)

    def type(self, text: str) -> None:
        self._tmux("send-keys", "-l", text)

    def until(self, *texts: str, gone: str = "") -> str:
        """Wait until the screen contains all of these texts."""
        return self.until_it(
            lambda screen: all(text in screen for text in texts) and not (gone and gone in screen), str(texts)
        )

    def until_it(self, holds: Callable[[str], bool], what: str = "") -> str:
        """Wait until the condition holds for the screen."""
        end = time.monotonic() + SECONDS
        while True:
            screen = self.screen()
            if holds(screen):
                return screen
            assert time.monotonic() < end, f"never came: {what}\n{screen}"
            time.sleep(0.05)

    def close(self) -> None:
        with contextlib.suppress(subprocess.CalledProcessError):
            self._tmux("kill-server")
        shutil.rmtree(self._folder, ignore_errors=True)


@contextlib.contextmanager
def tmux(command: list[str], columns: int = 120, lines: int = 36) -> Iterator[Tmux]:
    if shutil.which("tmux") is None:
        pytest.skip("tmux is not installed")
    opened = Tmux(command, columns, lines)
    try:
        yield opened
    finally:
        opened.close()
