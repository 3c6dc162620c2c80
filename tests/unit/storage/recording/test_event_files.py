"""Event files: appended, bounded, and readable past damage."""

import os
from pathlib import Path

from pulsarbox.storage.recording.event_files import FILES, EventWriter, event_files, newest_first, oldest_first, read


def rows(first: int, count: int, text: str = "x") -> list[dict[str, object]]:
    return [{"sequence": number, "time": 1000 + number, "text": text} for number in range(first, first + count)]


def failing(error: OSError) -> None:
    raise AssertionError(error)


def numbers(found: object) -> list[int]:
    return [row["sequence"] for row in found]  # type: ignore[attr-defined]


def test_what_is_written_is_read_both_ways(tmp_path: Path) -> None:
    folder = tmp_path / "events"
    writer = EventWriter(folder, 1 << 20, failing)
    writer.write(rows(1, 3))
    writer.write(rows(7, 2))
    assert numbers(newest_first(folder, 100)) == [8, 7, 3, 2, 1]
    assert numbers(newest_first(folder, 7)) == [3, 2, 1]
    assert numbers(oldest_first(folder, 2, 8)) == [3, 7]
    assert [path.name for _, path in event_files(folder)] == ["00000000000000000001.ndjson"]


def test_a_torn_line_costs_one_event(tmp_path: Path) -> None:
    EventWriter(tmp_path, 1 << 20, failing).write(rows(1, 3))
    torn = event_files(tmp_path)[0][1]
    os.truncate(torn, torn.stat().st_size - 5)
    EventWriter(tmp_path, 1 << 20, failing).write(rows(10, 2))
    assert numbers(oldest_first(tmp_path, 0, 100)) == [1, 2, 10, 11]
    assert len(event_files(tmp_path)) == 1


def test_damage_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000005.ndjson"
    path.write_bytes(b'{"sequence":5,"time":1}\n\xff\x00{\n[]\n{"sequence":"6","time":1}\n{"sequence":7,"time":2}\n\n')
    (tmp_path / "README").write_text("not ours")
    (tmp_path / "x.ndjson").mkdir()
    (tmp_path / "9.ndjson").mkdir()
    assert numbers(read(path)) == [5, 7]
    assert numbers(newest_first(tmp_path, 100)) == [7, 5]


def test_no_folder_is_no_event(tmp_path: Path) -> None:
    assert list(newest_first(tmp_path / "none", 9)) == list(oldest_first(tmp_path / "none", 0, 9)) == []


def test_what_is_kept_is_bounded_and_the_oldest_goes(tmp_path: Path) -> None:
    size, number = 4096, 1
    for _ in range(200):
        EventWriter(tmp_path, size, failing).write(rows(number, 1, "y" * 40))  # simulates a restart
        number += 1
    writer = EventWriter(tmp_path, size, failing)
    for _ in range(200):
        writer.write(rows(number, 2, "z" * 40))
        number += 2
    kept = numbers(oldest_first(tmp_path, 0, 1 << 60))
    assert kept[-1] == number - 1
    assert kept == list(range(kept[0], number))
    used = sum(path.stat().st_size for _, path in event_files(tmp_path))
    assert size // 2 < used <= size + size // FILES + 200
    assert len(event_files(tmp_path)) <= FILES


def test_a_folder_that_cannot_be_written_is_told_and_tried_again(tmp_path: Path) -> None:
    told: list[OSError] = []
    (tmp_path / "events").write_text("in the way")
    writer = EventWriter(tmp_path / "events", 4096, told.append)
    writer.write(rows(1, 1))
    assert len(told) == 1
    (tmp_path / "events").unlink()
    writer.write(rows(2, 1))
    assert (len(told), numbers(newest_first(tmp_path / "events", 9))) == (1, [2])
