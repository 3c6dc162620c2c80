"""What the dashboard costs: until it is seen, for itself and for the box, with ten thousand subscriptions.

``python -m benchmarks.tui --subscriptions 10000 --seconds 20``: a box with so many, a terminal of 160 by 50 in which
``pulsarbox top`` shows them twice a second, and the processor time and memory of both processes. With ``--moving 1``
each topic is published to once a second meanwhile, so that every backlog grows. A bare interpreter's start is measured
beside it: on a machine with nothing else to do it takes 10 ms, and what it takes longer all else does too.
"""

import argparse
import contextlib
import http.client
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pulsar

from tests.e2e.terminal import RawTerminal, pulsarbox
from tests.tools.box import Box

EARLIEST = '{"ledgerId": -1, "entryId": -1}'
THREADS = 4
TOPICS = 100
SETTLED_SECONDS = 90.0
"""Until what is not used has left the memory, of which a dashboard would hear, and the last checkpoint is written."""


def subscribe(web_url: str, count: int) -> None:
    """Make topics and subscriptions over the Admin API."""
    host = urlsplit(web_url)

    def make(first: int) -> None:
        connection = http.client.HTTPConnection(host.hostname or "", host.port or 80, timeout=60)
        for at in range(first, count, THREADS):
            path = f"/admin/v2/persistent/public/default/bench-{at % TOPICS}/subscription/sub-{at // TOPICS}"
            connection.request("PUT", path, EARLIEST, {"Content-Type": "application/json"})
            connection.getresponse().read()

    for topic in range(min(TOPICS, count)):
        connection = http.client.HTTPConnection(host.hostname or "", host.port or 80, timeout=60)
        connection.request("PUT", f"/admin/v2/persistent/public/default/bench-{topic}")
        connection.getresponse().read()
        connection.close()
    threads = [threading.Thread(target=make, args=(first,)) for first in range(THREADS)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()


def processor_seconds(pid: int) -> float:
    """Of all its threads, as finely as the scheduler counts."""
    return sum(int(each.read_text().split()[0]) for each in Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9


def bare_seconds() -> float:
    """What a start of the interpreter takes of a processor: the least of some."""
    found = []
    for _ in range(7):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", "pass"], check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(found)


@contextlib.contextmanager
def moving(box: Box, a_second: float) -> Iterator[None]:
    """Every topic is published to so often."""
    if not a_second:
        yield
        return
    over = threading.Event()

    def publish() -> None:
        client = pulsar.Client(box.url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
        producers = [client.create_producer(f"bench-{topic}", batching_enabled=False) for topic in range(TOPICS)]
        while not over.is_set():
            for producer in producers:
                producer.send_async(b"x", None)
                if over.wait(1 / a_second / TOPICS):
                    break
        client.close()

    thread = threading.Thread(target=publish)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def box_process(box: Box) -> int:
    port = urlsplit(box.web_url).port
    for each in psutil.Process(os.getpid()).children(recursive=True):
        if any(found.laddr.port == port for found in each.net_connections(kind="tcp") if found.status == "LISTEN"):
            return each.pid
    raise SystemExit("the process of the box is not found")


def measured(box: Box, view: str, seconds: float, home: Path) -> dict[str, float]:
    """One screen of it for so long."""
    before = time.monotonic()
    screen = RawTerminal(pulsarbox("top", view, "--admin-url", box.web_url), home, 160, 50)
    try:
        screen.until(lambda seen: b"pulsarbox " in seen)
        first = time.monotonic() - before
        screen.until(lambda seen: b"bench-" in seen or b"No subscription has" in seen)
        filled, spent = time.monotonic() - before, processor_seconds(screen.pid)
        end = time.monotonic() + 3
        screen.until(lambda seen: time.monotonic() > end)
        pid, start = box_process(box), time.monotonic()
        mine, its, size = processor_seconds(screen.pid), processor_seconds(pid), len(screen.seen)
        screen.until(lambda seen: time.monotonic() > start + seconds)
        lasted = time.monotonic() - start
        return {
            "first paint, s": first,
            "rows seen, s": filled,
            "... of a processor": spent,
            "screen, % of a core": 100 * (processor_seconds(screen.pid) - mine) / lasted,
            "box, % of a core": 100 * (processor_seconds(pid) - its) / lasted,
            "screen, MB": psutil.Process(screen.pid).memory_info().rss / 1e6,
            "terminal, kB/s": (len(screen.seen) - size) / lasted / 1e3,
        }
    finally:
        screen.close()


def idle(box: Box, seconds: float) -> float:
    """What the box takes while nobody looks."""
    pid = box_process(box)
    before = processor_seconds(pid)
    time.sleep(seconds)
    return 100 * (processor_seconds(pid) - before) / seconds


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--subscriptions", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--moving", type=float, default=0.0, metavar="RATE", help="messages a second, to each topic")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as data:
        box = Box(Path(data) / "data")
        box.start()
        try:
            subscribe(box.web_url, given.subscriptions)
            print(f"a bare interpreter takes {1000 * bare_seconds():.0f} ms; load average {os.getloadavg()[0]:.1f}")
            with moving(box, given.moving):
                time.sleep(SETTLED_SECONDS)
                print(f"{given.subscriptions:,} subscriptions; the box alone takes {idle(box, 10):.2f} % of a core")
                for view in ("subscriptions", "overview"):
                    for name, value in measured(box, view, given.seconds, Path(data)).items():
                        print(f"{view:<14} {name:<20} {value:8.2f}")
        finally:
            box.kill()


if __name__ == "__main__":
    main()
