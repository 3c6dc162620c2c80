"""A recorded life of a store: what stood on the disk before it, and what happened.

The first life begins with an empty folder, the next with an image of the one before: so a power cut can hit a store
that is only just recovering from another. A life is a log, and a JSON file beside it that says where it begins.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.powercut.check import DATA, Checked
from tests.powercut.core_check import CoreChecked, CoreStory
from tests.powercut.disk import Disk, Tree, write_tree
from tests.powercut.images import MUTANTS, Image
from tests.powercut.record import Event, Op, load, record
from tests.powercut.story import Story

SHARED_MEMORY: Final = Path("/dev/shm")


ENGINE: Final = "engine"
CORE: Final = "core"


class Level(NamedTuple):
    """What is recorded and checked."""

    workload: str
    """A module."""
    story: type[Story] | type[CoreStory]
    check: Callable[[Path, Any, random.Random], None]
    """Look at an image; raises Violation."""


LEVELS: Final = {
    ENGINE: Level("tests.powercut.workload", Story, lambda *image: Checked(*image).check()),
    CORE: Level("tests.powercut.core_workload", CoreStory, lambda *image: CoreChecked(*image).check()),
}


def level_of(log: Path) -> Level:
    """The level of a life is the first part of its name."""
    return LEVELS[log.name.partition("-")[0]]


class Moment(NamedTuple):
    """Where a life stands: before, or between, its events."""

    disk: Disk
    story: Story | CoreStory


def scratch_folder() -> Path:
    """Where images are made: in memory where that can be had."""
    return SHARED_MEMORY if SHARED_MEMORY.is_dir() else Path(tempfile.gettempdir())


def record_life(library: Path, log: Path, seed: int, steps: int, base: tuple[Path, Image] | None = None) -> None:
    """Record a workload that begins where ``base`` was cut. Raises RecorderError."""
    with tempfile.TemporaryDirectory(prefix="pulsarbox-powercut-", dir=scratch_folder()) as folder:
        root = Path(folder)
        ledgers: list[tuple[int, int]] = []
        if base is not None:
            tree, story = tree_at(*base)
            write_tree(tree, root)
            ledgers = story.live_ledgers()
            _base_file(log).write_text(
                json.dumps(
                    {
                        "log": base[0].name,
                        "image": base[1],
                        "inodes": {path: (root / path).stat().st_ino for path in tree},
                    }
                )
            )
        command = [sys.executable, "-m", level_of(log).workload, str(root / DATA), str(seed), str(steps)]
        record(library, [*command, json.dumps(ledgers)], root, log)


def events_of(log: Path, mutant: str | None = None) -> list[Event]:
    """The events of a life, as a mutant has them."""
    events = load(log)
    return list(MUTANTS[mutant](events)) if mutant else events


def beginning(log: Path) -> Moment:
    """What stood before a life."""
    path = _base_file(log)
    if not path.exists():
        return Moment(Disk(), level_of(log).story())
    base = json.loads(path.read_text())
    tree, story = tree_at(log.with_name(base["log"]), Image(*base["image"]))
    return Moment(Disk.holding(tree, base["inodes"]), story)


def moments(log: Path, mutant: str | None, images: Iterable[Image]) -> Iterator[Moment]:
    """The moment of each image; their cuts grow. It is the same object each time."""
    events = events_of(log, mutant)
    moment = beginning(log)
    at = 0
    for image in images:
        for event in events[at : image.cut]:
            if event.op == Op.MARK:
                moment.story.take(event.data)
            else:
                moment.disk.apply(event)
        at = image.cut
        yield moment


def tree_at(log: Path, image: Image, mutant: str | None = None) -> tuple[Tree, Story | CoreStory]:
    """An image, and what had happened before it."""
    (moment,) = moments(log, mutant, [image])
    return moment.disk.image(image.kind, random.Random(image.dice)), moment.story


def _base_file(log: Path) -> Path:
    return log.with_suffix(".base.json")
