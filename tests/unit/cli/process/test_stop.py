"""``pulsarbox stop`` and ``status`` when the LOCK file does not match the holder of the directory."""

import fcntl
import json
import os
import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pulsarbox.cli.main import main
from pulsarbox.cli.process import lock_holder, status
from pulsarbox.cli.process.status import health

NOBODY = 2**22 + 1
"""A PID that Linux never assigns."""


def pulsarbox(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


@pytest.fixture
def held(tmp_path: Path) -> Iterator[Path]:
    """A directory whose lock is held by this process, with a LOCK file that names another process."""
    with (tmp_path / "LOCK").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield tmp_path


@pytest.mark.parametrize("text", ["", str(NOBODY), "1", "x"])
def test_a_process_that_does_not_hold_the_lock_is_not_touched(
    held: Path, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object) -> None:
        raise AssertionError("a signal was sent")

    monkeypatch.setattr(signal, "pidfd_send_signal", never)
    (held / "LOCK").write_text(text)
    result = pulsarbox("stop", "--data-dir", str(held))
    assert result.exit_code == 4, result.output
    assert "is not visible from here" in result.stderr
    result = pulsarbox("status", "--data-dir", str(held), "-o", "json")
    document = json.loads(result.stdout)
    assert (result.exit_code, document["state"], document["memoryBytes"]) == (0, "starting", None)


def test_the_process_of_another_user(held: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(signal, "pidfd_send_signal", refuse)
    (held / "LOCK").write_text(str(os.getpid()))
    result = pulsarbox("stop", "--data-dir", str(held))
    assert result.exit_code == 5
    assert "another user:" in result.stderr


def test_the_holder_is_found_by_the_kernels_list_too(held: Path) -> None:
    assert lock_holder._has_locked(os.getpid(), held / "LOCK")
    assert lock_holder._has_open(os.getpid(), held / "LOCK")
    assert not lock_holder._has_locked(1, held / "LOCK")
    assert not lock_holder._has_locked(1, held / "none")


@pytest.mark.parametrize(("command", "code"), [("stop", 0), ("status", 3)])
def test_a_directory_that_does_not_exist_is_not_running(tmp_path: Path, command: str, code: int) -> None:
    result = pulsarbox(command, "--data-dir", str(tmp_path / "none"))
    assert result.exit_code == code
    assert "not running" in result.output


def test_the_directory_is_that_of_the_configuration(held: Path) -> None:
    config = held / "box.toml"
    config.write_text(f'[broker]\ndataDirectory = "{held}"\n')
    assert json.loads(pulsarbox("status", "--config", str(config), "-o", "json").stdout)["data"] == str(held)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"HTTP/1.0 200 OK\r\nA: b\r\n\r\nok", "ok"),
        (b"HTTP/1.1 503 Unavailable\r\n\r\nthe store did not take it\n", "HTTP 503: the store did not take it"),
        (b'HTTP/1.1 500 Error\r\n\r\n{"reason":"the disk is full"}', "HTTP 500: the disk is full"),
        (b"HTTP/1.1 500 Error\r\n\r\n[]", "HTTP 500: []"),
        (b"\0\0\0\x05hello", "no HTTP response"),
        (b"", "no HTTP response"),
    ],
)
def test_the_health_that_a_box_tells(answer: bytes, said: str) -> None:
    def serve(server: socket.socket) -> None:
        connection, _ = server.accept()
        with connection:
            connection.recv(4096)
            connection.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        serving = threading.Thread(target=serve, args=[server])
        serving.start()
        assert health("127.0.0.1", port) == said
        serving.join()
    assert health("127.0.0.1", port) == "no response: Connection refused"


def test_a_box_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status, "_HEALTH_SECONDS", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert health("127.0.0.1", server.getsockname()[1]) == "no response within 0.05 s"
