"""``pulsarbox.server.security.credential_files``: changed key and user files take effect while a box runs."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pulsarbox.broker.host import Host
from pulsarbox.broker.security.provider import Refused
from pulsarbox.server.security.credential_files import CredentialFiles
from pulsarbox.server.security.watched_file import WatchedFile
from tests.unit.broker.playbook import Box
from tests.unit.broker.security.signing import GUARDED, NOW, by_connection
from tests.unit.broker.security.test_token import issued, row

HASHED = "{SHA}fEqNCco3Yq9h5ZUglD3CZJT4lBs="
"""SHA-1 hash of the password 123456."""


def is_accepted(box: Box, method: str, data: bytes) -> bool:
    assert box.broker.authentication is not None
    try:
        by_connection(box.broker.authentication, method, data, box.now)
    except Refused:
        return False
    return True


def test_users_of_a_changed_file(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    file = tmp_path / "users"
    file.write_text(f"admin:{HASHED}\n")
    box = Box(**(GUARDED | {"basicAuthConf": file.as_uri()}))
    file.write_text(f"another:{HASHED}\n")
    assert is_accepted(box, "basic", b"admin:123456")  # until the next check
    box.advance(60)
    assert is_accepted(box, "basic", b"another:123456") and not is_accepted(box, "basic", b"admin:123456")
    assert f"{file} has changed and is read again" in caplog.text
    caplog.clear()
    for spoil in (lambda: file.write_text("another:no hash\n"), file.unlink):
        spoil()
        box.advance(60)
        assert is_accepted(box, "basic", b"another:123456")
        assert f"{file} has changed and cannot be used, what it held before goes on" in caplog.text
        caplog.clear()
    box.advance(600)
    assert not caplog.records


def test_a_changed_key_set(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "keys.json"
    file.write_text(json.dumps({"keys": [row("RS256", "one")]}))
    of_provider = {"tokenJwksFile": str(file), "tokenJwksIssuers": "https://id", "tokenAudience": "box"}
    box = Box(**(GUARDED | of_provider))
    assert is_accepted(box, "token", issued(exp=NOW + 600))
    file.write_text(json.dumps({"keys": [row("ES256", "two")]}))
    box.advance(60)
    assert not is_accepted(box, "token", issued(exp=NOW + 600)) and is_accepted(
        box, "token", issued("ES256", "two", exp=NOW + 600)
    )
    file.write_text("{")
    box.advance(60)
    assert is_accepted(box, "token", issued("ES256", "two", exp=NOW + 600))
    assert f"what it held before goes on: {file} is not a JSON Web Key Set" in caplog.text


def test_files_are_read_beside_the_loop_one_check_at_a_time(tmp_path: Path) -> None:
    """A check may hang on a network drive. No other check starts meanwhile, and the loop only receives the values."""
    file = tmp_path / "value"
    file.write_text("1")
    files, used = CredentialFiles(), list[str]()
    started: list[tuple[Callable[[], Any], Callable[[Any, Exception | None], None]]] = []
    files.add(WatchedFile(file, file.read_text), used.append)
    box = Box(authenticationRefreshCheckSeconds=30)

    def beside(name: str, work: Callable[[], Any], done: Callable[[Any, Exception | None], None]) -> None:
        started.append((work, done))

    box.broker.host = Host(run_in_thread=beside)
    files.watch(box.broker, box.now)
    file.write_text("22")
    box.advance(29)
    assert not started
    box.advance(100)
    ((work, done),) = started
    found = work()
    assert used == ["1"]
    done(found, None)
    assert used == ["1", "22"]
    box.advance(30)
    assert len(started) == 2


def test_a_check_that_fails_is_logged_and_repeated(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def read() -> str:
        if used:
            raise MemoryError("too large")
        return "1"

    files, used, others = CredentialFiles(), list[str](), list[str]()
    other = tmp_path / "other"
    other.write_text("old")
    files.add(WatchedFile(other, other.read_text), others.append)
    file = WatchedFile(Path(__file__), read)
    files.add(file, used.append)
    file._stamp = None
    other.write_text("newer")
    box = Box(authenticationRefreshCheckSeconds=30)
    files.watch(box.broker, box.now)
    box.advance(30)
    assert "cannot be checked, the previous ones stay in use: too large" in caplog.text
    assert others == ["old", "newer"]  # reread before the failure
    assert set(used) == {"1"} and box.broker.next_timer().monotonic is not None


def test_without_files_there_is_no_timer() -> None:
    box = Box()
    before = box.broker.next_timer()
    CredentialFiles().watch(box.broker, box.now)
    assert box.broker.next_timer() == before
