"""A process that builds and opens images: what LMDB does to it, a bus error or an abort, is a finding of its parent.

``python -m tests.powercut.worker PLAN FIRST STEP``: every STEP-th image of the plan from FIRST on. One JSON line before
and one after each image.
"""

import json
import random
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from traceback import format_exc
from typing import Any

from tests.powercut.check import Checked, Violation
from tests.powercut.disk import Disk, write_tree
from tests.powercut.images import MUTANTS, Image
from tests.powercut.record import Event, Op, load
from tests.powercut.story import Story


def events_of(log: Path, mutant: str | None) -> list[Event]:
    """The events of a recording, as a mutant has them."""
    events = load(log)
    return list(MUTANTS[mutant](events)) if mutant else events


def build(events: list[Event], images: list[tuple[int, Image]]) -> Iterator[tuple[int, Image, Disk, Story]]:
    """Disk and story at the cut of each image; the cuts grow."""
    disk, story = Disk(), Story()
    at = 0
    for number, image in images:
        for event in events[at : image.cut]:
            if event.op == Op.MARK:
                story.take(event.data)
            else:
                disk.apply(event)
        at = image.cut
        yield number, image, disk, story


def work(plan: dict[str, Any], first: int, step: int) -> None:
    """Open images; tell the parent."""
    events = events_of(Path(plan["log"]), plan["mutant"])
    images = [(number, Image(*fields)) for number, fields in enumerate(plan["images"])][first::step]
    with TemporaryDirectory(prefix="pulsarbox-image-", dir=plan["scratch"]) as scratch:
        folder = Path(scratch) / "image"
        for number, image, disk, story in build(events, images):
            print(json.dumps({"image": number}), flush=True)
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            write_tree(disk.image(image.kind, random.Random(image.dice)), folder)
            verdict = None
            try:
                Checked(folder, story, random.Random(image.dice)).check()
            except Violation as violation:
                verdict = str(violation)
            except Exception:
                verdict = format_exc()
            print(json.dumps({"image": number, "verdict": verdict}), flush=True)


def keep(plan: dict[str, Any], number: int, folder: Path) -> None:
    """Build an image once more, to be looked at."""
    events = events_of(Path(plan["log"]), plan["mutant"])
    folder.mkdir(parents=True)
    for _, image, disk, _ in build(events, [(number, Image(*plan["images"][number]))]):
        write_tree(disk.image(image.kind, random.Random(image.dice)), folder)


if __name__ == "__main__":
    work(json.loads(Path(sys.argv[1]).read_text()), int(sys.argv[2]), int(sys.argv[3]))
