"""Data directories are private to their owner, new and existing ones, regardless of the umask."""

import logging
import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from pulsarbox.storage.lmdb import permission_narrowing
from pulsarbox.storage.lmdb.engine import LmdbEngine
from pulsarbox.storage.lmdb.permission_narrowing import narrow
from pulsarbox.storage.lmdb.private_files import make_directory, opener


def modes(folder: Path) -> dict[str, int]:
    """The modes of a directory, as ``.``, and of everything in it; for a link, the mode of the link itself."""
    found = {".": stat.S_IMODE(folder.stat().st_mode)}
    return found | {str(path.relative_to(folder)): stat.S_IMODE(path.lstat().st_mode) for path in folder.rglob("*")}


def is_private(folder: Path) -> bool:
    return not any(mode & 0o077 for mode in modes(folder).values())


@pytest.fixture(params=[0o000, 0o002, 0o022, 0o077], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    """Set the umask of the process."""
    before = os.umask(request.param)
    yield
    os.umask(before)


def made(path: Path) -> Path:
    """A data directory as written by a store."""
    engine = LmdbEngine(path, volume_size=1 << 20, reserve_bytes=1 << 16)
    engine.recover()
    engine.check_room()
    engine.close()
    return path


def opened_up(folder: Path) -> None:
    """Apply the modes of a copy made with the usual umask."""
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)


@pytest.mark.usefixtures("umask")
def test_what_a_store_makes_is_its_owners_alone(tmp_path: Path) -> None:
    data = made(tmp_path / "above" / "data")
    found = modes(data)
    assert {"INSTANCE", "LOCK", "meta/data.mdb", "meta/lock.mdb", "volumes/00000001/data.mdb"} <= found.keys()
    for name, mode in found.items():
        assert mode == (0o700 if (data / name).is_dir() else 0o600), name
    assert stat.S_IMODE((tmp_path / "above").stat().st_mode) == 0o700


@pytest.mark.usefixtures("umask")
def test_files_and_directories_of_our_own(tmp_path: Path) -> None:
    make_directory(tmp_path / "a" / "b")
    make_directory(tmp_path / "a" / "b")
    with open(tmp_path / "a" / "file", "w", opener=opener) as file:
        file.write("x")
    assert modes(tmp_path / "a") == {".": 0o700, "b": 0o700, "file": 0o600}
    with pytest.raises(FileExistsError):
        make_directory(tmp_path / "a" / "file")


def test_a_directory_that_others_can_read_is_narrowed_and_the_log_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    data = made(tmp_path / "data")
    for name in ("events", "history"):
        (data / name).mkdir()
        (data / name / "file").write_text("x")
    (data / "pulsarbox.log.1").write_text("x")
    opened_up(data)
    (data / "volumes").chmod(0o2775)
    files = len(modes(data)) - 1
    made(data)
    assert is_private(data)
    assert modes(data)["volumes"] & 0o2700 == 0o2700
    assert f"{data} was open to other users (mode 0755); it is now restricted to its owner (0700)" in caplog.text
    assert f"{files} files and directories in {data} were open to other users" in caplog.text
    assert all(record.levelno == logging.WARNING for record in caplog.records)
    caplog.clear()
    made(data)
    assert not caplog.records


def test_an_empty_directory_is_narrowed_without_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A new container volume: no other user could have read any data."""
    caplog.set_level(logging.INFO)
    (tmp_path / "volume").mkdir()
    (tmp_path / "volume").chmod(0o777)
    (tmp_path / "volume" / "lost+found").mkdir()
    data = made(tmp_path / "volume")
    assert modes(data)["."] == 0o700
    assert [record.levelname for record in caplog.records if "mode 0777" in record.message] == ["INFO"]


def test_a_link_leads_to_the_directory_and_links_inside_lead_nowhere(tmp_path: Path) -> None:
    data = made(tmp_path / "data")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "file").write_text("x")
    opened_up(tmp_path)
    (data / "events").symlink_to(elsewhere)
    (data / "history").mkdir()
    (data / "history" / "file").symlink_to(elsewhere / "file")
    (tmp_path / "link").symlink_to(data)
    made(tmp_path / "link")
    assert modes(data)["."] == 0o700
    assert modes(elsewhere) == {".": 0o755, "file": 0o644}


def test_a_directory_that_holds_other_things_keeps_its_mode_and_they_keep_theirs(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """``--data-dir .`` in a project folder, or in a system directory."""
    data = made(tmp_path / "data")
    (data / "bin").mkdir()
    (data / "bin" / "run").write_text("x")
    opened_up(data)
    made(data)
    found = modes(data)
    assert (found["."], found["bin"], found["bin/run"]) == (0o755, 0o755, 0o644)
    assert all(not mode & 0o077 for name, mode in found.items() if name != "." and not name.startswith("bin"))
    assert "stays open to other users (mode 0755): it holds files not written by a box (bin)" in caplog.text


def test_what_is_not_ours_to_change_is_said_and_keeps_nobody_from_starting(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = made(tmp_path / "data")
    opened_up(data)

    def refuse(path: Path, mode: int) -> None:
        raise PermissionError(1, "Operation not permitted", str(path))

    monkeypatch.setattr(Path, "chmod", refuse)
    made(data)
    assert modes(data)["."] == 0o755
    assert (
        "stays open to other users (mode 0755): Operation not permitted; its owner can run `chmod 700`" in caplog.text
    )
    assert f"files and directories in {data} stay open to other users, such as {data}/" in caplog.text


def test_a_file_system_without_permissions_is_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = made(tmp_path / "data")
    opened_up(data)
    monkeypatch.setattr(Path, "chmod", lambda path, mode: None)
    narrow(data)
    assert [record.message.partition(" is ")[2][:13] for record in caplog.records] == ["on a file sys"]


def test_a_start_does_not_wait_for_many_files(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The directory itself is restricted at once, which already blocks access to the remaining files."""
    data = made(tmp_path / "data")
    (data / "events").mkdir()
    for number in range(500):
        (data / "events" / f"{number}.ndjson").touch()
    opened_up(data)
    begun: list[threading.Thread] = []
    left: list[int] = []

    class Thread(threading.Thread):
        def start(self) -> None:
            begun.append(self)
            left.append(sum(bool(mode & 0o077) for mode in modes(data).values()))
            super().start()

    monkeypatch.setattr(permission_narrowing, "NARROW_SECONDS", 0.0)
    monkeypatch.setattr(threading, "Thread", Thread)
    narrow(data)
    (thread,) = begun
    assert left[0] > 500
    assert modes(data)["."] == 0o700
    thread.join()
    assert is_private(data)
    assert "files and directories in" in caplog.text
