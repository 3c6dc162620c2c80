"""Rollup: aggregates topics by windows of event time, into a topic exactly once, and from there into Parquet.

All tasks count, and add up by topic (``transformWithState``): Spark's own windows would drop late messages without
counting them. The exactly-once sink writes the topic. The second query reads that topic, and Spark's file sink records
the files of each micro-batch, so both agree.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pulsarbox.errors import PulsarBoxError
from pulsarbox.names import parse_topic
from pulsarbox.spark.durable_files import put
from pulsarbox.spark.pipelines.declaration import Frame, PipelineError, Topics
from pulsarbox.spark.pipelines.definition import Pipeline
from pulsarbox.spark.pipelines.shipped.rollup_windows import ROW, Rolling
from pulsarbox.storage.lmdb.private_files import make_directory

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyspark.sql import DataFrame

ROLLUP: Final = "rollup"
HISTORY: Final = "rollup-parquet"
"""Names of the queries."""
BEGUN: Final = "windows.json"
"""File in the query's directory with the length and slide of the windows, in milliseconds."""
_CLOCK: Final = "clock"
_STEP_MS: Final = 1000
_STEP_MS_MAX: Final = 3_600_000
COLUMNS: Final = ("value", "__key", "__topic", "__publishTime", "__eventTime")
"""Columns of the messages to count."""


@dataclass(frozen=True)
class Rollup:
    """Parameters of a rollup."""

    inputs: Topics
    """Input topics, as in a Frame."""
    output: str
    """The output topic."""
    how: Rolling
    state: Path
    """Directory of the pipeline, with checkpoints."""
    parquet: str = ""
    """Output directory; empty for none."""
    trigger: str = "1 second"
    options: Mapping[str, str] = field(default_factory=dict)
    """Options of the source: starting position and limits."""


def pipeline(asked: Rollup, name: str = ROLLUP) -> Pipeline:
    """Return the pipeline. Raises PulsarBoxError for invalid parameters."""
    try:
        asked.how.check()
    except ValueError as error:
        raise PulsarBoxError(str(error)) from None
    _check_same(asked.how, place_of(asked))
    steps = [writing(asked)]
    if asked.parquet:
        steps.append(keeping(asked))
    made = Pipeline(name, steps)
    made.check()
    return made


def writing(asked: Rollup) -> Frame:
    """Return the query that writes the topic."""
    source = {"columns": ",".join(COLUMNS), "valueFormat": "bytes"}
    return Frame(
        build=partial(rolled, how=asked.how, directory=str(place_of(asked))),
        inputs=asked.inputs,
        output=asked.output,
        options=source | dict(asked.options),
        sink={"valueFormat": "json"},
        trigger=asked.trigger,
        name=ROLLUP,
    )


def keeping(asked: Rollup) -> Frame:
    """Return the query that copies the topic to Parquet."""
    return Frame(
        build=parse_rows,
        inputs=str(parse_topic(asked.output)),
        output=f"parquet:{asked.parquet}",
        options={"columns": "value", "valueFormat": "bytes"},
        trigger=asked.trigger,
        name=HISTORY,
    )


def place_of(asked: Rollup) -> Path:
    """Return the directory of the query."""
    return asked.state / ROLLUP


def begin(how: Rolling, directory: Path) -> None:
    """Record the length and slide of the windows. Raises PipelineError if the open windows differ."""
    _check_same(how, directory)
    make_directory(directory)
    put(directory / BEGUN, json.dumps([how.length, how.slide]))


def _check_same(how: Rolling, directory: Path) -> None:
    try:
        length, slide = json.loads((directory / BEGUN).read_bytes())
    except FileNotFoundError:
        return
    if (length, slide) != (how.length, how.slide):
        place = directory.parent
        raise PipelineError(
            f"the rollup in {place} was started with --window {length / 1000:g}s --slide {slide / 1000:g}s: use the "
            f"same values, give this one another --name, or start anew after `pulsarbox pipeline reset {place.name}`"
        )


def rolled(df: "DataFrame", *, how: Rolling, directory: str) -> "DataFrame":
    """Aggregate messages into rows of a rollup: see ``rollup_windows.ROW``. Raises PipelineError: see ``begin``."""
    begin(how, Path(directory))
    from pyspark.sql import functions as sql

    from pulsarbox.spark.arrow_functions import map_in_arrow, without_pandas
    from pulsarbox.spark.pipelines.shipped.topic_windows_state import Added

    counted = map_in_arrow(df.select(*COLUMNS), partial(_counted, how), "topic string, part string")
    # The clock of Spark as event time: timers run when any topic has messages. Each step of it costs a micro-batch
    # without messages. Spark drops what is not newer than the watermark, so this stays behind the step: no part of a
    # further micro-batch in the same step is late.
    step = min(max(_STEP_MS, how.idle // 4), _STEP_MS_MAX)
    now = sql.unix_millis(sql.current_timestamp())
    stepped = sql.timestamp_millis(sql.expr(f"at div {step} * {step}"))
    parts = counted.withColumn("at", now).withColumn(_CLOCK, stepped).withWatermark(_CLOCK, "1 millisecond")
    with without_pandas():
        found = parts.groupBy("topic").transformWithState(Added(how), "row string", "append", "EventTime")
    fields = ", ".join(f"{name} {kind}" for name, kind in ROW.items())
    rows = found.select(sql.from_json("row", fields).alias("row")).select("row.*")
    return rows.select(rows["topic"].alias("__key"), rows["windowStart"].alias("__eventTime"), "*")


def parse_rows(df: "DataFrame") -> "DataFrame":
    """Parse the rows of a rollup's topic, with times as timestamps."""
    from pyspark.sql import functions as sql

    fields = ", ".join(f"{name} {kind}" for name, kind in ROW.items())
    rows = df.select(sql.from_json(df["value"].cast("string"), fields).alias("row")).select("row.*")
    times = {name: sql.timestamp_millis(rows[name]) for name in ("windowStart", "windowEnd")}
    return rows.withColumns(times)


def _counted(how: Rolling, batches: "Iterable[RecordBatch]") -> "Iterator[RecordBatch]":
    """Count the messages of a task, by topic."""
    import pyarrow as pa

    from pulsarbox.spark.pipelines.shipped.window_counting import counted

    parts = list(counted(batches, how))
    topics = pa.array([part.topic for part in parts], pa.string())
    texts = pa.array([json.dumps(part.as_json()) for part in parts], pa.string())
    yield pa.RecordBatch.from_pydict({"topic": topics, "part": texts})
