"""``pulsarbox tour``: sample traffic in a temporary box, and the dashboard on it."""

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import click

from pulsarbox.cli.common.exits import Failed, Misused, run
from pulsarbox.cli.common.terminal_text import notify

_DATA: Final = "data"
_START_SECONDS: Final = 30.0
_END_SECONDS: Final = 10.0
_POLL_SECONDS: Final = 0.05


class TourBox(NamedTuple):
    """The box of the tour."""

    pid: int
    service_url: str
    admin_url: str


@click.command()
def tour() -> None:
    """Show the dashboard with sample traffic, in five steps.

    Starts a temporary box on free ports, and a shop with producers, a slow consumer, one that rejects messages, and a
    quota. Quitting the dashboard stops both and deletes their data. The keys F2 and F3 turn to the next and previous
    step.

    \b
    Examples:
      pulsarbox tour
    """
    run(_tour)


def _tour() -> None:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise Misused("the tour needs a terminal")
    from pulsarbox.cli.process.top import show_tour

    notify("starting a temporary box with sample traffic")
    with staged() as box:
        show_tour(box.admin_url)
    notify("the tour is over; `pulsarbox start` starts a box of your own, and `pulsarbox top` shows it")


@contextlib.contextmanager
def staged() -> Iterator[TourBox]:
    """Start the box and the traffic; stop both at the end. Raises Failed if the box does not start."""
    with tempfile.TemporaryDirectory(prefix="pulsarbox-tour-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        with _box(folder) as process:
            box = _ready(process, folder)
            with _traffic(box, folder):
                yield box


@contextlib.contextmanager
def _box(folder: Path) -> "Iterator[subprocess.Popen[bytes]]":
    from pulsarbox.cli.tour.scene import SCENE

    (folder / "scene.yaml").write_text(SCENE)
    command = [sys.executable, "-m", "pulsarbox", "start", "--data-dir", _DATA, "--port", "0", "--web-port", "0"]
    with _child([*command, "--init", "scene.yaml"], folder) as process:
        yield process


@contextlib.contextmanager
def _traffic(box: TourBox, folder: Path) -> Iterator[None]:
    command = [sys.executable, "-m", "pulsarbox.cli.tour.traffic", box.service_url, str(box.pid), str(folder)]
    with _child(command, folder):
        yield


@contextlib.contextmanager
def _child(command: list[str], folder: Path) -> "Iterator[subprocess.Popen[bytes]]":
    """Run a process without settings of this one, in a session of its own, until the end of the block."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PULSARBOX_")}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=log, stderr=log, cwd=folder, env=environment, start_new_session=True
        )
    try:
        yield process
    finally:
        _end(process)


def _end(process: "subprocess.Popen[bytes]") -> None:
    assert process.stdin is not None
    process.stdin.close()
    process.terminate()
    try:
        process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _ready(process: "subprocess.Popen[bytes]", folder: Path) -> TourBox:
    from pulsarbox.server.process.runtime_file import read

    deadline = time.monotonic() + _START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        running = read(folder / _DATA, process.pid)
        if running is not None:
            return TourBox(process.pid, running.local_url(web=False), running.local_url(web=True))
        time.sleep(_POLL_SECONDS)
    lines = (folder / "log").read_text("utf-8", "replace").strip().splitlines()
    raise Failed(f"the box of the tour did not start: {lines[-1] if lines else 'no message'}")
