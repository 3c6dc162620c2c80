"""Benchmark of a broker, or of two against each other.

The official Go client measures throughput and latency. Drivers that are lighter than any client measure the cost of
many topics, of acknowledgement holes, and of joining and leaving consumers (drivers/raw_driver.py,
drivers/raw_subscriptions.py).

``make bench`` starts a box; ``make bench URL=pulsar://... VERSUS=pulsar://...`` uses running brokers. Two brokers are
measured alternately, row by row, in rounds, to even out the machine's variations; medians are shown. Client and broker
share the machine: read the figures as ratios. Table on stdout, progress on stderr, all values in a JSON file.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import psutil
import pulsar
from rich.console import Console
from rich.table import Table

from benchmarks.rows import CPU, MEMORY, ROWS, START, Figure, Row
from tests.tools.box import PULSARBOX, BoxProcess
from tests.tools.go import BUILT, GoError, build

REST_SECONDS: Final = 4.0
SETTLE_SECONDS: Final = 2.0
DRIVER_EXTRA_SECONDS: Final = 60.0


@dataclass
class Target:
    """Broker to measure. ``pid`` is required for its memory and CPU time."""

    name: str
    url: str
    pid: int | None = None
    web_url: str = ""
    """URL of its Admin API, for the rows that need it."""
    # values[row][figure]: one value per round
    values: dict[str, dict[str, list[float]]] = field(default_factory=dict)

    def add(self, row: Row, figures: dict[str, float]) -> None:
        for key, value in figures.items():
            self.values.setdefault(row.name, {}).setdefault(key, []).append(value)

    def median(self, row: Row, figure: Figure) -> float | None:
        values = self.values.get(row.name, {}).get(figure.key)
        return statistics.median(values) if values else None


def say(text: str) -> None:
    print(f"bench: {text}", file=sys.stderr, flush=True)


def driver(kind: str) -> list[str]:
    """Return the program that measures a row: the Go driver if it can be built."""
    if kind != "python":
        try:
            return [str(build(Path(__file__).parent / "drivers" / "go"))]
        except GoError as error:
            if kind == "go" or "not installed" not in str(error):
                raise
            say(f"{error}: measuring with the Python client, which is slower than a broker should be")
    return [sys.executable, "-m", "benchmarks.drivers.python_driver"]


def measure(command: Sequence[str], job: dict[str, Any]) -> dict[str, float] | None:
    limit = job["limit_seconds"] + DRIVER_EXTRA_SECONDS
    done = subprocess.run(command, input=json.dumps(job), capture_output=True, text=True, timeout=limit, check=False)
    if done.returncode != 0:
        say(f"{job['row']} failed: {done.stderr.strip()[-500:]}")
        return None
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])  # earlier lines are the Python client's log
    return figures


def measure_row(target: Target, row: Row, job: dict[str, Any], command: Sequence[str]) -> dict[str, float] | None:
    """Return the figures of the row's driver, with the ratio of its rate to that of another row in the same round."""
    job["web_url"] = target.web_url
    if target.pid is not None:
        job["pid"] = target.pid  # the driver reads the broker's CPU time, only while it measures
    measured = measure((sys.executable, "-m", row.raw) if row.raw else command, job)
    base = target.values.get(row.share_of, {}).get("rate")
    if measured is not None and base:
        measured["share"] = measured["rate"] / base[-1]
    return measured


def rest(pid: int) -> Iterator[tuple[Row, dict[str, float]]]:
    """Yield the CPU use at idle and the memory of a process and its children."""
    root = psutil.Process(pid)
    processes = [root, *root.children(recursive=True)]

    def busy() -> float:
        return sum(sum(process.cpu_times()[:2]) for process in processes)

    time.sleep(SETTLE_SECONDS)  # the web library is still being imported when the binary port answers
    before, begin = busy(), time.monotonic()
    time.sleep(REST_SECONDS)
    yield CPU, {"percent": 100 * (busy() - before) / (time.monotonic() - begin)}
    yield MEMORY, {"mib": sum(process.memory_full_info().pss for process in processes) / 2**20}


def first_message(box: BoxProcess) -> float:
    """Start the box; return the seconds until a client has its first receipt."""
    begin = time.monotonic()
    box.start()
    client = pulsar.Client(box.url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    client.create_producer("bench-first").send(b"first")
    seconds = time.monotonic() - begin
    client.close()
    return seconds


@contextmanager
def own_box(rounds: int, start_cmd: Sequence[str] | str) -> Iterator[Target]:
    """Provide a box on a temporary directory, started once per round to measure the startup time."""
    with tempfile.TemporaryDirectory(prefix="pulsarbox-bench-") as folder:
        box = BoxProcess(Path(folder) / "data", start_cmd)
        try:
            starts = []
            for _ in range(rounds):
                box.kill()
                starts.append(first_message(box))
            target = Target("box", box.url, box.pid, box.web_url)
            for seconds in starts:
                target.add(START, {"seconds": seconds})
            yield target
        finally:
            box.kill()


def run(targets: Sequence[Target], rows: Sequence[Row], rounds: int, scale: float, command: Sequence[str]) -> None:
    for target in targets:
        if target.pid is not None:
            for row, figures in rest(target.pid):
                target.add(row, figures)
    label = uuid.uuid4().hex[:8]
    for number in range(rounds):
        for row in rows:
            # The order alternates between rounds.
            for target in targets if number % 2 == 0 else targets[::-1]:
                topic = f"persistent://public/default/bench-{label}-{row.name}-{number}"
                measured = measure_row(target, row, row.job_for(target.url, topic, scale), command)
                if measured is not None:
                    target.add(row, measured)
                    known = [each for each in row.figures if each.key in measured]
                    shown = ", ".join(f"{measured[each.key]:,.2f} {each.unit}" for each in known)
                    say(f"round {number + 1}/{rounds} {target.name}: {row.title}: {shown}")


def text_of(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 1000 else f"{value:,.2f}"


def show(targets: Sequence[Target], rows: Sequence[Row], rounds: int) -> None:
    table = Table(title=f"medians of {rounds} round(s), 1 KiB messages")
    table.add_column("measure")
    table.add_column("unit")
    for target in targets:
        table.add_column(target.name, justify="right")
    if len(targets) == 2:
        table.add_column("ratio", justify="right")
        table.add_column("better")
    for row in rows:
        for number, figure in enumerate(row.figures):
            medians = [target.median(row, figure) for target in targets]
            if any(median is not None for median in medians):
                cells = [row.title if number == 0 else "", figure.unit, *map(text_of, medians)]
                table.add_row(*cells, *compare(targets, medians, figure))
    Console().print(table)


def compare(targets: Sequence[Target], medians: Sequence[float | None], figure: Figure) -> list[str]:
    """Return the ratio of the first to the second, and the name of the better one."""
    if len(targets) != 2:
        return []
    first, second = medians
    if not first or not second:
        return ["-", ""]
    better = targets[0] if (first > second) == figure.more_is_better else targets[1]
    return [f"{first / second:.2f}", better.name]


def write(path: Path, targets: Sequence[Target], arguments: argparse.Namespace) -> None:
    found = {
        "when": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "rounds": arguments.rounds,
        "scale": arguments.scale,
        "targets": [{"name": target.name, "url": target.url, "values": target.values} for target in targets],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(found, indent=1) + "\n")
    say(f"all values are in {path}")


def arguments_of(words: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", help="service URL; without it, a box is started")
    parser.add_argument("--versus", help="service URL of a second broker")
    parser.add_argument("--web-url", default="", help="its Admin API, for the rows that ask it")
    parser.add_argument("--versus-web-url", default="", help="that of the second broker")
    parser.add_argument("--pid", type=int, help="process of the first broker, for memory and processor")
    parser.add_argument("--versus-pid", type=int, help="process of the second broker")
    parser.add_argument("--start-cmd", default=PULSARBOX, help="command that starts the box")
    parser.add_argument("--rows", nargs="*", choices=[row.name for row in ROWS], help="only these rows")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0, help="multiplies the numbers of messages")
    parser.add_argument("--driver", choices=["auto", "go", "python"], default="auto")
    parser.add_argument("--json", type=Path, default=BUILT.parent / "bench.json")
    return parser.parse_args(words)


def bench(arguments: argparse.Namespace, first: Target, command: Sequence[str]) -> None:
    targets = [first]
    if arguments.versus:
        targets.append(Target("versus", arguments.versus, arguments.versus_pid, arguments.versus_web_url))
    rows = [row for row in ROWS if not arguments.rows or row.name in arguments.rows]
    run(targets, rows, arguments.rounds, arguments.scale, command)
    show(targets, [*rows, START, MEMORY, CPU], arguments.rounds)
    write(arguments.json, targets, arguments)


def main() -> None:
    arguments = arguments_of()
    command = driver(arguments.driver)
    if arguments.url:
        bench(arguments, Target("url", arguments.url, arguments.pid, arguments.web_url), command)
        return
    with own_box(arguments.rounds, arguments.start_cmd) as target:
        bench(arguments, target, command)


if __name__ == "__main__":
    main()
