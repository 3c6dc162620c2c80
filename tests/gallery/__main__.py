"""``python -m tests.gallery``: draw the views of the dashboard, and write a page with them."""

import argparse
import asyncio
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Final, NamedTuple

from tests.gallery.drawing import NO_COLOR, SIZES, THEMES, drawn
from tests.gallery.page import file_of, page_of
from tests.gallery.views import WALKS, views
from tests.unit.tui.seen import stopped

FOLDER: Final = Path("build/gallery")


class Task(NamedTuple):
    """The pictures of one walk in one size, drawn by one process."""

    walk: int
    """Index in WALKS."""
    size: tuple[int, int]
    themes: tuple[str, ...]
    wanted: str
    """Regular expression of the names of the views."""
    folder: Path


def draw(task: Task) -> int:
    """Write the pictures of a task, and return their number."""
    with stopped():
        return asyncio.run(_draw(task))


async def _draw(task: Task) -> int:
    count = 0
    async for picture in drawn(WALKS[task.walk], task.size, task.themes, _wanted(task.wanted)):
        name = file_of(picture.view, picture.theme, picture.size)
        (task.folder / name).write_text(picture.svg, "utf-8")
        count += 1
    return count


def _wanted(pattern: str) -> Callable[[str], bool]:
    return lambda view: re.fullmatch(pattern, view) is not None


def tasks(themes: Sequence[str], sizes: Sequence[tuple[int, int]], wanted: str, folder: Path) -> Iterator[Task]:
    """Yield the tasks, the longest first. NO_COLOR holds for a whole application, so it has tasks of its own."""
    is_wanted = _wanted(wanted)
    for at, walk in enumerate(WALKS):
        if any(is_wanted(view.name) for view in walk.views):
            for size in sizes:
                for group in (tuple(each for each in themes if each != NO_COLOR), (NO_COLOR,)):
                    if set(group) & set(themes):
                        yield Task(at, size, group, wanted, folder)


def main(arguments: Sequence[str]) -> int:
    """Draw what the arguments name."""
    given = _parser().parse_args(arguments)
    themes, sizes = given.theme or list(THEMES), given.size or list(SIZES)
    shown = [view for view in views() if _wanted(given.view)(view)]
    if not shown:
        sys.stderr.write(f"no view matches '{given.view}'; the views are: {' '.join(views())}\n")
        return 2
    given.folder.mkdir(parents=True, exist_ok=True)
    count, total = 0, len(shown) * len(themes) * len(sizes)
    with ProcessPoolExecutor(given.jobs) as pool:
        pending = {pool.submit(draw, task): task for task in tasks(themes, sizes, given.view, given.folder)}
        for done in as_completed(pending):
            count += done.result()
            walk, size = WALKS[pending[done].walk].name, pending[done].size
            sys.stderr.write(f"{count} of {total} pictures ({walk} {size[0]}x{size[1]})\n")
    index = given.folder / "index.html"
    index.write_text(page_of(shown, themes, sizes), "utf-8")
    sys.stdout.write(f"{index}\n")
    return 0


def _size(text: str) -> tuple[int, int]:
    width, _, height = text.partition("x")
    return int(width), int(height)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.gallery", description=__doc__)
    parser.add_argument("--theme", action="append", choices=THEMES, help="a theme (repeatable; default: all)")
    parser.add_argument("--size", action="append", type=_size, metavar="WxH", help="columns and lines (repeatable)")
    parser.add_argument("--view", default=".*", metavar="PATTERN", help="regular expression of the views")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="number of processes")
    parser.add_argument("--folder", type=Path, default=FOLDER, help=f"output folder ({FOLDER})")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
