"""``pulsarbox backup`` and ``pulsarbox restore`` as processes, with running, stopped and killed boxes."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pulsarbox import PulsarBox
from tests import forks
from tests.e2e.clients import connect, left, until
from tests.e2e.commands import command, environment, running
from tests.tools.box import BoxProcess

ORDERS = "persistent://public/default/orders"


def run(*words: str) -> "subprocess.CompletedProcess[str]":
    return forks.text(forks.run(*words))


def backup(box: BoxProcess, target: Path, *options: str) -> dict[str, Any]:
    done = run("backup", str(target), "--data-dir", str(box.data), "-o", "json", *options)
    assert done.returncode == 0, done.stderr
    made: dict[str, Any] = json.loads(done.stdout)
    return made


def publish(box: BoxProcess, numbers: range, size: int = 10) -> None:
    client = connect(box.url)
    client.subscribe(ORDERS, "s").close()
    producer = client.create_producer(ORDERS, block_if_queue_full=True)
    for number in numbers:
        producer.send_async(b"%d".ljust(size) % number, None)
    producer.flush()
    client.close()


def stored(data: Path, count: int) -> list[int]:
    """Return the messages that a restored box dispatches to the subscription."""
    with PulsarBox(data_dir=data, process=True) as restored:
        client = connect(restored.service_url)
        found = [int(body) for body in left(client, ORDERS, "s", count)]
        client.close()
    return found


def test_a_box_that_runs_is_stopped_and_is_killed(own_box: BoxProcess, tmp_path: Path) -> None:
    target, names = tmp_path / "backups", []
    own_box.start()
    publish(own_box, range(5))
    names.append(backup(own_box, target)["name"])
    publish(own_box, range(5, 8))
    assert own_box.stop() == 0
    names.append(backup(own_box, target)["name"])
    own_box.start()
    publish(own_box, range(8, 10))
    own_box.kill()
    names.append(backup(own_box, target)["name"])
    listed = json.loads(run("backup", "list", str(target), "-o", "json").stdout)["backups"]
    assert [(row["name"], row["state"]) for row in listed] == [(name, "complete") for name in names]
    verified = run("backup", "verify", str(target))
    assert (verified.returncode, verified.stdout.split(":")[0]) == (0, "0 damaged")
    for name, count in zip(names, (5, 8, 10), strict=True):
        done = run("restore", str(target), str(tmp_path / name), "--backup", name)
        assert done.returncode == 0, done.stderr
        assert stored(tmp_path / name, count) == list(range(count))
    assert f"in {target}" in run("status", "--data-dir", str(own_box.data)).stdout
    own_box.start()
    last = json.loads(run("status", "--data-dir", str(own_box.data), "-o", "json").stdout)["lastBackup"]
    assert (last["name"], last["position"]) == (names[-1], listed[-1]["position"])


def test_damage_is_found_and_named(own_box: BoxProcess, tmp_path: Path) -> None:
    own_box.start()
    publish(own_box, range(5))
    target = tmp_path / "backups"
    name = backup(own_box, target)["name"]
    file = max((path for path in (target / "files").rglob("*") if path.is_file()), key=lambda path: path.stat().st_size)
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    done = run("backup", "verify", str(target))
    assert done.returncode == 1
    assert f"DAMAGE {file} is damaged" in done.stdout
    assert f"(meta/data.mdb): backup {name}" in done.stdout
    found = json.loads(run("backup", "verify", str(target), "-o", "json").stdout)["findings"]
    assert [finding["file"] for finding in found] == [str(file)]
    done = run("restore", str(target), str(tmp_path / "new"))
    assert done.returncode == 1
    assert str(file) in done.stderr
    assert not (tmp_path / "new").exists()


def test_a_box_is_never_replaced_while_it_runs(own_box: BoxProcess, tmp_path: Path) -> None:
    own_box.start()
    publish(own_box, range(5))
    target = tmp_path / "backups"
    backup(own_box, target)
    publish(own_box, range(5, 7))
    done = run("restore", str(target), str(own_box.data))
    assert (done.returncode, "--force replaces it" in done.stderr) == (4, True)
    done = run("restore", str(target), str(own_box.data), "--force")
    assert done.returncode == 4
    assert f"is in use by process {own_box.pid}" in done.stderr
    own_box.stop()
    done = run("restore", str(target), str(own_box.data), "--force")
    assert done.returncode == 0, done.stderr
    assert stored(own_box.data, 5) == list(range(5))


def test_directories_that_cannot_be_used_end_with_their_codes(own_box: BoxProcess, tmp_path: Path) -> None:
    own_box.start()
    for words, code, told in (
        (("backup", str(own_box.data / "b"), "--data-dir", str(own_box.data)), 4, "contain one another"),
        (("backup", str(tmp_path / "b"), "--data-dir", str(tmp_path / "none")), 3, "does not exist"),
        (("backup", "list", str(tmp_path / "none")), 3, "does not exist"),
        (("backup", "verify", str(own_box.data)), 3, "is not a backup directory"),
        (("backup", "remove", str(tmp_path / "none"), "--keep", "1"), 3, "does not exist"),
        (("restore", str(tmp_path / "none"), str(tmp_path / "new")), 3, "pulsarbox backup"),
        (("backup", str(tmp_path / "b"), "--rate", "much"), 2, "--rate"),
        (("backup", "remove", str(tmp_path / "b"), "x", "--keep", "1"), 2, "not both"),
    ):
        done = run(*words)
        assert (done.returncode, told in done.stderr) == (code, True), (words, done.stderr)
    assert not (tmp_path / "b").exists()


def test_a_box_in_memory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    ports = ("--port", "0", "--web-port", "0")
    with running("start", "--memory", *ports, folder=tmp_path) as process:
        try:
            until(lambda: any(tmp_path.rglob("RUNNING")))
            done = run("backup", str(tmp_path / "b"), "--data-dir", str(tmp_path / "data"))
            assert done.returncode == 3
            assert "--memory: it keeps nothing on disk, so it cannot be backed up" in done.stderr
        finally:
            process.terminate()
    assert not (tmp_path / "b").exists()


def started(target: Path, box: BoxProcess) -> "subprocess.Popen[bytes]":
    """Start a backup that runs for a while."""
    words = ["backup", str(target), "--data-dir", str(box.data), "--rate", "2M", "--copy"]
    nothing = subprocess.DEVNULL
    return forks.box(command(*words), stdin=nothing, stdout=nothing, stderr=subprocess.PIPE, env=environment())


def test_a_backup_that_is_killed_is_resumed(tmp_path: Path) -> None:
    """Killed at three points: before the first file, with some files stored, and with more of them."""
    data, target = tmp_path / "data", tmp_path / "backups"
    small: dict[str, Any] = {"journalVolumeSizeMbytes": 2, "journalMaxBatchMbytes": 1, "journalReserveMbytes": 0}
    with PulsarBox(data_dir=data, process=True, maxMessageSize=1_000_000, **small) as running:
        box = BoxProcess(data)
        client = connect(running.service_url)
        client.subscribe(ORDERS, "s").close()
        producer = client.create_producer(ORDERS, block_if_queue_full=True)
        for number in range(6_000):
            producer.send_async((b"%d " % number).ljust(1_000, b"x"), None)
        producer.flush()
        for stored_files in (0, 1, 3):
            with started(target, box) as process:
                _wait_for(target, stored_files)
                process.send_signal(signal.SIGKILL)
            assert run("backup", "verify", str(target)).returncode == 1
            rows = json.loads(run("backup", "list", str(target), "-o", "json").stdout)["backups"]
            assert {row["state"] for row in rows} == {"incomplete"}
            done = run("restore", str(target), str(tmp_path / "new"))
            assert (done.returncode, "has no complete backup" in done.stderr) == (3, True)
            producer.send(b"6000")  # a killed backup blocks nothing
        made = backup(box, target, "--copy")
        assert made["reusedBytes"] > 0
        client.close()
    assert run("backup", "verify", str(target)).returncode == 0
    assert run("restore", str(target), str(tmp_path / "new")).returncode == 0
    with PulsarBox(data_dir=tmp_path / "new", process=True, maxMessageSize=1_000_000, **small) as restored:
        client = connect(restored.service_url)
        found = [int(body.strip(b"x")) for body in left(client, ORDERS, "s", 6_003)]
        client.close()
    assert found == [*range(6_000), 6_000, 6_000, 6_000]


def journal(target: Path) -> list[Path]:
    """Return the journals of incomplete backups, the newest last: their names need not sort in that order."""
    return sorted((target / "backups").glob("*.partial"), key=lambda path: path.stat().st_mtime_ns)


def lines(path: Path) -> int:
    return len(path.read_bytes().splitlines())


def _wait_for(target: Path, files: int) -> None:
    """Wait until the newest backup has stored this many files."""
    until(lambda: len(journal(target)) > 0 and lines(journal(target)[-1]) >= files)


def test_progress_goes_to_stderr_and_ctrl_c_leaves_what_was_stored(own_box: BoxProcess, tmp_path: Path) -> None:
    own_box.start()
    publish(own_box, range(6_000), 1_000)
    target = tmp_path / "backups"
    with started(target, own_box) as process:
        _wait_for(target, 1)
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        told = process.stderr.read().decode()
        assert process.wait() == 130
    assert "interrupted" in told
    assert len(journal(target)) == 1
    leader, follower = os.openpty()
    with os.fdopen(leader, "rb", buffering=0) as terminal:
        words = ["backup", str(target), "--data-dir", str(own_box.data)]
        with subprocess.Popen([sys.executable, "-m", "pulsarbox", *words], stderr=follower) as process:
            os.close(follower)
            drawn = b""
            try:
                while part := terminal.read(1 << 16):
                    drawn += part
            except OSError:  # the other side of the terminal is closed
                pass
        assert process.returncode == 0
    assert b"backing up [" in drawn
    assert b" MiB of " in drawn
    assert journal(target) == []
