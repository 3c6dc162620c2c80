"""Spark writes to topics without retention: a warning on the driver, or a subscription created first.

No JVM: the tests make Spark's calls.
"""

import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import from_arrow_schema

from pulsarbox.spark.sink.data_sink import sinking_of
from pulsarbox.spark.sink.epoch_client import Sink
from pulsarbox.spark.sink.write_job import Attempt
from tests.e2e.clients import admin_path
from tests.e2e.conftest import Running

NOTHING = {"retentionTimeInMinutes": 0, "retentionSizeInMB": 0}


def write(box: Running, rows: pa.RecordBatch, **options: Any) -> None:
    """Write one task's rows, and commit."""
    urls = {"service.url": box.url, "admin.url": box.web_url}
    found = sinking_of({**urls, **options}, from_arrow_schema(rows.schema), overwrite=False, is_stream=False)
    sink = found.sink_of_batch()
    assert isinstance(sink, Sink)
    assert found.commit([found.write(Attempt(sink, found.batch_epoch, 0), iter([rows]))])


def backlogs(box: Running, topic: str) -> dict[str, int]:
    stats = json.loads(box.admin("GET", f"{admin_path(topic)}/stats"))
    return {name: each["backlogMessages"] for name, each in stats["subscriptions"].items()}


@pytest.fixture
def lossy(box: Running, space: str) -> Callable[[str], str]:
    """Return topic names in a namespace that retains messages only for subscriptions."""
    if not box.is_ours:
        pytest.skip("of a box")
    box.admin("POST", f"namespaces/{space}/retention", json.dumps(NOTHING))
    return lambda name: f"persistent://{space}/{name}"


def rows(*topics: str) -> pa.RecordBatch:
    columns = {"value": ["a", "b"]}
    return pa.RecordBatch.from_pydict(columns | ({"__topic": list(topics)} if topics else {}))


@pytest.mark.parametrize("delivery", ["exactly-once", "at-least-once"])
def test_a_subscription_is_made_before_the_first_row(
    box: Running, lossy: Callable[[str], str], capfd: pytest.CaptureFixture[str], delivery: str
) -> None:
    for _ in range(2):
        write(box, rows(), topic=lossy("kept"), keep="archive", delivery=delivery)
    assert backlogs(box, lossy("kept")) == {"archive": 4}
    write(box, rows(lossy("one"), lossy("two")), keep="archive", delivery=delivery)
    assert [backlogs(box, lossy(name)) for name in ("one", "two")] == [{"archive": 1}] * 2
    assert "warning" not in capfd.readouterr().err


def test_without_one_it_is_warned_of_once(
    box: Running, lossy: Callable[[str], str], fresh: Callable[[str], str], capfd: pytest.CaptureFixture[str]
) -> None:
    write(box, rows(), topic=fresh("kept"))
    assert "warning" not in capfd.readouterr().err, "by the box's own rule it is"
    for _ in range(2):
        write(box, rows(), topic=lossy("lost"))
    told = capfd.readouterr().err
    assert told.count("warning") == 1
    assert f"topic {lossy('lost')} has no subscription and no retention" in told
    assert "option keep" in told
