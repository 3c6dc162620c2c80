"""Spark's log file is bounded, transparently for its writer."""

import threading
from pathlib import Path

import pytest

from pulsarbox.spark.pipelines import spark_log as logs
from pulsarbox.spark.pipelines.spark_log import before, begin, bound, bound_periodically, forget


def test_a_log_that_is_too_long_begins_anew_and_its_end_is_kept(tmp_path: Path) -> None:
    log = tmp_path / "shop" / "spark.log"
    with begin(log) as stream:
        stream.write(b"0123456789")
        stream.flush()
        assert not bound(log, 10)
        stream.write(b"abc")
        stream.flush()
        assert bound(log, 10)
        stream.write(b"more")  # at the new start of the file, not after the removed part
    assert (before(log).read_bytes(), log.read_bytes()) == (b"3456789abc", b"more")
    assert {each.name for each in log.parent.iterdir()} == {"spark.log", "spark.log.1"}


def test_the_log_of_the_run_before_is_kept(tmp_path: Path) -> None:
    log = tmp_path / "spark.log"
    for text in (b"first", b"second", b"third"):
        with begin(log) as stream:
            stream.write(text)
    assert (before(log).read_bytes(), log.read_bytes()) == (b"second", b"third")
    forget(log)
    forget(log)
    assert list(tmp_path.iterdir()) == []


def test_it_is_looked_at_as_long_as_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "_EVERY_SECONDS", 0.001)
    log, looks, over = tmp_path / "spark.log", 0, threading.Event()

    def is_written() -> bool:
        nonlocal looks
        looks += 1
        if looks == 3:
            log.unlink()  # after external deletion, the log continues
        if looks == 5:
            log.write_bytes(b"x" * 50)
        if looks == 9:
            over.set()
        return looks < 9

    begin(log).close()
    bound_periodically(log, is_written, 10)
    assert over.wait(60)
    assert (log.stat().st_size, before(log).read_bytes()) == (0, b"x" * 10)
