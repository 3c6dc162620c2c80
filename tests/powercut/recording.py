"""A recorded life of a store: the initial disk contents, and the events.

The first life starts with an empty folder, each later one with an image of the life before. A power cut can therefore
hit a store during its recovery from another one. A life is a log, with a JSON file beside it that names its initial
contents.
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
from tests.powercut.ensemble_check import EnsembleChecked
from tests.powercut.images import MUTANTS, Image
from tests.powercut.record import Event, Op, load, record
from tests.powercut.story import Story

SHARED_MEMORY: Final = Path("/dev/shm")


ENGINE: Final = "engine"
CORE: Final = "core"
ENSEMBLE: Final = "ensemble"
"""The engine on several directories, each a disk of its own."""


class Level(NamedTuple):
    """A workload to record, and the check of its images."""

    workload: str
    """Module to run."""
    story: type[Story] | type[CoreStory]
    check: Callable[[Path, Any, random.Random], None]
    """Checks an image; raises Violation."""


LEVELS: Final = {
    ENGINE: Level("tests.powercut.workload", Story, lambda *image: Checked(*image).check()),
    ENSEMBLE: Level("tests.powercut.ensemble_workload", Story, lambda *image: EnsembleChecked(*image).check()),
    CORE: Level("tests.powercut.core_workload", CoreStory, lambda *image: CoreChecked(*image).check()),
}


def level_of(log: Path) -> Level:
    """Return the level of a life: the first part of its name."""
    return LEVELS[log.name.partition("-")[0]]


class Moment(NamedTuple):
    """State of a life before, or between, its events."""

    disk: Disk
    story: Story | CoreStory


def scratch_folder() -> Path:
    """Return the folder for images, in memory if possible."""
    return SHARED_MEMORY if SHARED_MEMORY.is_dir() else Path(tempfile.gettempdir())


def record_life(library: Path, log: Path, seed: int, steps: int, base: tuple[Path, Image] | None = None) -> None:
    """Record a workload that starts from an image of ``base``. Raises RecorderError."""
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
    """Return the events of a life, altered by the mutant."""
    events = load(log)
    return list(MUTANTS[mutant](events)) if mutant else events


def beginning(log: Path) -> Moment:
    """Return the state before a life."""
    path = _base_file(log)
    if not path.exists():
        return Moment(Disk(), level_of(log).story())
    base = json.loads(path.read_text())
    tree, story = tree_at(log.with_name(base["log"]), Image(*base["image"]))
    return Moment(Disk.holding(tree, base["inodes"]), story)


def moments(log: Path, mutant: str | None, images: Iterable[Image]) -> Iterator[Moment]:
    """Yield the state at each image, in the order of their cuts. The same object is yielded each time."""
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
    """Return an image and the story up to its cut."""
    (moment,) = moments(log, mutant, [image])
    return moment.disk.image(image.kind, random.Random(image.dice)), moment.story


def _base_file(log: Path) -> Path:
    return log.with_suffix(".base.json")
