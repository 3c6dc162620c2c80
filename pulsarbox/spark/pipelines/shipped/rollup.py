"""Rollup: aggregates topics by windows of event time, into a topic exactly once, and from there into Parquet.

Many tasks count and one task adds up. Its state is stored in files beside the checkpoint, since Spark's own windows
drop late messages without counting them. The exactly-once sink writes the topic. The second query reads that topic, and
Spark's file sink records the files of each micro-batch, so both agree.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pulsarbox.errors import PulsarBoxError
from pulsarbox.names import parse_topic
from pulsarbox.spark.durable_files import put
from pulsarbox.spark.pipelines.declaration import Frame, PipelineError, Topics
from pulsarbox.spark.pipelines.definition import Pipeline
from pulsarbox.spark.pipelines.shipped.rollup_windows import ROW, Rolling, Row, TaskCounts, Windows
from pulsarbox.spark.pipelines.shipped.step_state import BatchState, Keeping
from pulsarbox.storage.lmdb.private_files import make_directory

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyspark.sql import DataFrame

ROLLUP: Final = "rollup"
HISTORY: Final = "rollup-parquet"
"""Names of the queries."""
WINDOWS: Final = "windows"
"""Directory of the open windows, inside that of the query."""
BEGUN: Final = "begun.json"
"""File in it with the length and slide of the windows, in milliseconds."""
_OUT: Final = {"__key": "string", "__eventTime": "bigint"} | ROW
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
    """Directory of the pipeline, with checkpoints and open windows. Must be accessible to all workers."""
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
    _check_same(asked.how, windows_of(asked))
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
        build=partial(rolled, how=asked.how, directory=str(windows_of(asked))),
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


def windows_of(asked: Rollup) -> Path:
    """Return the directory of the open windows."""
    return asked.state / ROLLUP / WINDOWS


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
        place = directory.parent.parent
        raise PipelineError(
            f"the rollup in {place} was started with --window {length / 1000:g}s --slide {slide / 1000:g}s: use the "
            f"same values, give this one another --name, or start anew after `pulsarbox pipeline reset {place.name}`"
        )


def rolled(df: "DataFrame", *, how: Rolling, directory: str) -> "DataFrame":
    """Aggregate messages into rows of a rollup: see ``rollup_windows.ROW``. Raises PipelineError: see ``begin``."""
    begin(how, Path(directory))
    from pulsarbox.spark.arrow_functions import map_in_arrow

    parts = map_in_arrow(df.select(*COLUMNS), partial(_counted, how), "part string")
    fields = ", ".join(f"{name} {kind}" for name, kind in _OUT.items())
    return map_in_arrow(parts.repartition(1), partial(_rolled, how, directory), fields)


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

    parts = [json.dumps(part.as_json()) for part in counted(batches, how)]
    yield pa.RecordBatch.from_pydict({"part": pa.array(parts, pa.string())})


def _rolled(how: Rolling, directory: str, batches: "Iterable[RecordBatch]") -> "Iterator[RecordBatch]":
    """Add up the counts, in a single task."""
    import pyarrow as pa
    from pyspark import TaskContext

    from pulsarbox.spark.sink.data_sink import EPOCH, QUERY

    context = TaskContext.get()
    assert context is not None, "called in a task"
    query, epoch = context.getLocalProperty(QUERY), context.getLocalProperty(EPOCH)
    assert query and epoch, "of a streaming query"
    parts = [TaskCounts.of_json(json.loads(text)) for batch in batches for text in batch.column("part").to_pylist()]
    rows = Keeping(Path(directory), query).once(int(epoch), partial(taken, how, parts))
    if rows:
        outgoing = [{"__key": row["topic"], "__eventTime": row["windowStart"]} | row for row in rows]
        yield pa.RecordBatch.from_pylist(outgoing, _arrow())


def taken(how: Rolling, parts: Sequence[TaskCounts], state: Any) -> BatchState:
    """Return the rows of a micro-batch and the new state, given the state of the previous one."""
    windows = Windows.of_json(how, state or {})
    rows: list[Row] = windows.count_batch(parts)
    return BatchState(rows, windows.as_json())


def _arrow() -> Any:
    import pyarrow as pa

    types = {"string": pa.string(), "bigint": pa.int64(), "boolean": pa.bool_(), "double": pa.float64()}
    keys = pa.list_(pa.struct([("key", pa.string()), ("messages", pa.int64())]))
    return pa.schema([(name, types.get(kind, keys)) for name, kind in _OUT.items()])
