"""Files of an environment: what LMDB maps is allocated, so a full disk is an error and does not end the process."""

import errno
import os
from pathlib import Path

import pytest

from pulsarbox.errors import StoreFull
from pulsarbox.storage.lmdb.environment import create_environment, failure, make_environment, open_environment


def allocated(file: Path) -> int:
    return file.stat().st_blocks * 512


def test_the_slots_of_readers_are_allocated(tmp_path: Path) -> None:
    create_environment(tmp_path / "env", (b"log",))
    lock = tmp_path / "env/lock.mdb"
    assert allocated(lock) >= 8192
    lock.unlink()
    open_environment(tmp_path / "env", 1 << 20).close()
    assert allocated(lock) >= 8192


def test_a_full_disk_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(OSError, match="No space left") as caught:
        make_environment(tmp_path / "env", (b"log",))
    assert isinstance(failure("a volume cannot be created", caught.value, tmp_path), StoreFull)


def test_an_environment_is_not_created_in_a_directory_that_was_removed(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        make_environment(tmp_path / "volumes" / "env", (b"log",))
    assert not (tmp_path / "volumes").exists()
