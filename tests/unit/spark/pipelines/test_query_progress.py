"""Status of queries, derived from Spark's progress."""

import errno
import io
import json
import sys
from typing import Any

import pytest

from pulsarbox.pipelines import Function
from pulsarbox.spark.pipelines.query_progress import RUNNING, Watched, lag_of
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
        "rowsPerSecond": 500.0,
        "batch": 1,
        "lastBatchMs": 9,
        "deadLetters": 1,
        "lastError": None,
    }
    assert watched.rate(30) < 100  # old progress does not count


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
