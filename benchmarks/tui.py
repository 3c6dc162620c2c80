"""Benchmark of the dashboard: startup, and its cost to itself and to the box, with ten thousand subscriptions.

``python -m benchmarks.tui --subscriptions 10000 --seconds 20`` starts a box with that many subscriptions. In a terminal
of 160 by 50, ``pulsarbox top`` shows them twice a second. The figures are the CPU time and memory of both processes.
``--screens`` names other screens, with their sort column (``subscriptions:cause``). With ``--moving 1`` each topic
receives a message per second meanwhile, so that every backlog grows.

Startup is measured alternately with that of a program that shows one word with the same library. On a busy machine both
take longer, and the ratio is more meaningful. Both are compiled in advance, like installed programs, and the time spent
waiting for a CPU is deducted in a figure beside the elapsed time.
"""

import argparse
import contextlib
import http.client
import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import psutil
import pulsar

from tests.e2e.terminal import RawTerminal, pulsarbox
from tests.tools.box import BoxProcess

EARLIEST = '{"ledgerId": -1, "entryId": -1}'
THREADS = 4
ROWS_SEEN: Final = (b"bench-", b"No subscription has")
WATCHED_SECONDS = 16.0
SETTLED_SECONDS = 90.0
"""Time until inactive topics are unloaded, which a dashboard would notice, and the last checkpoint is written."""


def subscribe(web_url: str, count: int, topics: int) -> None:
    """Create topics and subscriptions over the Admin API."""
    host = urlsplit(web_url)

    def make(first: int) -> None:
        connection = http.client.HTTPConnection(host.hostname or "", host.port or 80, timeout=60)
        for at in range(first, count, THREADS):
            path = f"/admin/v2/persistent/public/default/bench-{at % topics}/subscription/sub-{at // topics}"
            connection.request("PUT", path, EARLIEST, {"Content-Type": "application/json"})
            connection.getresponse().read()

    connection = http.client.HTTPConnection(host.hostname or "", host.port or 80, timeout=60)
    for topic in range(topics):
        connection.request("PUT", f"/admin/v2/persistent/public/default/bench-{topic}")
        connection.getresponse().read()
    connection.close()
    threads = [threading.Thread(target=make, args=(first,)) for first in range(THREADS)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()


def processor_seconds(pid: int) -> float:
    """Return the CPU time of all its threads, at the scheduler's resolution."""
    return sum(int(each.read_text().split()[0]) for each in Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9


def queued_seconds(pid: int) -> float:
    """Return how long its main thread has waited for a CPU."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9


WORD: Final = """
from textual.app import App
from textual.widgets import Static

class Word(App):
    def compose(self):
        yield Static("bench-word")

Word().run()
"""
"""Program that shows one word."""


class Start(NamedTuple):
    """Time until an expected output appeared, in seconds."""

    clock: float
    unqueued: float
    """Elapsed time without waiting for a CPU: the elapsed time on an otherwise idle machine."""
    processor: float


def started(command: list[str], home: Path, *seen: bytes) -> Start:
    """Start a command in a terminal, and wait until one of the outputs appears."""
    before = time.monotonic()
    screen = RawTerminal(command, home, 160, 50)
    try:
        screen.until(lambda so_far: any(each in so_far for each in seen))
        clock = time.monotonic() - before
        return Start(clock, clock - queued_seconds(screen.pid), processor_seconds(screen.pid))
    finally:
        screen.close()


def starts(box: BoxProcess, count: int, home: Path) -> None:
    """Measure starts alternately and print them."""
    commands = {
        "one word": ([sys.executable, "-c", WORD], (b"bench-word",)),
        "subscriptions": (pulsarbox("top", "subscriptions", "--admin-url", box.web_url), ROWS_SEEN),
        "overview": (pulsarbox("top", "--admin-url", box.web_url), ROWS_SEEN),
    }
    found: dict[str, list[Start]] = {name: [] for name in commands}
    for turn in range(count + 1):
        for name, (command, seen) in commands.items():
            each = started(command, home, *seen)
            if turn:  # the first one compiles
                found[name].append(each)
    print(f"until rows are seen, s, the median of {count} starts: by the clock, without others' turns, of a processor")
    for name, those in found.items():
        clock, unqueued, processor = (median(values) for values in zip(*those, strict=True))
        ratio = processor / median(start.processor for start in found["one word"])
        print(f"{name:<14} {clock:5.2f} {unqueued:5.2f} {processor:5.2f}  {ratio:.2f} of one word")


@contextlib.contextmanager
def moving(box: BoxProcess, a_second: float, topics: int) -> Iterator[None]:
    """Publish to every topic at this rate."""
    if not a_second:
        yield
        return
    over = threading.Event()

    def publish() -> None:
        client = pulsar.Client(box.url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
        producers = [client.create_producer(f"bench-{topic}", batching_enabled=False) for topic in range(topics)]
        while not over.is_set():
            for producer in producers:
                producer.send_async(b"x", None)
                if over.wait(1 / a_second / topics):
                    break
        client.close()

    thread = threading.Thread(target=publish)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def box_process(box: BoxProcess) -> int:
    port = urlsplit(box.web_url).port
    for each in psutil.Process(os.getpid()).children(recursive=True):
        if any(found.laddr.port == port for found in each.net_connections(kind="tcp") if found.status == "LISTEN"):
            return each.pid
    raise SystemExit("the process of the box is not found")


def measured(box: BoxProcess, screen_name: str, seconds: float, home: Path, alone: float) -> dict[str, float]:
    """Measure one screen; ``alone``: the box's CPU use without viewers."""
    view, _, sort = screen_name.partition(":")
    words = ["--sort", sort] if sort else []
    screen = RawTerminal(pulsarbox("top", view, "--admin-url", box.web_url, *words), home, 160, 50)
    try:
        screen.until(lambda seen: b"pulsarbox " in seen)
        end = time.monotonic() + 3
        screen.until(lambda seen: time.monotonic() > end)
        pid, start = box_process(box), time.monotonic()
        mine, its, size = processor_seconds(screen.pid), processor_seconds(pid), len(screen.seen)
        screen.until(lambda seen: time.monotonic() > start + seconds)
        lasted = time.monotonic() - start
        return {
            "screen, % of a core": 100 * (processor_seconds(screen.pid) - mine) / lasted,
            "box, % of a core more": 100 * (processor_seconds(pid) - its) / lasted - alone,
            "screen, MB": psutil.Process(screen.pid).memory_info().rss / 1e6,
            "terminal, kB/s": (len(screen.seen) - size) / lasted / 1e3,
        }
    finally:
        screen.close()


def idle(box: BoxProcess, seconds: float) -> float:
    """Return the box's CPU use without viewers, in percent of a core."""
    pid = box_process(box)
    before = processor_seconds(pid)
    time.sleep(seconds)
    return 100 * (processor_seconds(pid) - before) / seconds


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--subscriptions", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--topics", type=int, default=100, help="as many as there are subscriptions at most")
    parser.add_argument("--screens", nargs="*", default=["subscriptions", "overview"], metavar="SCREEN[:COLUMN]")
    parser.add_argument("--starts", type=int, default=5)
    parser.add_argument("--moving", type=float, default=0.0, metavar="RATE", help="messages a second, to each topic")
    given = parser.parse_args()
    topics = min(given.topics, given.subscriptions)
    with tempfile.TemporaryDirectory() as data:
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = f"{data}/compiled"
        box = BoxProcess(Path(data) / "data")
        box.start()
        try:
            subscribe(box.web_url, given.subscriptions, topics)
            with moving(box, given.moving, topics):
                time.sleep(SETTLED_SECONDS)
                if given.starts:
                    starts(box, given.starts, Path(data))
                for name in given.screens:
                    time.sleep(WATCHED_SECONDS)  # until the box stops sampling for viewers
                    alone = idle(box, given.seconds)
                    print(f"{name:<22} box alone, % of a core    {alone:8.2f}  load {os.getloadavg()[0]:.1f}")
                    for figure, value in measured(box, name, given.seconds, Path(data), alone).items():
                        print(f"{name:<22} {figure:<25} {value:8.2f}", flush=True)
        finally:
            box.kill()


if __name__ == "__main__":
    main()
