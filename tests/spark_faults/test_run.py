"""A short campaign: some points, and one driver restart. The long one is `make spark-faults`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pulsar
import pyspark
import pytest

from tests.powercut.record import RecorderError
from tests.spark_faults import image_reads, lakehouse, moving, pipelines
from tests.spark_faults.run import SHORT, Keeper, counted, points
from tests.tools import build_jar
from tests.tools.java import need_java


@pytest.fixture
def java() -> None:
    need_java()


@pytest.fixture
def keeper(tmp_path: Path) -> Iterator[Keeper]:
    with Keeper(tmp_path) as keeper:
        yield keeper


@pytest.mark.timeout(900)
@pytest.mark.campaign
@pytest.mark.parametrize("name", ["points", "rollup"])
def test_rows_are_there_once_whoever_is_killed(java: None, name: str, tmp_path: Path, keeper: Keeper) -> None:
    struck = SHORT if name == "points" else pipelines.SHORT
    if name == "points":
        outcome = points(tmp_path, keeper, struck)
    else:
        outcome = pipelines.rollup(tmp_path, keeper, struck, files=False)
    assert outcome.is_good, outcome.count
    assert [point.rpartition(" (")[0] for point in outcome.points] == list(struck)
    assert outcome.drivers > 1
    assert keeper.kills == sum(point.startswith("box ") for point in struck)


@pytest.mark.timeout(900)
@pytest.mark.campaign
def test_an_iceberg_table_has_every_row_once_whoever_is_killed(java: None, tmp_path: Path, keeper: Keeper) -> None:
    outcome = lakehouse.table(tmp_path, keeper, lakehouse.SHORT)
    assert outcome.is_good, outcome.count
    assert [point.rpartition(" (")[0] for point in outcome.points] == list(lakehouse.SHORT) and outcome.drivers > 2


@pytest.mark.timeout(900)
@pytest.mark.campaign
def test_a_delta_table_has_every_row_once_whoever_is_killed(java: None, tmp_path: Path, keeper: Keeper) -> None:
    if not pyspark.__version__.startswith(lakehouse.DELTA_SPARK):
        pytest.skip("Delta has no jar for this version of Spark: `make delta-faults` runs the campaign with Spark 4.2")
    points = lakehouse.DELTA_POINTS[:3]
    outcome = lakehouse.delta_table(tmp_path, keeper, points)
    assert outcome.is_good, outcome.count
    assert [point.rpartition(" (")[0] for point in outcome.points] == list(points) and outcome.drivers > 2


@pytest.mark.timeout(900)
@pytest.mark.campaign
def test_every_row_is_published_once_whoever_is_killed(java: None, tmp_path: Path, keeper: Keeper) -> None:
    struck = ("box commit-during", "jvm commit-after")
    outcome = moving.backfill(tmp_path, keeper, struck, moving.PUT_ASIDE[1:])
    assert outcome.is_good, outcome.count
    assert {point.rpartition(" (")[0] for point in outcome.points} >= set(struck) and keeper.kills == 1


@pytest.mark.timeout(900)
@pytest.mark.campaign
def test_every_message_is_in_the_files_once_whoever_is_killed(java: None, tmp_path: Path, keeper: Keeper) -> None:
    exported = moving.export(tmp_path, keeper, moving.EXPORT[:1])
    assert exported.is_good and exported.drivers == 2, exported.count
    offloaded = moving.offload(tmp_path, keeper)
    assert offloaded.is_good and keeper.kills == 1, offloaded.count


def test_numbers_that_are_doubled_and_missing_are_counted() -> None:
    count = moving.count_of(4, ["0", "2", "2", "x"])
    assert (count.missing, count.doubled, count.strange) == ([1, 3], [2], ["x"])


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


GOOD = [(0, False, 9), (0, True, 1), (1000, False, 10)]


@pytest.mark.parametrize(
    ("told", "kept", "doubled", "missing", "strange"),
    [
        (GOOD, GOOD[::-1], [], [], []),
        ([*GOOD, GOOD[2]], [*GOOD, GOOD[2]], [1000], [], ["window 1000 goes out 2 times"]),
        ([*GOOD, GOOD[1]], [*GOOD, GOOD[1]], [0], [], []),
        ([*GOOD, (2000, False, 1)], [*GOOD, (2000, False, 1)], [2000], [], []),
        (GOOD[1:], GOOD[1:], [], [0], []),
        ([(0, False, 9), (0, False, 1), GOOD[2]],) * 2 + ([], [], ["window 0 goes out 2 times"]),
        (GOOD, GOOD[1:], [], [], ["in one of topic and Parquet alone: (0, False, 9)"]),
        (GOOD, [*GOOD, GOOD[1]], [], [], ["in one of topic and Parquet alone: (0, True, 1)"]),
        ([], [], [], [0, 1000], []),
    ],
)
def test_of_a_rollup_what_is_doubled_missing_and_strange_is_counted(
    told: Any, kept: Any, doubled: Any, missing: Any, strange: Any
) -> None:
    count = pipelines.count_of_rollup({0: 10, 1000: 10}, told, kept)
    assert (count.doubled, count.missing, count.strange) == (doubled, missing, strange)


@pytest.mark.timeout(900)
@pytest.mark.campaign
def test_images_of_power_cuts_have_no_wrong_rows(java: None, tmp_path: Path) -> None:
    if build_jar.compiler() is None:
        pytest.skip("javac is missing")
    try:
        counts, wrong = image_reads.campaign(tmp_path, 4, seed=1)
    except RecorderError as error:
        pytest.skip(str(error))
    assert wrong == []
    assert counts["images"] == 4 and counts["rows"] > 0 and counts["gone"] > 0 and counts["reported"] > 0
    assert counts["packed"] > 0 and counts["cut in packing"] > 0
