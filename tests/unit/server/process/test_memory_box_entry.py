"""Registration of in-memory boxes, and the users allowed to create an entry."""

import os
import tempfile
from pathlib import Path

import pytest

from pulsarbox.server.process.memory_box_entry import MemoryEntry, entries, pid_of, places
from pulsarbox.storage.lmdb.directory import holder


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))
    return tmp_path


def test_it_is_there_while_it_is_held() -> None:
    entry = MemoryEntry()
    assert entries() == [entry.path]
    assert holder(entry.path) == (True, os.getpid())
    assert pid_of(entry.path) == os.getpid()
    entry.close()
    assert entries() == []
    assert not entry.path.exists()


def test_the_users_runtime_directory_is_taken_where_there_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "none"))
    assert places() == [tmp_path / f"pulsarbox-{os.getuid()}"]
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    entry = MemoryEntry()
    assert entry.path.parent == tmp_path / "pulsarbox"
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    assert entries() == []  # a shell without the variable
    entry.close()


def test_what_a_killed_one_left_is_removed() -> None:
    entry = MemoryEntry()
    os.close(entry._lock)  # as the kernel does when a process is killed
    (entry.path / "RUNNING").write_text("{}")
    assert entries() == []
    assert not entry.path.exists()


@pytest.mark.parametrize("mode", [0o777, 0o770])
def test_a_place_that_others_may_write_to_is_none(temporary: Path, mode: int) -> None:
    place = temporary / f"pulsarbox-{os.getuid()}"
    place.mkdir()
    place.chmod(mode)
    (place / "memory-1").mkdir()
    with pytest.raises(PermissionError, match="another user"):
        MemoryEntry()
    assert entries() == []
    assert (place / "memory-1").exists()


def test_a_link_is_no_place(temporary: Path) -> None:
    (temporary / "elsewhere").mkdir()
    (temporary / f"pulsarbox-{os.getuid()}").symlink_to(temporary / "elsewhere")
    with pytest.raises(OSError, match="another user"):
        MemoryEntry()
