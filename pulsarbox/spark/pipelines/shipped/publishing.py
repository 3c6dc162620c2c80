"""Rows of any frame into topics by a job: put aside first, then published part by part, each once, in their order."""

import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pulsarbox.spark.pipelines.shipped.publish_job import NUMBER, PART_ROWS, PARTITION_BITS, Job, spans
from pulsarbox.spark.spark_naming import quoted, unglobbed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TOPIC_COLUMN: Final = "__topic"
TOPICS_LOOKED_AT: Final = 100
"""Of rows that name their topics, so many topics are asked about before they are published."""


@dataclass(frozen=True)
class Publishing:
    """How a job publishes."""

    box: Mapping[str, str]
    """The broker, as options of the format."""
    namespace: str
    """``tenant/namespace``: where the box keeps the names of its parts. It has to stay the same."""
    sink: Mapping[str, str] = field(default_factory=dict)
    """Options of the write."""
    rate: float = 0.0
    """Messages a second; 0: as fast as it goes."""
    told: Callable[[int, int], None] = lambda _done, _all: None
    """Called with the rows that are published, and all, after each part."""
    wait: Callable[[float], None] = time.sleep
    warn: Callable[[str], None] = lambda _text: None
    """Called with a text for each topic that would not keep its rows, before the first is published."""

    @property
    def size(self) -> int:
        """Rows of a part at most."""
        return PART_ROWS if not self.rate else max(1, min(PART_ROWS, int(self.rate)))


def put_aside(job: Job, make: "Callable[[], DataFrame]", size: int) -> None:
    """Write the rows of a frame, in their order, unless the job has done so before it was killed."""
    from pyspark.sql import functions as sql

    if job.progress.spans is not None:
        return
    frame = make().withColumn(NUMBER, sql.monotonically_increasing_id())
    frame.write.mode("overwrite").parquet(str(job.rows_at))
    spark = frame.sparkSession
    numbers = spark.read.parquet(unglobbed(job.rows_at)).select(
        sql.shiftright(NUMBER, PARTITION_BITS).alias("partition")
    )
    counts = numbers.groupBy("partition").count().collect()
    job.progress.spans = spans([(row["partition"], row["count"]) for row in counts], size)
    job.save()


def publish(spark: "SparkSession", job: Job, columns: list[str], how: Publishing) -> None:
    """Publish what is left of a job: ``columns`` of its rows."""
    if not job.progress.rows:
        return
    rows = spark.read.parquet(unglobbed(job.rows_at))
    options = {**how.box, **how.sink, "sinkNamespace": how.namespace}
    if "keep" not in how.sink:
        _warn_of_loss(how, _topics(rows, how.sink))
    for number, span in job.parts():
        begin = time.monotonic()
        part = rows.where((rows[NUMBER] >= span.first) & (rows[NUMBER] < span.end))
        ordered = part.coalesce(1).sortWithinPartitions(NUMBER).select(*map(quoted, columns))
        ordered.write.format("pulsarbox").mode("append").options(**options, **job.part(number)).save()
        how.told(job.progress.rows_published + span.rows, job.progress.rows)
        if how.rate:
            how.wait(max(0.0, span.rows / how.rate - (time.monotonic() - begin)))


def _topics(rows: "DataFrame", sink: Mapping[str, str]) -> list[str]:
    """The topics that rows go to, as far as they are asked about."""
    if "topic" in sink:
        return [sink["topic"]]
    if TOPIC_COLUMN not in rows.columns:
        return []
    found = rows.select(TOPIC_COLUMN).where(rows[TOPIC_COLUMN] != "").distinct().limit(TOPICS_LOOKED_AT).collect()
    return sorted(row[TOPIC_COLUMN] for row in found)


def _warn_of_loss(how: Publishing, topics: list[str]) -> None:
    """Warn of topics that would not keep their rows: what the sink itself writes to stderr, a command does not show."""
    from pulsarbox.client.keeping import ANSWER_SECONDS, is_kept, loss_warning
    from pulsarbox.names import parse_topic
    from pulsarbox.spark.connect.connections import admin_of
    from pulsarbox.spark.connect.target import reach
    from pulsarbox.spark.options import WRITE, parse

    with admin_of(reach(parse(dict(how.box), WRITE)), ANSWER_SECONDS) as admin:
        for topic in topics:
            if is_kept(admin, parse_topic(topic)) is False:
                how.warn(f"warning: {loss_warning(topic, '--keep NAME')}")


def remove(directory: Path) -> None:
    """Rows that were put aside."""
    shutil.rmtree(directory, ignore_errors=True)
