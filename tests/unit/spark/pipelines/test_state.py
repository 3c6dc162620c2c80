"""The state directory: locks, recorded queries, and reset."""

import errno
import fcntl
import os
import shutil
import threading
from pathlib import Path

import pytest

from pulsarbox.spark.pipelines import state
from pulsarbox.spark.pipelines.declaration import PipelineError
from pulsarbox.spark.pipelines.state import LockedError, QueryState, known, reset


def test_a_query_is_run_by_one_at_a_time(tmp_path: Path) -> None:
    held = QueryState(tmp_path, "shop", "totals")
    with pytest.raises(LockedError, match=rf"shop/totals is already running in .* \(process {os.getpid()}\)"):
        QueryState(tmp_path, "shop", "totals")
    QueryState(tmp_path, "shop", "other").release()
    held.release()
    QueryState(tmp_path, "shop", "totals").release()


def test_who_lists_them_keeps_nobody_from_running_one(tmp_path: Path) -> None:
    """Listing shares the lock for a moment to check whether the query runs."""
    QueryState(tmp_path, "shop", "totals").release()
    with (tmp_path / "shop" / "totals" / "lock").open("r") as looking:
        fcntl.flock(looking, fcntl.LOCK_SH)
        gone = threading.Timer(0.05, fcntl.flock, (looking, fcntl.LOCK_UN))
        gone.start()
        QueryState(tmp_path, "shop", "totals").release()
        gone.join()


def test_a_lock_that_was_reset_while_it_was_asked_for_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lock is removed with its directory. A new process would create another lock, and both queries would run."""
    take = state._taken

    def late(file: int) -> bool:
        monkeypatch.setattr(state, "_taken", take)
        reset(tmp_path, "shop", "totals")
        return take(file)

    QueryState(tmp_path, "shop", "totals").release()
    monkeypatch.setattr(state, "_taken", late)
    held = QueryState(tmp_path, "shop", "totals")
    with pytest.raises(LockedError):
        QueryState(tmp_path, "shop", "totals")
    held.release()


def test_what_is_known_of_it_adds_up(tmp_path: Path) -> None:
    held = QueryState(tmp_path, "shop", "totals")
    assert (held.about(), held.is_new) == ({}, True)
    held.note(a=1, b=2)
    held.note(b=3)
    held.checkpoint.mkdir()
    (held.checkpoint / "metadata").touch()
    assert (held.about(), held.is_new) == ({"a": 1, "b": 3}, False)
    (found,) = known(tmp_path)
    assert (found.pipeline, found.query, found.about, found.pid) == ("shop", "totals", {"a": 1, "b": 3}, os.getpid())
    held.release()
    (found,) = known(tmp_path, "shop")
    assert found.pid is None
    assert list(known(tmp_path, "other")) == []
    (held.place / "about.json").write_text("{")
    assert held.about() == {}


def test_reset_takes_all_of_a_query_and_nothing_of_others(tmp_path: Path) -> None:
    held = QueryState(tmp_path, "shop", "totals")
    held.checkpoint.mkdir()
    other = QueryState(tmp_path, "shop", "other")
    other.release()
    with pytest.raises(LockedError):
        reset(tmp_path, "shop", "totals")
    held.release()
    reset(tmp_path, "shop", "totals")
    assert [each.query for each in known(tmp_path)] == ["other"]
    reset(tmp_path, "shop", "other")
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(PipelineError, match=r"cannot be used: .*--state"):
        QueryState(tmp_path / "file", "shop", "totals")


def test_a_disk_that_is_full_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    held = QueryState(tmp_path, "shop", "totals")
    monkeypatch.setattr(state, "put", full)
    with pytest.raises(PipelineError, match=r"totals cannot be used: No space left on device; .*--state"):
        held.note(state="running")
    held.release()


def test_who_is_killed_while_it_is_reset_leaves_nothing_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A partial reset cannot leave a query ID without its progress.

    Such a query would restart as the same sink, and the box would discard its messages as already published.
    """

    def killed(place: Path, *_: object, **__: object) -> None:
        (place / "checkpoint" / "offsets" / "0").unlink()
        raise KeyboardInterrupt

    held = QueryState(tmp_path, "shop", "totals")
    (held.checkpoint / "offsets").mkdir(parents=True)
    (held.checkpoint / "offsets" / "0").touch()
    (held.checkpoint / "metadata").touch()
    held.release()
    with monkeypatch.context() as patched:
        patched.setattr(shutil, "rmtree", killed)
        with pytest.raises(KeyboardInterrupt):
            reset(tmp_path, "shop", "totals")
    assert list(known(tmp_path)) == []
    held = QueryState(tmp_path, "shop", "totals")
    assert held.is_new
    held.release()
    reset(tmp_path, "shop", "totals")
    assert list(tmp_path.iterdir()) == []
