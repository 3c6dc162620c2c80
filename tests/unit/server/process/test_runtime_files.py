"""The runtime file follows the directories that are in use."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from pulsarbox.server.process.runtime_file import RuntimeFile, read, write
from pulsarbox.server.process.runtime_files import RuntimeFiles
from pulsarbox.storage.ensemble.status import MemberStatus
from tests.unit.storage.ensemble.fake import member

RUNNING = RuntimeFile(7, 1, "1.0", "pulsar://here:1", "http://here:2", "localhost", 1, 2, "/a", operator="secret")


def at_once(name: str, work: Callable[[], Any], done: Callable[[Any, Exception | None], None]) -> None:
    try:
        done(work(), None)
    except OSError as error:
        done(None, error)


def made(folder: Path) -> tuple[RuntimeFiles, list[Path]]:
    places = [folder / name for name in "abc"]
    for place in places:
        place.mkdir()
    write(places[0], RUNNING)
    return RuntimeFiles(RUNNING, places[0], at_once), places


def states(places: list[Path], *states: str) -> list[MemberStatus]:
    return [member(str(place), state=state) for place, state in zip(places, states, strict=True)]


def test_every_directory_in_use_has_it(tmp_path: Path) -> None:
    files, (a, b, c) = made(tmp_path)
    files.follow(states([a, b, c], "active", "full", "joining"))
    assert read(a, 7) == read(b, 7) == RUNNING
    assert read(c, 7) is None
    files.remove()
    assert [*a.iterdir(), *b.iterdir(), *c.iterdir()] == []


def test_a_directory_that_returns_gets_it_again(tmp_path: Path) -> None:
    files, places = made(tmp_path)
    a, b, _ = places
    files.follow(states(places, "lost", "active", "active"))
    assert read(b, 7) == RUNNING
    (a / "RUNNING").unlink()
    files.follow(states(places, "lost", "active", "active"))
    assert read(a, 7) is None
    files.follow(states(places, "active", "active", "active"))
    assert read(a, 7) == RUNNING


def test_a_missing_directory_is_not_created(tmp_path: Path) -> None:
    files, places = made(tmp_path)
    places[1].rmdir()
    files.follow([*states(places, "active", "active", "active"), member("host:6650/a")])
    assert not places[1].exists()
    assert read(places[2], 7) == RUNNING
