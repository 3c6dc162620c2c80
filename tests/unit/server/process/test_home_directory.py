"""Which of several data directories leads to the running box."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from pulsarbox.config import Settings
from pulsarbox.server.process.home_directory import home_of_box


@contextmanager
def held(place: Path) -> Iterator[None]:
    descriptor = os.open(place / "LOCK", os.O_CREAT | os.O_RDWR)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    yield
    os.close(descriptor)


def made(folder: Path) -> tuple[Settings, list[Path]]:
    places = [folder / name for name in "abc"]
    for place in places:
        place.mkdir()
    return replace(Settings(), dataDirectories=",".join(map(str, places))), places


def test_a_directory_that_the_box_holds_is_chosen(tmp_path: Path) -> None:
    settings, (a, b, c) = made(tmp_path)
    assert home_of_box(settings) == a
    (a / "RUNNING").write_text("of a box that lost this directory")
    with held(b), held(c):
        assert home_of_box(settings) == b
        (c / "RUNNING").write_text("of the box")
        assert home_of_box(settings) == c
    assert home_of_box(settings) == a
