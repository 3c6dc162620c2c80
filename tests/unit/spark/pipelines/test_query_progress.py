"""Status of queries, derived from Spark's progress."""

import errno
import io
import json
import sys
from typing import Any

import pytest

from pulsarbox.pipelines import Function
from pulsarbox.spark.pipelines.query_progress import RUNNING, Watched, lag_of, watermark_of
from pulsarbox.spark.pipelines.runner_output import RunnerOutput


def step(name: str = "clean") -> Function:
    return Function(process=lambda value, ctx: value, inputs="raw", output="clean", dead_letter="DLQ", name=name)


def offset(**counts: int) -> str:
    return json.dumps({"v": 1, "p": dict.fromkeys(counts, "1:2"), "n": {k: v for k, v in counts.items() if v >= 0}})


def progress(batch: int, rows: int, dead: int = 0, **more: Any) -> dict[str, Any]:
    return {
        "batchId": batch,
        "numInputRows": rows,
        "durationMs": {"addBatch": 5, "triggerExecution": 9},
        "observedMetrics": {"pulsarbox": {"dead": dead}},
        "sources": [{"endOffset": offset(a=3), "latestOffset": offset(a=10)}],
    } | more


def test_micro_batches_add_up() -> None:
    watched = Watched(step(), state=RUNNING)
    assert watched.line(0) == "clean: running"
    watched.rate(0)
    watched.progressed(progress(0, 1500, dead=1))
    watched.progressed(progress(1, 500))
    watched.progressed(progress(2, 0, durationMs={"triggerExecution": 1}, sources=[]))  # an idle trigger
    assert watched.line(4) == "clean: running, batch 1, 2,000 rows, 500/s, lag 0, 1 dead letter"
    assert watched.row(4) == {
        "query": "clean",
        "state": "running",
        "inputs": ["persistent://public/default/raw"],
        "output": "persistent://public/default/clean",
        "lag": 0,
        "rows": 2000,
        "rowsPerSecond": 500.0,
        "batch": 1,
        "lastBatchMs": 9,
        "stages": {"addBatch": 5},
        "watermark": None,
        "stateRows": None,
        "stateBytes": None,
        "deadLetters": 1,
        "lastError": None,
    }
    assert watched.rate(30) < 100  # old progress does not count


def test_watermark_and_state_are_those_of_the_last_progress() -> None:
    watched = Watched(step(), state=RUNNING)
    operators = [{"numRowsTotal": 3, "memoryUsedBytes": 100}, {"numRowsTotal": 4, "memoryUsedBytes": 50}]
    at = {"watermark": "2026-11-21T10:00:00.500Z"}
    watched.progressed(progress(0, 1, eventTime=at, stateOperators=operators))
    row = watched.row(0)
    assert (row["watermark"], row["stateRows"], row["stateBytes"]) == (1795255200500, 7, 150)
    assert watermark_of({"eventTime": {"watermark": "1970-01-01T00:00:00.000Z"}}) is None, "before the first event"


def test_the_lag_is_what_was_not_read_yet() -> None:
    assert lag_of({"sources": [{"endOffset": offset(a=3, b=4), "latestOffset": offset(a=10, b=4)}]}) == 7
    two = {"endOffset": offset(a=1), "latestOffset": offset(a=2)}
    assert lag_of({"sources": [two, two]}) == 2
    assert lag_of({"sources": [{"endOffset": offset(a=-1), "latestOffset": offset(a=10)}]}) is None
    assert lag_of({"sources": [{"endOffset": None, "latestOffset": offset(a=10)}]}) is None
    assert lag_of({"sources": [{"endOffset": "no json", "latestOffset": offset(a=10)}]}) is None


def test_a_terminal_that_was_closed_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    class Closed(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError(errno.EIO, "Input/output error")

        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stderr", Closed())
    telling = RunnerOutput([Watched(step("one"))])
    telling.show()
    telling.print_line("something")
    telling.end()


def test_where_there_is_no_terminal_a_line_tells_what_has_changed() -> None:
    said: list[str] = []
    one, two = Watched(step("one")), Watched(step("two"))
    telling = RunnerOutput([one, two], said.append)
    telling.show()
    assert said == ["one: starting", "two: starting"]
    telling.print_line("something else")
    telling.show()  # too soon
    telling.end()
    assert said[2:] == ["something else", "one: starting", "two: starting"]
