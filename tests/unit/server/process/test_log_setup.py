"""The log of the daemon: its lines, their rate limit, and the log file."""

import json
import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pulsarbox.server.process.log_setup import JsonFormatter, Sparing, TextFormatter, and_more
from pulsarbox.server.recording import slow_commit_log
from pulsarbox.server.recording.slow_commit_log import WatchedCommit
from pulsarbox.storage.journal import Batch


def record(message: str, *given: object, **more: Any) -> logging.LogRecord:
    made = logging.LogRecord("pulsarbox.x", logging.WARNING, "f", 1, message, given, None)
    vars(made).update(more)
    return made


def test_what_a_client_sent_stays_on_its_line_and_commands_no_terminal() -> None:
    line = TextFormatter().format(record("producer %s", "a\nERROR forged\x1b[2J\u202e é"))
    assert "\n" not in line and "\x1b" not in line
    assert line.endswith("WARNING pulsarbox.x: producer a\\nERROR forged\\x1b[2J\\u202e é")


def test_a_traceback_keeps_its_lines() -> None:
    made = record("failed")
    try:
        raise ValueError("why")
    except ValueError:
        made.exc_info = sys.exc_info()
    assert TextFormatter().format(made).splitlines()[-1] == "ValueError: why"
    assert "ValueError: why" in json.loads(JsonFormatter().format(made))["exception"]


def test_json_has_one_object_a_line_with_its_fields() -> None:
    line = JsonFormatter().format(record("a commit took\n%d ms", 7, fields={"commit_ms": 7}))
    assert "\n" not in line
    document = json.loads(line)
    assert (document["level"], document["logger"], document["commit_ms"]) == ("warning", "pulsarbox.x", 7)
    assert document["message"] == "a commit took\n7 ms"


class Clock:
    """A clock that advances on request."""

    def __init__(self) -> None:
        self.time = 100.0

    def __call__(self) -> float:
        return self.time


def test_what_may_happen_often_is_told_seldom_with_the_number_left_out() -> None:
    clock = Clock()
    sparing = Sparing(10, clock)
    told = []
    for _ in range(25):
        told.append(sparing.due())
        clock.time += 1
    assert [each for each in told if each is not None] == [0, 9, 9]
    assert and_more(0) == ""
    assert and_more(9) == " (and 9 more since the last such line)"


def slow(clock: Clock, *seconds: float, slow_ms: int = 100) -> None:
    """Report successive commits of these durations."""
    times = iter(seconds)

    def commit(_: Batch) -> None:
        clock.time += next(times)

    watched = WatchedCommit(commit, slow_ms, clock)
    batch = Batch(1)
    batch.add(b"x" * 1000)
    for _ in seconds:
        watched(batch)


def test_a_slow_commit_is_one_line_with_what_it_held(caplog: pytest.LogCaptureFixture) -> None:
    slow(Clock(), 0.01, 0.2, 0.1)
    (line,) = caplog.records
    assert line.levelno == logging.WARNING
    assert line.getMessage().startswith("a commit took 200 ms, for 1 records of 1.0 KiB")
    assert vars(line)["fields"] == {"commit_ms": 200, "records": 1, "bytes": 1000 + Batch(1).size, "left_out": 0}


def test_many_slow_commits_are_one_line_in_ten_seconds(caplog: pytest.LogCaptureFixture) -> None:
    slow(Clock(), *[0.5] * 10, 3.0, *[0.5] * 30)
    messages = [line.getMessage() for line in caplog.records]
    assert len(messages) == 3
    assert messages[1].endswith("(and 14 more since the last such line, the longest 3000 ms)")
    assert messages[2].endswith("(and 19 more since the last such line, the longest 500 ms)")


def test_slow_commits_need_not_be_told(caplog: pytest.LogCaptureFixture) -> None:
    slow(Clock(), 5.0, slow_ms=0)
    assert not caplog.records
    assert slow_commit_log.log.name == "pulsarbox.server.recording.slow_commit_log"


def test_a_commit_that_fails_slowly_is_told_and_still_fails(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()

    def commit(_: Batch) -> None:
        clock.time += 1
        raise OSError("no")

    with pytest.raises(OSError, match="no"):
        WatchedCommit(commit, 100, clock)(Batch(1))
    assert "a commit took 1000 ms" in caplog.text


WRITER = """
import logging, os, sys
from pathlib import Path
from pulsarbox.config import Settings
from pulsarbox.server.process import log_setup as logs
path, backups, lines = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
settings = Settings(logFileMaxMbytes=1, logFileBackupCount=backups)
logs.set_up(settings, path)
file = logging.getLogger().handlers[0]._file
file._max_bytes = 10_000
before = len(os.listdir("/proc/self/fd"))
for number in range(lines):
    logging.getLogger("w").info("line %05d", number)
    if number == int(sys.argv[4]):
        path.rename(path.with_name("renamed"))
        if len(sys.argv) > 5:
            file.reopen()
    if number % 10 == 0:
        print("printed", number, flush=True)
assert len(os.listdir("/proc/self/fd")) == before
"""


def write(path: Path, backups: int, lines: int, rename_after: int = -1, *more: str) -> None:
    """A process that logs to a file like a box in the background: the file is its stdout and stderr."""
    with path.open("ab") as log:
        words = [str(path), str(backups), str(lines), str(rename_after), *more]
        subprocess.run([sys.executable, "-c", WRITER, *words], stdout=log, stderr=log, check=True, timeout=60)


def names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


def numbers(*paths: Path) -> list[int]:
    lines = [line for path in paths for line in path.read_text().splitlines()]
    return [int(line.split()[-1]) for line in lines if " w: line " in line]


def test_a_log_is_cut_at_its_size_and_the_oldest_goes(tmp_path: Path) -> None:
    path = tmp_path / "box.log"
    write(path, 2, 1000)
    assert names(tmp_path) == ["box.log", "box.log.1", "box.log.2"]
    kept = numbers(tmp_path / "box.log.2", tmp_path / "box.log.1", path)
    assert kept == list(range(kept[0], 1000)) and kept[0] > 0
    assert all(10_000 <= (tmp_path / f"box.log.{number}").stat().st_size < 11_000 for number in (1, 2))


def test_with_room_for_all_nothing_is_lost_whoever_wrote_it(tmp_path: Path) -> None:
    path = tmp_path / "box.log"
    write(path, 50, 1000)
    paths = sorted(tmp_path.glob("box.log.*"), key=lambda each: -int(each.suffix[1:]))
    assert len(paths) > 3
    assert numbers(*paths, path) == list(range(1000))
    printed = [line for each in (*paths, path) for line in each.read_text().splitlines() if line.startswith("printed")]
    assert len(printed) == 100


def test_without_backups_it_begins_anew(tmp_path: Path) -> None:
    path = tmp_path / "box.log"
    write(path, 0, 1000)
    assert names(tmp_path) == ["box.log"]
    assert numbers(path)[-1] == 999 and path.stat().st_size < 11_000


@pytest.mark.parametrize("how", [(), ("reopen",)], ids=["renamed", "renamed and told"])
def test_a_log_that_was_renamed_is_followed_at_the_next_line(tmp_path: Path, how: tuple[str, ...]) -> None:
    path = tmp_path / "box.log"
    write(path, 1, 100, 40, *how)
    assert numbers(tmp_path / "renamed") == list(range(41))
    assert numbers(path) == list(range(41, 100))


def test_a_log_that_cannot_be_cut_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "box.log"
    (tmp_path / "box.log.1" / "in the way").mkdir(parents=True)
    write(path, 1, 300)
    assert numbers(path) == list(range(300))
