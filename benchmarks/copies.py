"""Benchmark of copies in several data directories: boxes with other numbers of copies, side by side.

``python -m benchmarks.copies``; ``--disks A B C`` names the parents of the data directories, by default one temporary
folder for all. Ensemble size, write quorum and ack quorum of each box are written as 3/2/2, with 2/2/2+replica for a
last directory that another process serves on loopback. The boxes are measured alternately, row by row; the last columns
are ratios to the first box, which has one data directory. At the end, the processor time of each receipt is split by
thread: the event loop, the committer, and a writer for each directory.
"""

import argparse
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import psutil
from rich.console import Console
from rich.table import Table

from benchmarks.bench import Target, driver, measure_row, run, say, text_of
from benchmarks.copies_engine import SUFFIX, ReplicaOnLoopback, engine_lines, replica
from benchmarks.rows import ROWS, Row
from tests.tools.box import PULSARBOX, BoxProcess

QUORUMS: Final = ("1/1/1", "2/2/2", "3/2/2")
PROFILED: Final = "many-1"
"""The row whose processor time is split by thread: the bare protocol, without an official client."""
THREADS: Final = 5
ROW_NAMES: Final = ("publish-batched", "publish-single", "roundtrip", "paced-single")


def command_of(quorums: str, places: Sequence[Path], served: ReplicaOnLoopback | None = None) -> list[str]:
    """Return the command of a box with so many directories and copies, the last of them on a replica."""
    ensemble, write, ack = quorums.removesuffix(SUFFIX).split("/")
    settings = {"EnsembleSize": ensemble, "WriteQuorum": write, "AckQuorum": ack}
    words = [f"PULSARBOX_managedLedgerDefault{name}={value}" for name, value in settings.items()]
    start = list(PULSARBOX)
    if int(ensemble) > 1:
        names = [str(place) for place in places[: int(ensemble)]]
        if served is not None:
            names[-1] = served.address
            words.append(f"PULSARBOX_ensembleReplicaSecretFile={served.secret_file}")
        listed = ",".join(names)
        words.append(f"PULSARBOX_dataDirectories={listed}")
        at = start.index("--data-dir")  # it would take precedence
        del start[at : at + 2]
    return ["env", *words, *start]


@contextmanager
def boxes(quorums: Sequence[str], disks: Sequence[Path]) -> Iterator[list[Target]]:
    """Provide a running box for each number of copies."""
    with ExitStack() as stack:
        targets: list[Target] = []
        for each in quorums:
            folders = [
                Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pulsarbox-copies-", dir=disk)))
                for disk in disks
            ]
            served = stack.enter_context(replica(folders[-1])) if each.endswith(SUFFIX) else None
            places = [folder / "copies" for folder in folders]
            box = BoxProcess(folders[0] / "data", command_of(each, places, served))
            stack.callback(box.kill)
            box.start()
            targets.append(Target(each, box.url, box.pid, box.web_url))
        yield targets


def show(targets: Sequence[Target], rows: Sequence[Row]) -> None:
    """Print medians, and ratios to the first target."""
    table = Table(title="copies in several data directories, medians")
    for column in (
        "measure",
        "unit",
        *[each.name for each in targets],
        *[f"{each.name} ratio" for each in targets[1:]],
    ):
        table.add_column(column)
    for row in rows:
        for figure in row.figures:
            medians = [target.median(row, figure) for target in targets]
            if medians[0]:
                ratios = [f"{each / medians[0]:.2f}" if each else "-" for each in medians[1:]]
                table.add_row(row.title, figure.unit, *map(text_of, medians), *ratios)
    Console(width=150).print(table)


ThreadTimes = dict[int, tuple[float, float]]
"""User and system seconds by thread."""


def thread_lines(targets: Sequence[Target], rounds: int, scale: float) -> Iterator[str]:
    """Yield the processor time of a receipt of each box, by thread; rounds alternate between the boxes."""
    row = next(row for row in ROWS if row.name == PROFILED)
    found: dict[str, list[list[tuple[float, float]]]] = {target.name: [] for target in targets}
    for number in range(rounds):
        for target in targets if number % 2 == 0 else targets[::-1]:
            assert target.pid is not None
            before = threads_of(target.pid)
            job = row.job_for(target.url, f"persistent://public/default/profile-{number}", scale)
            measure_row(target, row, job, [])
            found[target.name].append(spent(target.pid, before, threads_of(target.pid), job["messages"]))
    for name, measured in found.items():
        parts = [
            f"{statistics.median(user for user, _ in each):.1f} + {statistics.median(system for _, system in each):.1f}"
            for each in zip(*(times[:THREADS] for times in measured), strict=False)
        ]
        total = statistics.median(sum(map(sum, times)) for times in measured)
        split = f"event loop {parts[0]}, other threads {', '.join(parts[1:])}"
        yield f"processor time of a receipt, {name}: {total:.1f} us; user + system: {split}"


def threads_of(pid: int) -> ThreadTimes:
    """Return the times of the threads of a process."""
    return {each.id: (each.user_time, each.system_time) for each in psutil.Process(pid).threads()}


def spent(pid: int, before: ThreadTimes, after: ThreadTimes, count: int) -> list[tuple[float, float]]:
    """Return user and system microseconds per message: of the event loop, then of the others, busiest first."""
    used = {}
    for thread, (user, system) in after.items():
        was = before.get(thread, (0.0, 0.0))
        used[thread] = 1e6 * (user - was[0]) / count, 1e6 * (system - was[1]) / count
    loop = used.pop(pid)
    return [loop, *sorted(used.values(), key=sum, reverse=True)]


def devices(disks: Sequence[Path]) -> str:
    """Describe the devices of some folders."""
    return ", ".join(f"{disk} (device {disk.stat().st_dev})" for disk in disks)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--disks", type=Path, nargs="+", help="parents of the data directories, as many as copies")
    parser.add_argument("--versus", metavar="URL", help="measure this broker too, such as one that syncs its journal")
    parser.add_argument("--quorums", nargs="+", default=list(QUORUMS))
    parser.add_argument("--rows", nargs="*", default=list(ROW_NAMES), choices=[row.name for row in ROWS])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--engine-only", action="store_true", help="only the stores, without boxes")
    parser.add_argument("--commits", type=int, default=2000, help="commits of each store")
    arguments = parser.parse_args()
    disks = arguments.disks or [Path(tempfile.gettempdir())] * 3
    say(f"directories on {devices(disks)}")
    for line in engine_lines(arguments.quorums, disks, arguments.commits, arguments.rounds):
        print(line)
    if arguments.engine_only:
        return
    rows = [row for row in ROWS if row.name in arguments.rows]
    with boxes(arguments.quorums, disks) as own:
        targets = [*own, *([Target("versus", arguments.versus)] if arguments.versus else [])]
        run(targets, rows, arguments.rounds, arguments.scale, driver("auto"))
        for line in thread_lines(own, arguments.rounds, arguments.scale):
            print(line)
    show(targets, rows)


if __name__ == "__main__":
    main()
