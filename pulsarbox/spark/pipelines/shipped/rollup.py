"""``rollup``: what topics carry, by windows of event time, into a topic exactly once, and from there into Parquet.

Tasks count, one task adds up: what it adds up to stays in files beside the checkpoint, because Spark's own windows drop
what comes late without saying of how many messages. The topic is written with the exactly-once sink. The second query
reads that topic, and Spark's sink for files notes which files are of which micro-batch, so both agree.
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
from pulsarbox.spark.pipelines.shipped.rollup_windows import ROW, Part, Rolling, Row, Windows
from pulsarbox.spark.pipelines.shipped.step_state import Keeping, Kept
from pulsarbox.storage.lmdb.private_files import make_directory

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyspark.sql import DataFrame

ROLLUP: Final = "rollup"
HISTORY: Final = "rollup-parquet"
"""The queries."""
WINDOWS: Final = "windows"
"""The directory of what is open, in that of the query."""
BEGUN: Final = "begun.json"
"""There: the length of windows, and their slide, in milliseconds."""
_OUT: Final = {"__key": "string", "__eventTime": "bigint"} | ROW
COLUMNS: Final = ("value", "__key", "__topic", "__publishTime", "__eventTime")


@dataclass(frozen=True)
class Rollup:
    """What is asked for."""

    inputs: Topics
    """As a Frame has them."""
    output: str
    """The topic."""
    how: Rolling
    state: Path
    """The directory of the pipeline: checkpoints, and the windows that are open. All workers have to reach it."""
    parquet: str = ""
    """The directory; empty for none."""
    trigger: str = "1 second"
    options: Mapping[str, str] = field(default_factory=dict)
    """Of the source: where it begins, how much it takes at a time."""


def pipeline(asked: Rollup, name: str = ROLLUP) -> Pipeline:
    """The queries. Raises PulsarBoxError for what cannot run, in words."""
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
    """The query that writes the topic."""
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
    """The query that reads the topic into Parquet."""
    return Frame(
        build=told,
        inputs=str(parse_topic(asked.output)),
        output=f"parquet:{asked.parquet}",
        options={"columns": "value", "valueFormat": "bytes"},
        trigger=asked.trigger,
        name=HISTORY,
    )


def windows_of(asked: Rollup) -> Path:
    """Where the windows are kept that are open."""
    return asked.state / ROLLUP / WINDOWS


def begin(how: Rolling, directory: Path) -> None:
    """Note how long windows are. Raises PipelineError where those that are open are of another length."""
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
            f"the rollup in {place} was begun with --window {length / 1000:g}s --slide {slide / 1000:g}s: go on with "
            f"these, give this one a --name of its own, or have it begin anew: `pulsarbox pipeline reset {place.name}`"
        )


def rolled(df: "DataFrame", *, how: Rolling, directory: str) -> "DataFrame":
    """Messages as rows of a rollup: see ``rolling.ROW``. Raises PipelineError: see ``begin``."""
    begin(how, Path(directory))
    from pulsarbox.spark.arrow_functions import map_in_arrow

    parts = map_in_arrow(df.select(*COLUMNS), partial(_counted, how), "part string")
    fields = ", ".join(f"{name} {kind}" for name, kind in _OUT.items())
    return map_in_arrow(parts.repartition(1), partial(_rolled, how, directory), fields)


def told(df: "DataFrame") -> "DataFrame":
    """The rows of a rollup as its topic has them, with times that are times."""
    from pyspark.sql import functions as sql

    fields = ", ".join(f"{name} {kind}" for name, kind in ROW.items())
    rows = df.select(sql.from_json(df["value"].cast("string"), fields).alias("row")).select("row.*")
    times = {name: sql.timestamp_millis(rows[name]) for name in ("windowStart", "windowEnd")}
    return rows.withColumns(times)


def _counted(how: Rolling, batches: "Iterable[RecordBatch]") -> "Iterator[RecordBatch]":
    """In a task: what it has of each topic."""
    import pyarrow as pa

    from pulsarbox.spark.pipelines.shipped.window_counting import counted

    parts = [json.dumps(part.as_json()) for part in counted(batches, how)]
    yield pa.RecordBatch.from_pydict({"part": pa.array(parts, pa.string())})


def _rolled(how: Rolling, directory: str, batches: "Iterable[RecordBatch]") -> "Iterator[RecordBatch]":
    """In the one task that adds up."""
    import pyarrow as pa
    from pyspark import TaskContext

    from pulsarbox.spark.sink.data_sink import EPOCH, QUERY

    context = TaskContext.get()
    assert context is not None, "called in a task"
    query, epoch = context.getLocalProperty(QUERY), context.getLocalProperty(EPOCH)
    assert query and epoch, "of a streaming query"
    parts = [Part.of_json(json.loads(text)) for batch in batches for text in batch.column("part").to_pylist()]
    rows = Keeping(Path(directory), query).once(int(epoch), partial(taken, how, parts))
    if rows:
        outgoing = [{"__key": row["topic"], "__eventTime": row["windowStart"]} | row for row in rows]
        yield pa.RecordBatch.from_pylist(outgoing, _arrow())


def taken(how: Rolling, parts: Sequence[Part], state: Any) -> Kept:
    """What one micro-batch puts out and leaves, where the one before has left ``state``."""
    windows = Windows.of_json(how, state or {})
    rows: list[Row] = windows.take(parts)
    return Kept(rows, windows.as_json())


def _arrow() -> Any:
    import pyarrow as pa

    types = {"string": pa.string(), "bigint": pa.int64(), "boolean": pa.bool_(), "double": pa.float64()}
    keys = pa.list_(pa.struct([("key", pa.string()), ("messages", pa.int64())]))
    return pa.schema([(name, types.get(kind, keys)) for name, kind in _OUT.items()])
