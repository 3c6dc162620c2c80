"""Commands whose terminal or output reader is gone while SIGHUP is ignored.

Commands that display data exit; servers continue. No test measures a time: each waits until the process exits or is
idle.
"""

import os
import pty
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pulsarbox.cli.common.exits import EXIT_HUNG_UP
from tests import forks
from tests.e2e.clients import PATIENCE_SECONDS, until
from tests.e2e.commands import environment
from tests.e2e.conftest import Running
from tests.e2e.terminal import ENVIRONMENT, RawTerminal, pulsarbox
from tests.tools.box import accepts, free_ports
from tests.tools.campaigns import short

DEAF = ("sh", "-c", 'trap "" HUP; exec "$@"', "sh")
"""The effect of ``nohup``, without its other redirections."""
FOLLOWING = {
    "tap": (("tap", "{topic}"), "url"),
    "tap-pattern": (("tap", "*"), "url"),
    "consume": (("consume", "{topic}", "-s", "watching"), "url"),
    "events": (("events", "--follow", "--filter", 'kind == "none"'), "admin"),
    "status": (("status", "--watch", "1000"), None),
    "topics": (("topic", "list", "--watch", "1000"), "admin"),
    "jobs": (("job", "list", "--watch", "1000", "-o", "json"), "admin"),
}
"""Commands that run until stopped, and the address that each needs. None of them has further output."""


def words(name: str, box: Running, topic: str, tmp_path: Path) -> list[str]:
    given, address = FOLLOWING[name]
    where = {
        "url": ("--url", box.url),
        "admin": ("--admin-url", box.web_url),
        None: ("--data-dir", str(tmp_path / "none")),
    }[address]
    return [*(word.format(topic=topic) for word in given), *where]


def runs(process: subprocess.Popen[bytes]) -> bool:
    """Return whether the interpreter has started and its main thread sleeps in its wait."""
    status = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0]
    return status == "S" and rests(process.pid, 0.3)


def rests(pid: int, seconds: float = 1.0) -> bool:
    """Return whether no thread of a process used the CPU for most of the given seconds."""

    def wanted() -> dict[str, int]:
        found = {}
        for thread in Path(f"/proc/{pid}/task").iterdir():
            ran, waited, _ = (thread / "schedstat").read_text().split()
            found[thread.name] = int(ran) + int(waited)
        return found

    before = wanted()
    time.sleep(seconds)
    return all(taken - before.get(thread, 0) < seconds * 1e9 / 2 for thread, taken in wanted().items())


@contextmanager
def on_terminal(
    command: list[str], variables: dict[str, str] | None = None
) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Start a process in its own session, with SIGHUP ignored, on a terminal whose other end is yielded."""
    ours, theirs = pty.openpty()
    try:
        process = forks.box(
            command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment() | (variables or {}),
            ignored=[signal.SIGHUP],
        )  # fmt: skip
    finally:
        os.close(theirs)
    try:
        yield process, ours
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("name", short(FOLLOWING, 2))
def test_a_command_that_follows_ends_with_its_terminal(box: Running, topic: str, name: str, tmp_path: Path) -> None:
    box.admin("PUT", f"persistent/public/default/{topic.rpartition('/')[2]}")
    with on_terminal(pulsarbox(*words(name, box, topic, tmp_path))) as (process, ours):
        until(lambda: runs(process))
        os.close(ours)
        assert process.wait(PATIENCE_SECONDS) == EXIT_HUNG_UP


@pytest.mark.parametrize("name", short(FOLLOWING, 1))
def test_a_command_that_follows_ends_with_the_reader_of_its_output(
    box: Running, topic: str, name: str, tmp_path: Path
) -> None:
    box.admin("PUT", f"persistent/public/default/{topic.rpartition('/')[2]}")
    nothing = subprocess.DEVNULL
    with forks.box(
        pulsarbox(*words(name, box, topic, tmp_path)), stdin=nothing, stdout=subprocess.PIPE, stderr=nothing,
        env=environment(), ignored=[signal.SIGHUP],
    ) as process:  # fmt: skip
        try:
            until(lambda: runs(process))
            assert process.stdout is not None
            process.stdout.close()
            assert process.wait(PATIENCE_SECONDS) == (3 if name == "status" else 0)
        finally:
            process.kill()


def test_the_dashboard_ends_with_its_terminal(box: Running, tmp_path: Path) -> None:
    terminal = RawTerminal([*DEAF, *pulsarbox("top", "--admin-url", box.web_url)], tmp_path)
    try:
        terminal.until(lambda seen: b"Backlogs" in seen)
        terminal.hang_up()
        assert terminal.wait() == EXIT_HUNG_UP
    finally:
        terminal.close()


def test_the_dashboard_ends_with_a_terminal_that_is_not_the_one_of_its_session(box: Running, tmp_path: Path) -> None:
    """The terminal is not the controlling one, as with ``setsid``: no signal would reach the process."""
    variables = {**ENVIRONMENT, "XDG_CONFIG_HOME": str(tmp_path)}
    with on_terminal(pulsarbox("top", "--admin-url", box.web_url), variables) as (process, ours):
        seen = b""
        while b"Backlogs" not in seen:
            seen += os.read(ours, 65536)
        os.close(ours)
        assert process.wait(PATIENCE_SECONDS) == EXIT_HUNG_UP


@pytest.mark.parametrize("closed", short(["at once", "later"], 1))
def test_a_box_goes_on_without_its_terminal(closed: str) -> None:
    """The box logs to the closed terminal, serves, is idle without requests, and exits cleanly."""
    port, web_port = free_ports(2)
    words = ("start", "--memory", "--port", str(port), "--web-port", str(web_port), "--log-level", "debug")
    with on_terminal(pulsarbox(*words)) as (process, ours):
        if closed == "at once":
            os.close(ours)
        until(lambda: accepts(port) and accepts(web_port))
        if closed == "later":
            os.close(ours)
        gone = Running(f"pulsar://127.0.0.1:{port}", f"http://127.0.0.1:{web_port}")
        for number in range(20):
            gone.admin("PUT", f"persistent/public/default/topic-{number}")
        until(lambda: rests(process.pid))
        assert "topic-19" in gone.admin("GET", "persistent/public/default")
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_SECONDS) == 0


def test_a_served_dashboard_goes_on_without_its_terminal(box: Running) -> None:
    pytest.importorskip("textual_serve")
    (port,) = free_ports(1)
    with on_terminal(pulsarbox("top", "--serve", "--serve-port", str(port), "--admin-url", box.web_url)) as served:
        process, ours = served
        until(lambda: accepts(port))
        os.close(ours)
        until(lambda: rests(process.pid))
        assert accepts(port)
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_SECONDS) == 0
