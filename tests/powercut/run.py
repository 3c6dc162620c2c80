"""Records what a store writes and syncs, cuts the power at many moments of it, and opens what may stand on the disk.

``make powercut N=500``. Progress on stderr, the summary on stdout; ends with 1 if an image was not what it should be:
then recording and image are kept, and a command that opens the image again is printed.
"""

from __future__ import annotations

import argparse
import json
import queue
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from tests.powercut.disk import APPLIED, DROPPED, MIXED
from tests.powercut.images import MUTANTS, Image, plan
from tests.powercut.record import Op, RecorderError, compile_recorder, record
from tests.powercut.story import Story
from tests.powercut.worker import events_of, keep

PROCESSES: Final = 2
STEPS: Final = 80
"""Commits of one history."""
IMAGES_OF_A_HISTORY: Final = 1250
VIOLATIONS_MAX: Final = 20
SILENCE_SECONDS: Final = 120.0
SHARED_MEMORY: Final = Path("/dev/shm")

Tick = Callable[[], None]


@dataclass
class Finding:
    """An image that is not what it should be."""

    seed: int
    image: Image
    verdict: str
    kept: Path
    again: str


@dataclass
class Run:
    """What a run did and what it amounts to."""

    counts: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def enough(self) -> bool:
        """Whether more violations would tell nothing new."""
        return len(self.findings) >= VIOLATIONS_MAX


def scratch_folder() -> Path | None:
    """Where images are made: in memory where that can be had."""
    return SHARED_MEMORY if SHARED_MEMORY.is_dir() else None


def powercut(
    folder: Path, images: int, seed: int, mutant: str | None = None, steps: int = STEPS, tick: Tick = lambda: None
) -> Run:
    """Open ``images`` images of histories from ``seed`` on. Recordings are in ``folder``. Raises RecorderError."""
    run = Run()
    started = time.perf_counter()
    library = compile_recorder(folder)
    # At least two: one with a housekeeper beside the committer, one without.
    histories = max(2, -(-images // IMAGES_OF_A_HISTORY))
    for number in range(histories):
        share = images * (number + 1) // histories - images * number // histories
        if share and not run.enough:
            _history(run, library, folder, seed + number, share, (mutant, steps), tick)
    run.seconds = time.perf_counter() - started
    return run


def _history(
    run: Run, library: Path, folder: Path, seed: int, images: int, how: tuple[str | None, int], tick: Tick
) -> None:
    mutant, steps = how
    log = folder / f"history-{seed}.log"
    with tempfile.TemporaryDirectory(prefix="pulsarbox-powercut-", dir=scratch_folder()) as root:
        command = [sys.executable, "-m", "tests.powercut.workload", f"{root}/data", str(seed), str(steps)]
        record(library, command, Path(root), log)
    events = events_of(log, mutant)
    story = Story()
    for event in events:
        run.counts[event.op.name] += 1
        if event.op == Op.MARK:
            story.take(event.data)
        elif event.op == Op.SYNC_END and event.directory:
            run.counts["directory syncs"] += 1
    run.counts["histories"] += 1
    run.counts["commits"] += story.done
    run.counts["checkpoints"] += story.checkpointed
    run.counts["reclaimed"] += len(story.reclaimed)
    planned = plan(events, images, random.Random(seed))
    run.counts["boundaries"] += planned.boundaries
    run.counts["boundaries opened"] += planned.boundaries_opened
    open_images(run, log, planned.images, seed, mutant, tick)


def open_images(run: Run, log: Path, images: list[Image], seed: int, mutant: str | None, tick: Tick) -> None:
    """Have worker processes open the images of a recording."""
    facts: dict[str, Any] = {
        "log": str(log),
        "mutant": mutant,
        "images": images,
        "scratch": str(scratch_folder() or tempfile.gettempdir()),
    }
    path = log.with_suffix(".plan.json")
    path.write_text(json.dumps(facts))
    answers: queue.Queue[tuple[int, str | None]] = queue.Queue()
    stop = threading.Event()
    threads = [
        threading.Thread(target=_feed, args=(path, first, len(images), answers, stop)) for first in range(PROCESSES)
    ]
    for thread in threads:
        thread.start()
    for _ in images:
        number, verdict = answers.get()
        run.counts["images"] += 1
        tick()
        if verdict is None:
            continue
        kept = log.parent / f"image-{seed}-{number}"
        keep(facts, number, kept)
        run.findings.append(Finding(seed, images[number], verdict, kept, _again(log, images[number], mutant)))
        if run.enough:
            break
    stop.set()
    for thread in threads:
        thread.join()


def _again(log: Path, image: Image, mutant: str | None) -> str:
    command = f"python -m tests.powercut.run --replay {log} --cut {image.cut} --kind {image.kind} --dice {image.dice}"
    return f"{command} --mutant {mutant}" if mutant else command


def _feed(
    path: Path, first: int, count: int, answers: queue.Queue[tuple[int, str | None]], stop: threading.Event
) -> None:
    """One worker after another, until the images from ``first`` on are opened: each that ends leaves a verdict."""
    while first < count and not stop.is_set():
        command = [sys.executable, "-m", "tests.powercut.worker", str(path), str(first), str(PROCESSES)]
        worker = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert worker.stdout is not None and worker.stderr is not None
        watch = threading.Timer(SILENCE_SECONDS + count, worker.kill)
        watch.start()
        for line in worker.stdout:
            answer = json.loads(line)
            first = answer["image"]
            if "verdict" in answer:
                answers.put((first, answer["verdict"]))
                first += PROCESSES
            if stop.is_set():
                worker.kill()
        errors = worker.stderr.read()
        watch.cancel()
        worker.wait()
        worker.stdout.close()
        worker.stderr.close()
        if first < count and not stop.is_set():
            answers.put((first, f"the process that opens it ends with {worker.returncode}\n{errors[-2000:]}"))
            first += PROCESSES


def show(run: Run, seed: int) -> None:
    """The summary."""
    counts = run.counts
    rows: dict[str, int | str] = {
        "histories": counts["histories"],
        "commits / checkpoints / steps of reclaiming": " / ".join(
            f"{counts[name]:,}" for name in ("commits", "checkpoints", "reclaimed")
        ),
        "writes recorded": counts["WRITE"],
        "  of them through O_DSYNC": counts["DURABLE"],
        "syncs recorded": counts["SYNC_END"],
        "  of them of directories": counts["directory syncs"],
        "changes of names": sum(counts[op.name] for op in (Op.CREATE, Op.MKDIR, Op.RENAME, Op.UNLINK, Op.RMDIR)),
        "images at sync boundaries: there are / opened": f"{counts['boundaries']:,} / {counts['boundaries opened']:,}",
        "images opened": counts["images"],
        "violations": len(run.findings),
        "images a second": f"{counts['images'] / run.seconds:.0f}" if run.seconds else "-",
    }
    table = Table(title=f"power cuts, seed {seed}", show_header=False)
    for name, value in rows.items():
        table.add_row(name, f"{value:,}" if isinstance(value, int) else value)
    Console().print(table)
    for finding in run.findings:
        print(f"VIOLATION seed {finding.seed}, cut {finding.image.cut} ({finding.image.kind}): {finding.verdict}")
        print(f"  image: {finding.kept}\n  again: {finding.again}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=500)
    parser.add_argument("--seed", type=int, default=None, help="default: another one each time")
    parser.add_argument("--steps", type=int, default=STEPS, help="commits of one history")
    parser.add_argument("--mutant", choices=sorted(MUTANTS), help="make the disk lie: there have to be violations")
    parser.add_argument("--replay", type=Path, metavar="LOG", help="open one image of this recording again")
    parser.add_argument("--cut", type=int, default=0)
    parser.add_argument("--kind", choices=(DROPPED, APPLIED, MIXED), default=MIXED)
    parser.add_argument("--dice", type=int, default=0)
    return parser.parse_args()


def _replay(arguments: argparse.Namespace, folder: Path) -> Run:
    run = Run()
    log = folder / arguments.replay.name
    shutil.copy(arguments.replay, log)
    image = Image(arguments.cut, arguments.kind, arguments.dice)
    open_images(run, log, [image], 0, arguments.mutant, lambda: None)
    return run


def main() -> int:
    """The command line."""
    arguments = _arguments()
    seed = arguments.seed if arguments.seed is not None else random.SystemRandom().randrange(1_000_000)
    folder = Path(tempfile.mkdtemp(prefix="pulsarbox-powercut-"))
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    try:
        if arguments.replay is not None:
            run = _replay(arguments, folder)
        else:
            with Progress(*columns, console=console) as progress:
                task = progress.add_task(f"power cuts, seed {seed}", total=arguments.images)
                run = powercut(
                    folder, arguments.images, seed, arguments.mutant, arguments.steps, lambda: progress.advance(task)
                )
    except RecorderError as error:
        console.print(f"powercut: {error}", markup=False)
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
