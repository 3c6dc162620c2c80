"""Spark query of a step: its input, transformation and output."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pulsarbox.names import parse_topic
from pulsarbox.spark.durable_files import make_durable
from pulsarbox.spark.pipelines import delta_output, functions, text_files
from pulsarbox.spark.pipelines.declaration import (
    FILES,
    TABLES,
    Frame,
    Function,
    PipelineError,
    PipelineStep,
    StepOutput,
    is_url,
    milliseconds,
)
from pulsarbox.spark.pipelines.query_progress import DEAD, OBSERVED
from pulsarbox.spark.pipelines.state import query_id

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

FORMAT: Final = "pulsarbox"
ICEBERG: Final = "pulsarbox-iceberg"
EXACTLY_ONCE: Final = "exactly-once"
_WRITTEN: Final = "_spark_metadata"
"""Directory in which Spark records the files that a stream wrote."""
_NO_FILE_SYSTEM: Final = ("ClassNotFoundException", "UnsupportedFileSystemException", "No FileSystem for scheme")
_STARTS: Final = ("startingoffsets", "startingtime", "startingtimestamp")


def started(
    spark: "SparkSession", step: PipelineStep, checkpoint: str, given: Mapping[str, Any], *, once: bool
) -> "StreamingQuery":
    """Start the query of a step.

    ``given``: ``box``, the broker as options; ``subscription``, acknowledged as the query reads, empty for none; and
    ``sinkNamespace``. Raises errors of Spark and of the user's code.
    """
    rows = _made(spark, step, given)
    written = step.writes()
    if not rows.isStreaming:
        raise step.wrong("returns a frame that is not a stream: derive it from its inputs")
    if isinstance(step, Function) and step.dead_letters is not None:
        from pyspark.sql import functions as sql

        is_dead = sql.count(sql.when(sql.col("__topic") == step.dead_letters, 1))
        rows = rows.observe(OBSERVED, is_dead.alias(DEAD))
    if written.kind in FILES and is_url(written.place) and not Path(checkpoint, "metadata").exists():
        _check_directory(spark, step, written)
    if written.kind == delta_output.KIND:
        delta_output.prepare(spark, step, rows, _file_system(spark, step, written))
    if written.kind in text_files.TEXT:
        columns = text_files.text_columns(rows, rows.columns, written.kind)
        rows = rows.select(*(column.alias(name) for name, column in columns.items()))
    writer = rows.writeStream.queryName(step.query).option("checkpointLocation", checkpoint)
    mode = step.mode if isinstance(step, Frame) else "append"
    writer = writer.outputMode(mode)
    if written.kind == delta_output.KIND:
        writer = writer.foreachBatch(delta_output.DeltaEpochs(step, checkpoint))
    elif written.kind in TABLES:
        writer = writer.format(ICEBERG).options(**{**step.sink, "table": written.place})
    elif written.kind in FILES:
        options = {**text_files.WRITTEN.get(written.kind, {}), **step.sink}
        writer = writer.format(written.kind).options(**options).option("path", written.place)
    elif mode == "append":
        writer = writer.format(FORMAT).options(**sink_options(step, written, given))
    else:
        writer = writer.foreachBatch(_Jobs(step, sink_options(step, written, given), checkpoint))
    if once:
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=f"{milliseconds(step.trigger)} milliseconds").start()


class _Jobs:
    """Writer of micro-batches in update and complete mode. Spark's Python sinks only support append, so each
    micro-batch is a batch write, as part of a job named after the query's ID."""

    def __init__(self, step: PipelineStep, options: Mapping[str, str], checkpoint: str) -> None:
        if {name.lower() for name in step.sink} & {"sinkid", "sinkepoch"}:
            raise step.wrong("sink: sinkId and sinkEpoch require mode append")
        self._options = options
        self._checkpoint = checkpoint
        self._keeps_jobs = options.get("delivery", EXACTLY_ONCE).lower() == EXACTLY_ONCE

    def __call__(self, rows: "DataFrame", epoch: int) -> None:
        make_durable(self._checkpoint, epoch)
        part = {}
        if self._keeps_jobs:
            part = {
                "jobId": query_id(self._checkpoint),
                "jobPart": str(epoch + 1),
            }
        rows.write.format(FORMAT).mode("append").options(**self._options, **part).save()


def sink_options(step: PipelineStep, written: StepOutput, given: Mapping[str, Any]) -> dict[str, str]:
    """Return the options for writing to topics. A function's rows name their topic, because of dead letters."""
    found = dict(given["box"])
    if written.kind == "topic" and not isinstance(step, Function):
        found["topic"] = written.place
    set_already = {name.lower(): value for name, value in step.sink.items()}
    if set_already.get("delivery", EXACTLY_ONCE).lower() == EXACTLY_ONCE:
        found["sinkNamespace"] = given["sinkNamespace"]
    return {name: value for name, value in found.items() if name.lower() not in set_already} | dict(step.sink)


def namespace_of(step: PipelineStep) -> str:
    """Return the namespace of a step's sink: that of its output, else of its first input."""
    written = step.writes()
    if written.kind == "topic":
        return parse_topic(written.place).namespace
    for selection in step.reads().values():
        if "topics" in selection:
            return parse_topic(selection["topics"].split(",")[0]).namespace
    return "public/default"


def _made(spark: "SparkSession", step: PipelineStep, given: Mapping[str, Any]) -> "DataFrame":
    frames = {name: read(spark, step, name, selection, given) for name, selection in step.reads().items()}
    if isinstance(step, Function):
        return functions.output_of(step, frames[""])
    assert isinstance(step, Frame)
    more = {"spark": spark} if _asks_for_spark(step, frames) else {}
    made = step.build(frames[""], **more) if "" in frames else step.build(**frames, **more)
    if not hasattr(made, "writeStream"):
        raise step.wrong(f"returns {type(made).__name__}, not a DataFrame: is a return statement missing?")
    found: DataFrame = made
    return found


def _asks_for_spark(step: Frame, frames: Mapping[str, object]) -> bool:
    import inspect

    return "spark" not in frames and "spark" in inspect.signature(step.build).parameters


def read(
    spark: "SparkSession", step: PipelineStep, name: str, selection: Mapping[str, str], given: Mapping[str, Any]
) -> "DataFrame":
    """Return the stream of one input."""
    found = dict(given["box"]) | dict(selection)
    own = {key.lower() for key in step.options}
    if not own & set(_STARTS):
        found["startingOffsets"] = "earliest"
    subscription = given["subscription"]
    if subscription and not own & {"subscription", "predefinedsubscription"}:
        found["subscription"] = f"{subscription}-{name}" if name else subscription
    if isinstance(step, Function):
        clash = own & {key.lower() for key in functions.OPTIONS}
        if clash:
            raise step.wrong(
                f"option {', '.join(sorted(clash))} is for frames: set value=text or value=json of the function instead"
            )
        found |= functions.OPTIONS
        if step.on_timer is not None:
            found["batchAtStart"] = "true"
    found |= {key: value for key, value in step.options.items() if value != ""}
    return spark.readStream.format(FORMAT).options(**found).load()


def check_files(step: PipelineStep, is_new: bool) -> None:
    """Check that a directory has no output of another checkpoint, as Spark would skip as many micro-batches as that
    had. Raises PipelineError."""
    written = step.writes()
    is_path = written.kind in FILES and not is_url(written.place)
    if is_new and is_path and Path(written.place, _WRITTEN).exists():
        raise _written_before(step, written)


def _check_directory(spark: "SparkSession", step: PipelineStep, written: StepOutput) -> None:
    """Check a directory that only Spark can access. Raises PipelineError and Spark's errors."""
    assert spark._jvm is not None
    path = spark._jvm.org.apache.hadoop.fs.Path(f"{written.place}/{_WRITTEN}")
    if _file_system(spark, step, written).exists(path):
        raise _written_before(step, written)


def _file_system(spark: "SparkSession", step: PipelineStep, written: StepOutput) -> Any:
    """Return Hadoop's file system of a directory. Raises PipelineError and Spark's errors."""
    from py4j.protocol import Py4JJavaError

    assert spark._jvm is not None
    path = spark._jvm.org.apache.hadoop.fs.Path(written.place)
    try:
        return path.getFileSystem(spark._jsc.hadoopConfiguration())
    except Py4JJavaError as error:
        text = str(error.java_exception)
        if not any(sign in text for sign in _NO_FILE_SYSTEM):
            raise
        raise step.wrong(
            f"output {written}: this Spark has no file system for it ({text}). Add one; for S3, `--conf "
            "spark.jars.packages=org.apache.hadoop:hadoop-aws:VERSION` with the version of Spark's Hadoop"
        ) from None


def _written_before(step: PipelineStep, written: StepOutput) -> PipelineError:
    return step.wrong(
        f"{written.place} has output of a checkpoint that no longer exists: delete the directory, or write to another "
        "one"
    )
