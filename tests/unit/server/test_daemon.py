"""Checks at startup: file limit, disk, conflicting processes, and data retained for later queries."""

import os
import socket
from pathlib import Path

import pytest

from pulsarbox.config import Settings
from pulsarbox.server import daemon
from pulsarbox.server.process import runtime_file
from pulsarbox.server.process.disk_speed import percentile, slow, sync_times
from pulsarbox.server.process.port_owner import as_typed, described, listener
from pulsarbox.server.process.rlimit import FILES_MIN, FILES_OF_ITS_OWN, FILES_WANTED, too_few
from pulsarbox.storage.lmdb.directory import DataDirectory, holder


@pytest.mark.parametrize(
    ("limit", "connections", "words"),
    [
        (FILES_MIN - 1, 0, f"it needs at least {FILES_MIN}"),
        (FILES_WANTED - 1, 0, "leaves 3839 for connections"),
        (FILES_MIN, 0, "leaves 0 for connections"),
        (FILES_WANTED, 0, ""),
        (1000 + FILES_OF_ITS_OWN - 1, 1000, "too few for 1000 connections (brokerMaxConnections)"),
        (1000 + FILES_OF_ITS_OWN, 1000, ""),
    ],
)
def test_a_file_limit_that_is_too_low_is_told_with_the_way_out(limit: int, connections: int, words: str) -> None:
    said = too_few(limit, Settings(brokerMaxConnections=connections))
    assert words in said
    assert bool(said) == bool(words) == ("ulimit -n" in said)


def test_the_times_of_syncs_are_sorted_and_leave_nothing_behind(tmp_path: Path) -> None:
    times = sync_times(tmp_path, 5)
    assert len(times) == 5
    assert times == sorted(times)
    assert min(times) > 0
    assert list(tmp_path.iterdir()) == []


def test_percentiles() -> None:
    times = [float(each) for each in range(1, 101)]
    assert (percentile(times, 0.5), percentile(times, 0.99), percentile(times, 1)) == (51, 100, 100)
    assert percentile([7.0], 0.5) == 7


def test_a_slow_disk_is_told_with_its_figures() -> None:
    assert slow([1.0, 2.0, 90.0], "there") == ""
    said = slow([5.0, 23.42, 90.0], "there")
    assert "there is slow" in said and "23.4 ms" in said and "90.0 ms" in said and "--data-dir" in said


@pytest.mark.parametrize("times", [[1.0] * 3, [90.0] * 3, None], ids=["fast", "slow", "read-only"])
async def test_a_daemon_warns_of_a_slow_disk(
    times: list[float] | None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def measured(directory: Path, count: int) -> list[float]:
        if times is None:
            raise OSError("read-only")
        return times

    monkeypatch.setattr(daemon, "sync_times", measured)
    await daemon.measure_disk(Path("data"))
    assert [record.levelname for record in caplog.records] == (["WARNING"] if times and times[0] > 10 else [])
    assert ("a sync takes 90.0 ms" in caplog.text) == bool(caplog.records)


class Told:
    """A report that stores the cause of its failure."""

    reason = ""

    def serving(self, running: runtime_file.RuntimeFile) -> None:
        """See Report."""

    def failed(self, reason: str) -> None:
        """See Report."""
        self.reason = reason


def test_who_listens_on_a_port_is_found() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert listener(taken.getsockname()[1]) == os.getpid()
        port = taken.getsockname()[1]
    assert listener(port) == 0


def test_a_box_is_described_as_it_was_started() -> None:
    ours = [b"/x/python", b"-m", b"pulsarbox", b"start", b"--log-to", b"/a", b"--data-dir", b"x", b"--report-to", b"5"]
    assert as_typed(ours) == [b"pulsarbox", b"start", b"--data-dir", b"x"]
    other = [b"java", b"-m", b"pulsarbox", b"--log-to", b"x"]
    assert as_typed(other) == other


def test_a_process_is_described_by_its_command() -> None:
    assert described(os.getpid()).startswith(f"process {os.getpid()} (")
    assert described(2**22 + 1) == f"process {2**22 + 1}"
    assert described(0) == "an unknown process"


def sample() -> runtime_file.RuntimeFile:
    return runtime_file.RuntimeFile(os.getpid(), 5, "1", "pulsar://a:1", "http://a:2", "localhost", 1, 2, "/x")


def test_what_runs_is_read_as_it_was_written_and_only_of_the_process_that_holds_the_directory(tmp_path: Path) -> None:
    runtime_file.write(tmp_path, sample())
    assert runtime_file.read(tmp_path, os.getpid()) == sample()
    assert runtime_file.read(tmp_path, os.getpid() + 1) is None
    runtime_file.remove(tmp_path)
    runtime_file.remove(tmp_path)
    assert runtime_file.read(tmp_path, os.getpid()) is None


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"pid": 1}', "\xff"])
def test_a_damaged_note_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "RUNNING").write_text(text, encoding="latin-1")
    assert runtime_file.read(tmp_path, 1) is None


def test_who_takes_a_directory_removes_the_note_of_a_process_that_was_killed(tmp_path: Path) -> None:
    runtime_file.write(tmp_path, sample())
    directory = DataDirectory(tmp_path)
    assert runtime_file.read(tmp_path, os.getpid()) is None
    assert holder(tmp_path) == (True, os.getpid())
    directory.close()
    assert holder(tmp_path) == (False, 0)
    assert holder(tmp_path / "none") == (False, 0)
