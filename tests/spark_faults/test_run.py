"""A short run of the campaign: some points, and one restart of the driver. `make spark-faults` is the long one."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pulsar
import pytest

from tests.spark_faults import pipelines
from tests.spark_faults.run import SHORT, Keeper, counted, points
from tests.tools.java import need_java


@pytest.fixture
def java() -> None:
    need_java()


@pytest.fixture
def keeper(tmp_path: Path) -> Iterator[Keeper]:
    with Keeper(tmp_path) as keeper:
        yield keeper


TURNS = ("points", "rollup", "dlq-triage")
TURN = os.environ.get("SPARK_FAULTS_TURN") or TURNS[datetime.now(UTC).toordinal() % len(TURNS)]
"""They take turns by days, so that a run of all tests takes a minute and not three; ``all`` runs them all."""


def taking_turns() -> list[Any]:
    reason = f"it is the turn of {TURN}: SPARK_FAULTS_TURN=all"
    return [pytest.param(each, marks=pytest.mark.skipif(TURN not in (each, "all"), reason=reason)) for each in TURNS]


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", taking_turns())
def test_rows_are_there_once_whoever_is_killed(java: None, name: str, tmp_path: Path, keeper: Keeper) -> None:
    struck = SHORT if name == "points" else pipelines.SHORT
    if name == "points":
        outcome = points(tmp_path, keeper, struck)
    else:
        run = pipelines.rollup if name == "rollup" else pipelines.triage
        outcome = run(tmp_path, keeper, struck, files=False)
    assert outcome.is_good, outcome.count
    assert [point.rpartition(" (")[0] for point in outcome.points] == list(struck)
    assert outcome.drivers > 1
    assert keeper.kills == sum(point.startswith("box ") for point in struck)


def test_who_counts_sees_what_is_doubled_missing_and_strange(keeper: Keeper) -> None:
    topic = "persistent://public/default/count"
    client = pulsar.Client(keeper.box.url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    for name, rows in (("a", ("1", "2", "2", "5")), ("b", ("0", "x"))):
        producer = client.create_producer(f"{topic}-{name}")
        for row in rows:
            producer.send(row.encode())
    client.close()
    count = counted(keeper.box.url, topic, 6)
    assert (count.doubled, count.missing) == ([2], [3, 4, 5])
    assert count.strange == [f"5 in {topic}-a", f"x in {topic}-b"]
