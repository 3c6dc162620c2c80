"""A short run of the campaign: some points, and one restart of the driver. `make spark-faults` is the long one."""

from collections.abc import Iterator
from pathlib import Path

import pulsar
import pytest

from tests.spark_faults.run import SHORT, Keeper, counted, points
from tests.tools.java import need_java


@pytest.fixture
def java() -> None:
    need_java()


@pytest.fixture
def keeper(tmp_path: Path) -> Iterator[Keeper]:
    with Keeper(tmp_path) as keeper:
        yield keeper


@pytest.mark.timeout(900)
def test_rows_are_there_once_whoever_is_killed(java: None, tmp_path: Path, keeper: Keeper) -> None:
    outcome = points(tmp_path, keeper, SHORT)
    assert outcome.is_good, outcome.count
    assert [point.rpartition(" (")[0] for point in outcome.points] == list(SHORT)
    assert outcome.drivers > 1
    assert keeper.kills == sum(point.startswith("box ") for point in SHORT)


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
