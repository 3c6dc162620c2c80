"""Benchmark of embedded boxes: startup time, cost of a hundred at once, and cost of the pytest plugin.

``make bench-embed``. Each start is of a new box, which is ready when ``start`` returns. Boxes on disk have their data
in the system's temporary directory, or ``--disk``. Table on stdout, and optionally a JSON file.
"""

import argparse
import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from pulsarbox import PulsarBox

KINDS: Final = ("thread memory", "thread disk", "process memory", "process disk")
_PLUGIN: Final = "import pytest, time; a = time.perf_counter(); import pulsarbox.embed.pytest_plugin; "


class Line(NamedTuple):
    """Measurements of one figure."""

    title: str
    unit: str
    values: list[float]


def starts(count: int, disk: Path) -> list[Line]:
    """Measure start and stop of each kind, alternating between kinds to spread the machine's variations."""
    started: dict[str, list[float]] = {kind: [] for kind in KINDS}
    stopped: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for number in range(count):
        for kind in KINDS:
            directory = disk / f"{kind.replace(' ', '-')}-{number}" if kind.endswith("disk") else None
            box = PulsarBox(process=kind.startswith("process"), data_dir=directory)
            started[kind].append(_timed(box.start))
            box.admin("GET", "/admin/v2/brokers/health")
            stopped[kind].append(_timed(box.stop))
    # The first start in a process imports the server.
    first = Line("first start in a process, thread memory", "ms", started["thread memory"][:1])
    started["thread memory"] = started["thread memory"][1:] or started["thread memory"]
    return [
        first,
        *(Line(f"start, {kind}", "ms", values) for kind, values in started.items()),
        *(Line(f"stop, {kind}", "ms", values) for kind, values in stopped.items()),
    ]


def side_by_side(count: int, disk: Path) -> list[Line]:
    """Measure many boxes in threads at once: resources per box, and the start time of each."""
    lines = []
    for kind in ("memory", "disk"):
        gc.collect()
        files, threads, memory = _files(), threading.active_count(), _private_kib()
        boxes, times = [], []
        for number in range(count):
            box = PulsarBox(data_dir=disk / f"many-{number}" if kind == "disk" else None)
            times.append(_timed(box.start))
            boxes.append(box)
        for box in boxes:
            box.admin("GET", "/admin/v2/brokers/health")
        title = f"{count} boxes in threads, {kind}"
        lines += [
            Line(f"{title}: start of one", "ms", times),
            Line(f"{title}: files each", "", [(_files() - files) / count]),
            Line(f"{title}: threads each", "", [(threading.active_count() - threads) / count]),
            Line(f"{title}: memory each", "KiB", [(_private_kib() - memory) / count]),
        ]
        lines.append(Line(f"{title}: stop of one", "ms", [_timed(box.stop) for box in boxes]))
        lines.append(Line(f"{title}: files left", "", [float(_files() - files)]))
    return lines


def plugin(count: int) -> list[Line]:
    """Measure what the plugin adds to a pytest run that does not use it."""
    code = _PLUGIN + "print((time.perf_counter() - a) * 1000)"
    command = [sys.executable, "-c", code]
    times = [float(subprocess.run(command, check=True, capture_output=True).stdout) for _ in range(count)]
    return [Line("loading the pytest plugin", "ms", times)]


def _timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1000


def _files() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208


def _private_kib() -> float:
    """Return the private memory of this process."""
    rows = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return float(sum(int(row.split()[1]) for row in rows if row.startswith("Private_")))


def arguments_of(words: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--starts", type=int, default=20, help="starts of each kind")
    parser.add_argument("--boxes", type=int, default=100, help="boxes side by side")
    parser.add_argument("--disk", type=Path, help="directory on the disk that is measured (default: the system's)")
    parser.add_argument("--json", type=Path)
    return parser.parse_args(words)


def main(words: Sequence[str] | None = None) -> None:
    arguments = arguments_of(words)
    with tempfile.TemporaryDirectory(dir=arguments.disk) as disk:
        lines = [
            *starts(arguments.starts, Path(disk)),
            *side_by_side(arguments.boxes, Path(disk)),
            *plugin(arguments.starts),
        ]
    for line in lines:
        median, least, most = statistics.median(line.values), min(line.values), max(line.values)
        spread = f"  ({least:.1f} to {most:.1f} of {len(line.values)})" if len(line.values) > 1 else ""
        print(f"{line.title:<46} {median:>9.1f} {line.unit:<4}{spread}")
    if arguments.json:
        arguments.json.write_text(json.dumps([line._asdict() for line in lines], indent=1) + "\n")


if __name__ == "__main__":
    main()
