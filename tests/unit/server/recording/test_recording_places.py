"""The places of recordings follow the data directories in use, and new ones get what the others have."""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from pulsarbox.server.recording.copied_recording import CopiedRecording
from pulsarbox.server.recording.recording_places import RecordingPlaces
from pulsarbox.storage.format import INSTANCE
from pulsarbox.storage.recording.event_files import SUFFIX, EventWriter, Row, newest_first, oldest_first
from tests.unit.storage.ensemble.fake import member


def rows(first: int, end: int) -> list[Row]:
    return [{"sequence": number, "time": number} for number in range(first, end)]


def failing(error: OSError) -> None:
    raise AssertionError(error)


@pytest.fixture
def places(tmp_path: Path) -> list[Path]:
    made = [tmp_path / name for name in "abc"]
    for each in made:
        each.mkdir()
        (each / INSTANCE).touch()
    return made


@pytest.fixture
def copies() -> Iterator[CopiedRecording[list[Row]]]:
    own: CopiedRecording[list[Row]] = CopiedRecording(
        "events", "events", SUFFIX, lambda folder: EventWriter(folder, 1 << 20, failing).write
    )
    yield own
    own.stop()


def stored(place: Path) -> list[int]:
    """Return the events of a place, which must be the same in both directions."""
    folder = place / "events"
    numbers = [row["sequence"] for row in oldest_first(folder, 0, 1 << 60)]
    assert [row["sequence"] for row in newest_first(folder, 1 << 60)] == numbers[::-1]
    return numbers


def await_event(number: int, *places: Path) -> None:
    for place in places:
        while not any(row["sequence"] == number for row in oldest_first(place / "events", 0, 1 << 60)):
            time.sleep(0.001)


def test_the_places_are_the_local_directories_in_use_and_the_longest_in_use_comes_first(places: list[Path]) -> None:
    a, b, c = places
    moved: list[Path] = []
    told: list[Sequence[Path]] = []
    own = RecordingPlaces(a, moved.append)
    own.join(told.append)
    own.follow([member(str(a)), member(str(b), state="full"), member(str(c), state="lost"), member("replica://x:1")])
    own.follow([member(str(a), state="late"), member(str(b)), member(str(c))])
    own.follow([member(str(a)), member(str(b)), member(str(c))])
    own.follow([member(str(each), state="lost") for each in places])
    assert told == [[a], [a, b], [b, c], [b, c, a]]
    assert moved == [b]


def test_recordings_continue_after_the_loss_of_a_place(places: list[Path], copies: CopiedRecording[list[Row]]) -> None:
    a, b, c = places
    copies.follow([a, b])
    copies.submit(rows(1, 4))
    await_event(3, a, b)
    copies.follow([b])
    copies.submit(rows(4, 6))
    await_event(5, b)
    assert stored(a) == [1, 2, 3]
    copies.follow([b, c])
    copies.submit(rows(6, 7))
    await_event(6, b, c)
    copies.follow([b, c, a])
    copies.submit(rows(7, 9))
    copies.stop()
    assert stored(a) == stored(b) == stored(c) == [*range(1, 9)]


def test_a_place_that_was_replaced_gets_all(places: list[Path], copies: CopiedRecording[list[Row]]) -> None:
    a, b, _ = places
    copies.follow([a, b])
    copies.submit(rows(1, 4))
    await_event(3, a, b)
    a.rename(a.with_name("aside"))
    a.mkdir()
    (a / INSTANCE).touch()
    copies.submit(rows(4, 5))
    copies.stop()
    assert stored(a) == [1, 2, 3, 4]


def test_a_place_that_is_no_data_directory_stays_empty(places: list[Path], copies: CopiedRecording[list[Row]]) -> None:
    a, b, _ = places
    (b / INSTANCE).unlink()
    copies.follow([a, b])
    copies.submit(rows(1, 4))
    copies.stop()
    assert stored(a) == [1, 2, 3]
    assert [*b.iterdir()] == []


def test_events_that_a_copy_has_twice_are_read_once(tmp_path: Path) -> None:
    for first, end in ((1, 6), (4, 8)):
        EventWriter(tmp_path / "events", 1 << 20, failing).write(rows(first, end))
    for first, end in ((3, 4), (7, 9)):
        EventWriter(tmp_path / "other", 1 << 20, failing).write(rows(first, end))
    next((tmp_path / "other").iterdir()).rename(tmp_path / "events" / f"{3:020d}{SUFFIX}")
    assert stored(tmp_path) == [*range(1, 9)]
