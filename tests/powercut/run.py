"""Campaign that records the writes and syncs of a store, cuts the power at many moments, and opens the results.

``make powercut N=500``. Progress on stderr, the summary on stdout. Exits with 1 if an image violates a rule: recording
and image are retained, and a command that opens the image again is printed.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from tests import forks
from tests.powercut import marks
from tests.powercut.disk import APPLIED, DROPPED, MIXED, write_tree
from tests.powercut.images import MUTANTS, Image, plan
from tests.powercut.marks import read_mark
from tests.powercut.record import Event, Op, RecorderError, compile_recorder, load
from tests.powercut.recording import LEVELS, beginning, events_of, record_life, scratch_folder, tree_at

PROCESSES: Final = 2
FEW: Final = 8
"""Images that one process opens: a second one would take longer to start."""
STEPS: Final = (60, 25, 25)
"""Commits in each life of a history."""
LIVES_MAX: Final = 10
IMAGES_OF_A_HISTORY: Final = 1250
VIOLATIONS_MAX: Final = 20
SILENCE_SECONDS: Final = 120.0

Tick = Callable[[], None]
Answers = queue.Queue[tuple[int, str | None]]
"""Image numbers, and the violation of each, if any."""


@dataclass
class Finding:
    """An image with a violation."""

    history: str
    """Seed and life."""
    image: Image
    verdict: str
    kept: Path
    again: str


@dataclass
class Run:
    """Results of a run."""

    violations_max: int = VIOLATIONS_MAX
    counts: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def enough(self) -> bool:
        """Return whether the maximum number of violations is reached."""
        return len(self.findings) >= self.violations_max


def powercut(
    folder: Path,
    images: int,
    seed: int,
    mutant: str | None = None,
    levels: Sequence[str] = tuple(LEVELS),
    tick: Tick = lambda: None,
    violations_max: int = VIOLATIONS_MAX,
) -> Run:
    """Open ``images`` images of histories from ``seed`` on. Recordings are in ``folder``. Raises RecorderError."""
    run = Run(violations_max)
    started = time.perf_counter()
    library = compile_recorder(folder)
    histories = max(len(levels), -(-images // IMAGES_OF_A_HISTORY))
    for number in range(histories):
        share = images * (number + 1) // histories - images * number // histories
        level = levels[number % len(levels)]
        _history(run, library, folder / f"{level}-{seed + number // len(levels)}", share, mutant, tick)
    run.seconds = time.perf_counter() - started
    return run


def _history(run: Run, library: Path, name: Path, images: int, mutant: str | None, tick: Tick) -> None:
    """Record some lives, each but the first from an image of the one before, and open images of each."""
    base = None
    seed = int(name.name.partition("-")[2])
    run.counts["histories"] += 1
    for life, steps in enumerate(STEPS):
        if run.enough:
            return
        log = name.with_name(f"{name.name}-{life}.log")
        record_life(library, log, LIVES_MAX * seed + life, steps, base)
        events = events_of(log, mutant)
        _count(run, log, events)
        share = images * (life + 1) // len(STEPS) - images * life // len(STEPS)
        planned = plan(beginning(log).disk, events, share, random.Random(seed))
        run.counts["boundaries"] += planned.boundaries
        run.counts["boundaries opened"] += planned.boundaries_opened
        open_images(run, log, planned.images, mutant, tick)
        (honest,) = plan(beginning(log).disk, load(log), 1, random.Random(seed)).images
        base = (log, honest)


def _count(run: Run, log: Path, events: list[Event]) -> None:
    kinds: Counter[str] = Counter()
    for event in events:
        run.counts[event.op.name] += 1
        if event.op == Op.MARK:
            kind, facts, _ = read_mark(event.data)
            kinds[kind] += 1
            if kind == marks.RECLAIMED:
                run.counts[facts["what"]] += 1
            elif kind == marks.COMPACTED:
                run.counts["compactions"] += 1
                run.counts["compactions that ended"] += facts["ended"]
        elif event.op == Op.SYNC_END and event.directory:
            run.counts["directory syncs"] += 1
    run.counts["lives"] += kinds[marks.REOPENED]
    for kind in (marks.DONE, marks.CHECKPOINTED, marks.RECEIPTED, marks.ACKED):
        run.counts[kind] += kinds[kind]


def open_images(run: Run, log: Path, images: list[Image], mutant: str | None, tick: Tick) -> None:
    """Open the images of a recording in worker processes."""
    with tempfile.TemporaryDirectory(prefix="pulsarbox-images-", dir=scratch_folder()) as scratch:
        _open_images(run, log, images, mutant, scratch, tick)


def _open_images(run: Run, log: Path, images: list[Image], mutant: str | None, scratch: str, tick: Tick) -> None:
    facts: dict[str, Any] = {"log": str(log), "mutant": mutant, "images": images, "scratch": scratch}
    path = log.with_suffix(".plan.json")
    path.write_text(json.dumps(facts))
    answers: Answers = queue.Queue()
    stop = threading.Event()
    step = PROCESSES if len(images) > FEW else 1
    threads = [
        threading.Thread(target=_feed, args=(path, first, step, len(images), answers, stop)) for first in range(step)
    ]
    for thread in threads:
        thread.start()
    verdicts: dict[int, str | None] = {}
    for number, image in enumerate(images):
        # In the order of the images, not of the processes: a seed always yields the same findings.
        while number not in verdicts:
            verdicts.update([answers.get()])
            tick()
        run.counts["images"] += 1
        verdict = verdicts[number]
        if verdict is not None:
            run.findings.append(_keep(log, image, mutant, verdict))
        if run.enough:
            break
    stop.set()
    for thread in threads:
        thread.join()


def _keep(log: Path, image: Image, mutant: str | None, verdict: str) -> Finding:
    """Rebuild the image and retain it for inspection."""
    kept = log.parent / f"image-{log.stem}-{image.cut}-{image.kind}-{image.dice}"
    if not kept.exists():
        kept.mkdir()
        write_tree(tree_at(log, image, mutant)[0], kept)
    return Finding(log.stem, image, verdict, kept, _again(log, image, mutant))


def _again(log: Path, image: Image, mutant: str | None) -> str:
    command = f"python -m tests.powercut.run --replay {log} --cut {image.cut} --kind {image.kind} --dice {image.dice}"
    return f"{command} --mutant {mutant}" if mutant else command


def _feed(path: Path, first: int, step: int, count: int, answers: Answers, stop: threading.Event) -> None:
    """Start workers in turn until the images from ``first`` on are opened; a worker that dies leaves a verdict."""
    while first < count and not stop.is_set():
        command = [sys.executable, "-m", "tests.powercut.worker", str(path), str(first), str(step)]
        pipe = subprocess.PIPE
        worker = forks.box(command, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, env=os.environ)
        assert worker.stdout is not None and worker.stderr is not None
        watch = threading.Timer(SILENCE_SECONDS + count, worker.kill)
        watch.start()
        for line in worker.stdout:
            answer = json.loads(line)
            first = answer["image"]
            if "verdict" in answer:
                answers.put((first, answer["verdict"]))
                first += step
            if stop.is_set():
                worker.kill()
        errors = worker.stderr.read().decode()
        watch.cancel()
        worker.wait()
        worker.stdout.close()
        worker.stderr.close()
        if first < count and not stop.is_set():
            answers.put((first, f"the process that opens it ends with {worker.returncode}\n{errors[-2000:]}"))
            first += step


def _figures(run: Run, *names: str) -> str:
    return " / ".join(f"{run.counts[name]:,}" for name in names)


def show(run: Run, seed: int) -> None:
    """Print the summary."""
    counts = run.counts
    rows: dict[str, int | str] = {
        "histories": counts["histories"],
        "recoveries / commits / checkpoints": _figures(run, "lives", marks.DONE, marks.CHECKPOINTED),
        "turns of the core with receipts / with acknowledgements": _figures(run, marks.RECEIPTED, marks.ACKED),
        "steps that sealed / removed / packed volumes": _figures(run, "sealed", "removed", "packed"),
        "compactions gone on with / at their end": _figures(run, "compactions", "compactions that ended"),
        "writes recorded": counts["WRITE"],
        "  of them through O_DSYNC": counts["DURABLE"],
        "syncs recorded": counts["SYNC_END"],
        "  of them of directories": counts["directory syncs"],
        "changes of names": sum(counts[op.name] for op in (Op.CREATE, Op.MKDIR, Op.RENAME, Op.UNLINK, Op.RMDIR)),
        "images at sync boundaries / of them opened": _figures(run, "boundaries", "boundaries opened"),
        "images opened": counts["images"],
        "violations": len(run.findings),
        "images a second": f"{counts['images'] / run.seconds:.0f}" if run.seconds else "-",
    }
    table = Table(title=f"power cuts, seed {seed}", show_header=False)
    for name, value in rows.items():
        table.add_row(name, f"{value:,}" if isinstance(value, int) else value)
    Console().print(table)
    for finding in run.findings:
        print(f"VIOLATION {finding.history}, cut {finding.image.cut} ({finding.image.kind}): {finding.verdict}")
        print(f"  image: {finding.kept}\n  again: {finding.again}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=500)
    parser.add_argument("--seed", type=int, default=None, help="default: another one each time")
    parser.add_argument("--mutant", choices=sorted(MUTANTS), help="make the disk lie: there have to be violations")
    parser.add_argument("--level", choices=sorted(LEVELS), help="the engine alone, or the whole core; default: both")
    parser.add_argument("--replay", type=Path, metavar="LOG", help="open one image of this recording again")
    parser.add_argument("--cut", type=int, default=0)
    parser.add_argument("--kind", choices=(DROPPED, APPLIED, MIXED), default=MIXED)
    parser.add_argument("--dice", type=int, default=0)
    return parser.parse_args()


def _replay(arguments: argparse.Namespace) -> Run:
    run = Run()
    image = Image(arguments.cut, arguments.kind, arguments.dice)
    open_images(run, arguments.replay, [image], arguments.mutant, lambda: None)
    return run


def main() -> int:
    """Run the command."""
    arguments = _arguments()
    if arguments.replay is not None:
        run = _replay(arguments)
        show(run, 0)
        return 1 if run.findings else 0
    seed = arguments.seed if arguments.seed is not None else random.SystemRandom().randrange(1_000_000)
    folder = Path(tempfile.mkdtemp(prefix="pulsarbox-powercut-"))
    console = Console(stderr=True)
    levels = (arguments.level,) if arguments.level else tuple(LEVELS)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    try:
        with Progress(*columns, console=console) as progress:
            task = progress.add_task(f"power cuts, seed {seed}", total=arguments.images)
            run = powercut(folder, arguments.images, seed, arguments.mutant, levels, lambda: progress.advance(task))
    except RecorderError as error:
        console.print(f"powercut: {error}", markup=False)
        if any(folder.glob("*.log")):  # a store failure in a life that may have started from an image is a finding
            console.print(f"powercut: recordings are in {folder}", markup=False)
            return 1
        shutil.rmtree(folder)
        return 2
    show(run, seed)
    if run.findings:
        console.print(f"powercut: recordings and images are in {folder}", markup=False)
        return 1
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
