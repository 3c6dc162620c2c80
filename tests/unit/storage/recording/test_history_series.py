"""The overview in recorded history: the last frame until a time, and the course of the minutes before it."""

from pathlib import Path

import pytest

from pulsarbox.storage.recording.history_files import History
from pulsarbox.storage.recording.history_series import FRAMES, SPAN_MS, overview_at
from tests.unit.storage.recording.test_history_files import START, written

STEP = 30_000


@pytest.mark.parametrize(("count", "values"), [(1, 1), (5, 5), (20, 20), (50, SPAN_MS // STEP)])
def test_the_series_end_at_the_last_frame_and_cover_the_minutes_before(tmp_path: Path, count: int, values: int) -> None:
    written(tmp_path / "history", START, count, STEP)
    found = overview_at(History(tmp_path / "history"), START + count * STEP - 1)
    assert found is not None
    assert (found.time, found.totals) == (START + (count - 1) * STEP, {"backlog": count - 1})
    assert found.series["backlog"] == list(range(count - values, count)) and found.series["p99"] == [None] * values
    assert found.step == (STEP / 1000 if count > 1 else 1)


def test_series_have_a_bound(tmp_path: Path) -> None:
    written(tmp_path / "history", START, 3 * FRAMES, 1000)
    found = overview_at(History(tmp_path / "history"), START + 3 * FRAMES * 1000)
    assert found is not None and found.series["backlog"] == list(range(2 * FRAMES, 3 * FRAMES))


def test_before_the_first_frame_there_is_nothing(tmp_path: Path) -> None:
    assert overview_at(History(tmp_path / "none"), START) is None
    written(tmp_path / "history", START, 3, STEP)
    assert overview_at(History(tmp_path / "history"), START - 1) is None


def test_a_time_long_after_the_last_frame_has_its_totals(tmp_path: Path) -> None:
    written(tmp_path / "history", START, 3, STEP)
    found = overview_at(History(tmp_path / "history"), START + 10 * SPAN_MS)
    assert found is not None and (found.time, found.series["backlog"]) == (START + 2 * STEP, [2])
