"""Forked commands and boxes behave like commands and boxes in new processes."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests import forks
from tests.e2e.clients import until
from tests.forks import client
from tests.tools.box import BoxProcess


@pytest.mark.parametrize(
    "words",
    [
        ["version"],
        ["config", "init", "-"],
        ["topic", "list", "--admin-url", "http://127.0.0.1:1"],
        ["topic", "--help"],
        ["nonsense"],
        ["admin", "topics"],
    ],
    ids=" ".join,
)
def test_it_says_the_same_and_ends_the_same(words: list[str]) -> None:
    started = subprocess.run([sys.executable, "-m", "pulsarbox", *words], capture_output=True, check=False)
    forked = forks.run(*words)
    assert (forked.returncode, forked.stdout, forked.stderr) == (started.returncode, started.stdout, started.stderr)


def test_input_environment_and_directory_are_its_own(tmp_path: Path) -> None:
    (tmp_path / "pulsarbox.toml").write_text("[network]\nbrokerServicePort = 7000\n")
    shown = forks.run("config", "show", cwd=tmp_path, env=os.environ | {"PULSARBOX_webServicePort": "7001"})
    assert b"brokerServicePort = 7000\nwebServicePort = 7001\n" in shown.stdout, shown
    assert b"brokerServicePort = 6650\nwebServicePort = 8080\n" in forks.run("config", "show").stdout
    assert b"nonsense: no such" in forks.run("config", "check", "/dev/stdin", stdin=b"nonsense = 1\n").stdout


def test_one_that_does_not_end_is_killed(tmp_path: Path) -> None:
    lock = tmp_path / "LOCK"
    for seconds in (1, 10, 60):  # long enough for a box to start on a busy machine
        with pytest.raises(subprocess.TimeoutExpired):
            forks.run("start", "--data-dir", str(tmp_path), "--port", "0", "--web-port", "0", seconds=seconds)
        if lock.exists() and lock.read_text():
            break
    until(lambda: not Path("/proc", lock.read_text().split()[0]).exists())
    assert forks.run("version").returncode == 0


def test_a_box_has_a_session_of_its_own_and_ends_as_it_is_told(tmp_path: Path) -> None:
    box = BoxProcess(tmp_path / "data")
    for number, code in ((signal.SIGTERM, 0), (signal.SIGINT, 0), (signal.SIGKILL, -signal.SIGKILL)):
        box.start()
        process: Any = box.process
        try:
            assert isinstance(process, forks.Process) or not hasattr(os, "pidfd_open")
            assert os.getsid(box.pid) == os.getpgid(box.pid) == box.pid
            assert process.poll() is None
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(0)
            os.kill(box.pid, number)
            assert process.wait(60) == process.poll() == code, box.said()
            process.terminate()  # harmless after the exit
        finally:
            box.kill()


def piped(*words: str, module: str = "pulsarbox") -> "subprocess.Popen[bytes]":
    pipe = subprocess.PIPE
    return forks.box([sys.executable, "-m", module, *words], stdin=pipe, stdout=pipe, stderr=pipe, env=os.environ)


def test_a_command_has_pipes_like_one_in_a_new_process() -> None:
    with piped("config", "check", "/dev/stdin") as process:
        assert process.stdin is not None
        process.stdin.write(b"nonsense = 1\n")
        out, err = process.communicate(timeout=60)
    assert (b"nonsense: no such" in out, b"1 error, " in err, process.returncode) == (True, True, 1)
    with piped("nonsense") as process:
        assert b"nonsense" in process.communicate(timeout=60)[1]


def test_a_module_of_the_tests_has_its_own_words() -> None:
    with piped("/none", "0", "1", module="tests.powercut.worker") as process:
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, b"No such file or directory: '/none'" in err) == (1, b"", True)


def test_a_command_with_pipes_that_does_not_end_is_killed(tmp_path: Path) -> None:
    watched = ("status", "--watch", "1000", "--data-dir", str(tmp_path))
    with piped(*watched) as process, pytest.raises(subprocess.TimeoutExpired):
        process.communicate(timeout=0)
    if hasattr(os, "pidfd_open"):
        assert process.returncode == -signal.SIGKILL


def test_a_box_in_the_background_outlives_its_command(tmp_path: Path) -> None:
    box = ("--data-dir", str(tmp_path / "data"))
    started = forks.run("start", "--detach", *box, "--port", "0", "--web-port", "0")
    assert started.returncode == 0, started.stderr
    assert forks.run("status", *box).returncode == 0
    stopped = forks.run("stop", *box)
    assert stopped.returncode == 0, stopped.stderr


def test_what_python_itself_heeds_is_not_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sitecustomize.py").write_text("print('heeded', flush=True)")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    box = BoxProcess(tmp_path / "data")
    try:
        box.start()
        assert not isinstance(box.process, forks.Process)
        assert "heeded" in box.said()
    finally:
        box.kill()


def test_benchmarks_measure_whole_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert client.are_used()
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", SimpleNamespace(name="benchmarks.tui"))
    assert not client.are_used()
