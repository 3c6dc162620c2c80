"""History files: lookup by time, thinning with age, bounds, and reading up to damage."""

import json
import os
import random
from pathlib import Path

from pulsarbox.storage.recording.history_files import (
    FILE_MS,
    KEY_EVERY,
    TIERS,
    FrameFile,
    FrameWriter,
    History,
    HistoryFrame,
    files,
    make_room,
    packed_rows,
    rows_of,
    thin,
    thinned,
    write_all,
)

HOUR = FILE_MS
START = 1_700_000_000_000 // HOUR * HOUR


def frame(time: int, backlog: int = 1) -> HistoryFrame:
    rows = [{"topic": f"persistent://public/default/t{number}", "backlog": backlog * number} for number in range(50)]
    return HistoryFrame(time, json.dumps({"backlog": backlog}).encode(), packed_rows({"topics": (99, rows)}))


def written(folder: Path, first: int, count: int, step: int) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / f"{first:015d}-0.frames"
    writer = FrameWriter(path)
    for number in range(count):
        writer.append(frame(first + number * step, number), sync=False)
    assert writer.size == path.stat().st_size
    return path


def test_frames_come_back_as_they_were(tmp_path: Path) -> None:
    path = written(tmp_path, START, 2 * KEY_EVERY + 5, 1000)
    file = FrameFile(path)
    assert file.times == [START + number * 1000 for number in range(2 * KEY_EVERY + 5)]
    order = list(range(len(file.times)))
    random.Random(1).shuffle(order)
    for number in order:
        assert file.frame(number) == frame(file.times[number], number)
    assert rows_of(file.frame(3), "topics")[0] == 99  # type: ignore[index]
    assert rows_of(file.frame(3), "topics")[1][2] == {"topic": "persistent://public/default/t2", "backlog": 6}  # type: ignore[index]
    assert rows_of(file.frame(3), "nothing") is None


def test_most_of_a_frame_is_what_the_one_before_said(tmp_path: Path) -> None:
    path = tmp_path / "f"
    writer = FrameWriter(path)
    writer.append(frame(START), sync=False)
    first = writer.size
    writer.append(frame(START + 1), sync=False)
    assert writer.size - first < first / 4


def test_what_is_torn_ends_its_file_wherever_it_is_cut(tmp_path: Path) -> None:
    path = written(tmp_path, START, 5, 1000)
    data = path.read_bytes()
    for size in range(0, len(data), 97):
        path.write_bytes(data[:size])
        file = FrameFile(path)
        assert len(file.times) < 5
        for number, time in enumerate(file.times):
            assert file.frame(number) == frame(time, number)
    chance = random.Random(2)
    for _ in range(200):
        bad = bytearray(data)
        bad[chance.randrange(len(bad))] ^= 1 << chance.randrange(8)
        path.write_bytes(bytes(bad))
        file = FrameFile(path)
        assert all(file.frame(number) == frame(time, number) for number, time in enumerate(file.times))
    path.write_bytes(os.urandom(5000))
    assert FrameFile(path).times == []


def test_the_last_frame_before_a_time_is_found_over_files(tmp_path: Path) -> None:
    written(tmp_path, START, 10, 60_000)
    written(tmp_path, START + HOUR, 10, 60_000)
    history = History(tmp_path)
    assert history.extent()[:2] == (START, START + HOUR + 9 * 60_000)
    assert history.at(START - 1) is None
    for time, found in ((START, START), (START + 59_999, START), (START + HOUR - 1, START + 9 * 60_000)):
        assert history.at(time) is not None
        assert history.at(time).time == found  # type: ignore[union-attr]
    last = [each.time for each in History(tmp_path).before(START + HOUR + 60_000)][:4]
    assert last == [START + HOUR + 60_000, START + HOUR, START + 9 * 60_000, START + 8 * 60_000]
    assert history.times(START + 60_000, START + 180_000, 100) == [START + at * 60_000 for at in (1, 2, 3)]
    some = history.times(0, 1 << 60, 4)
    assert (len(some), some[0], some[-1]) == (4, START, START + HOUR + 9 * 60_000)


def test_no_folder_is_no_history(tmp_path: Path) -> None:
    history = History(tmp_path / "none")
    assert (history.extent(), history.at(START), history.times(0, 1 << 60, 9)) == ((0, 0, 0), None, [])
    (tmp_path / "README.frames").write_text("no")
    assert files(tmp_path) == []


def test_the_first_in_each_step_is_kept() -> None:
    assert thinned([0, 1, 9, 10, 11, 35, 39], 10) == [0, 3, 5]
    assert thinned([], 10) == []


def test_old_hours_get_coarser_step_by_step(tmp_path: Path) -> None:
    for hour in range(3):
        written(tmp_path, START + hour * HOUR, 120, 30_000)
    written(tmp_path, START + 30_000 * 60 + 7, 10, 1000)  # after a restart within the hour
    now = START + 2 * HOUR + TIERS[0].age
    while thin(tmp_path, now):
        pass
    assert [(each.first - START, each.tier) for each in files(tmp_path)] == [(0, 1), (HOUR, 0), (2 * HOUR, 0)]
    times = FrameFile(files(tmp_path)[0].path).times
    assert times == sorted(times)
    assert len(times) == 60
    kept = FrameFile(files(tmp_path)[0].path)
    assert kept.frame(10) == frame(kept.times[10], 20)
    now = START + 4 * HOUR + TIERS[1].age
    while thin(tmp_path, now):
        pass
    assert [each.tier for each in files(tmp_path)] == [2, 2, 2]
    assert [len(FrameFile(each.path).times) for each in files(tmp_path)] == [6, 6, 6]


def test_a_crash_while_an_hour_is_thinned_loses_nothing(tmp_path: Path) -> None:
    path = written(tmp_path, START, 120, 30_000)
    write_all(tmp_path / f"{START:015d}-1.frames", [frame(START, 0)])
    (tmp_path / "000-1.frames.new").write_bytes(b"half")
    assert path.exists()
    history = History(tmp_path)
    assert len(history.times(0, 1 << 60, 999)) == 120
    assert thin(tmp_path, START + 3 * HOUR + TIERS[0].age)
    assert [each.tier for each in files(tmp_path)] == [1]
    make_room(tmp_path, 1 << 30, 0)
    assert [each.name for each in tmp_path.iterdir()] == [f"{START:015d}-1.frames"]


def test_what_is_kept_is_bounded_in_bytes_and_days(tmp_path: Path) -> None:
    sizes = [written(tmp_path, START + hour * HOUR, 20, 1000).stat().st_size for hour in range(6)]
    make_room(tmp_path, sum(sizes[-3:]), 0)
    assert [each.first for each in files(tmp_path)] == [START + hour * HOUR for hour in (3, 4, 5)]
    make_room(tmp_path, 1 << 30, START + 5 * HOUR)
    assert [each.first for each in files(tmp_path)] == [START + hour * HOUR for hour in (4, 5)]
