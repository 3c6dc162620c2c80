"""Publishing of any frame's rows by a job: staged first, then published part by part, each once, in order."""

import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pulsarbox.spark.pipelines.shipped.publish_job import NUMBER, PART_ROWS, PARTITION_BITS, PublishJob, spans
from pulsarbox.spark.spark_naming import quoted, unglobbed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TOPIC_COLUMN: Final = "__topic"
TOPICS_LOOKED_AT: Final = 100
"""Number of topics to check for retention, for rows that name their topics."""


@dataclass(frozen=True)
class Publishing:
    """Parameters of publishing."""

    box: Mapping[str, str]
    """The broker, as options of the format."""
    namespace: str
    """``tenant/namespace`` in which the box tracks the parts. Must not change."""
    sink: Mapping[str, str] = field(default_factory=dict)
    """Options of the write."""
    rate: float = 0.0
    """Messages per second; 0: unlimited."""
    told: Callable[[int, int], None] = lambda _done, _all: None
    """Called after each part with the number of published rows and of all rows."""
    wait: Callable[[float], None] = time.sleep
    warn: Callable[[str], None] = lambda _text: None
    """Called before publishing, with a warning for each topic that would not retain its rows."""

    @property
    def size(self) -> int:
        """Maximum number of rows per part."""
        return PART_ROWS if not self.rate else max(1, min(PART_ROWS, int(self.rate)))


def put_aside(job: PublishJob, make: "Callable[[], DataFrame]", size: int) -> None:
    """Stage the rows of a frame, in order, unless an earlier run of the job did."""
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


def publish(spark: "SparkSession", job: PublishJob, columns: list[str], how: Publishing) -> None:
    """Publish the remaining rows of a job, with the given ``columns``."""
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
    """Return the topics to check for retention."""
    if "topic" in sink:
        return [sink["topic"]]
    if TOPIC_COLUMN not in rows.columns:
        return []
    found = rows.select(TOPIC_COLUMN).where(rows[TOPIC_COLUMN] != "").distinct().limit(TOPICS_LOOKED_AT).collect()
    return sorted(row[TOPIC_COLUMN] for row in found)


def _warn_of_loss(how: Publishing, topics: list[str]) -> None:
    """Warn of topics that would not retain their rows, as a command does not show the sink's own warnings on stderr."""
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
    """Delete staged rows."""
    shutil.rmtree(directory, ignore_errors=True)
