"""Output ``delta:DIR`` of a frame: each micro-batch is a transaction of Delta's own connector, whose jar the user adds.

The transaction has the query's ID and the number of the micro-batch, as those of Delta's streaming sink have. Delta
skips a micro-batch that the log of the table has, so a restart repeats no rows.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from pulsarbox.spark.durable_files import make_durable
from pulsarbox.spark.lakehouse.table_place import TableError
from pulsarbox.spark.pipelines.declaration import PipelineError, PipelineStep
from pulsarbox.spark.pipelines.state import query_id

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameWriter, SparkSession

KIND: Final = "delta"
"""The output's kind, and the name of Delta's format."""
EXTENSION: Final = "io.delta.sql.DeltaSparkSessionExtension"
_EXTENSIONS: Final = "spark.sql.extensions"
_CATALOG: Final = "spark.sql.catalog.spark_catalog"
_BUILTIN: Final = "builtin"
_DELTA_CATALOG: Final = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
_PARTITIONS: Final = "spark.databricks.delta.snapshotPartitions"
_MOST_PARTITIONS: Final = 50
"""Delta's default. Each epoch reads the state of the table in as many tasks: 10 s instead of 2 on two busy cores."""
_LOG: Final = "_delta_log"
_PARTITIONED: Final = "partitionby"
_ADVICE: Final = (
    "add one that is built for it with `--conf spark.jars.packages=io.delta:delta-spark_2.13:VERSION` (4.4.0 is built "
    "for Spark 4.2), or write an Iceberg table, which needs no jar: output='iceberg:DIR/NAMESPACE.TABLE'"
)
_MISFIT: Final = ("NoSuchMethodError", "NoSuchFieldError", "NoClassDefFoundError", "IncompatibleClassChangeError")
"""Java's errors for a jar that was built for another version of Spark."""


def settings(given: Mapping[str, str]) -> dict[str, str]:
    """Return Spark settings with Delta's extension after the named ones. Without the jar, Spark ignores it."""
    extensions = [*given.get(_EXTENSIONS, "").split(","), EXTENSION]
    return {**given, _EXTENSIONS: ",".join(dict.fromkeys(each for each in extensions if each))}


def prepare(spark: "SparkSession", step: PipelineStep, rows: "DataFrame", files: Any) -> None:
    """Check jar and directory before the first micro-batch, and create the table if it is missing, without rows.

    ``files``: Hadoop's file system of the directory. Raises PipelineError, and TableError for errors that may pass.
    """
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import AnalysisException, IllegalArgumentException

    assert spark._jvm is not None
    written = step.writes()
    if not spark._jvm.org.apache.spark.util.Utils.classIsLoadable(EXTENSION):
        raise step.wrong(f"output {written}: Spark {spark.version} has no jar of Delta: {_ADVICE}")
    _configure(spark)
    try:
        _check_directory(spark, step, files)
        _writer(spark.createDataFrame([], rows.schema), step).mode("ignore").save(written.place)
        spark.read.format(KIND).load(written.place).isEmpty()
    except (AnalysisException, IllegalArgumentException) as error:  # of columns, and of options
        raise step.wrong(f"output {written}: {error}") from None
    except Py4JJavaError as error:
        raise _failed(step, spark.version, str(error.java_exception)) from None


def _configure(spark: "SparkSession") -> None:
    """Set what the user has not set. Set at the session's start, a catalog without its jar would fail all queries."""
    if spark.conf.get(_CATALOG, _BUILTIN) == _BUILTIN:
        spark.conf.set(_CATALOG, _DELTA_CATALOG)
    if spark.conf.get(_PARTITIONS, None) is None:
        spark.conf.set(_PARTITIONS, str(min(_MOST_PARTITIONS, spark.sparkContext.defaultParallelism)))


def _check_directory(spark: "SparkSession", step: PipelineStep, files: Any) -> None:
    """Check that a directory without a table is empty: Delta would add its files to those of other formats."""
    assert spark._jvm is not None
    path, place = spark._jvm.org.apache.hadoop.fs.Path, step.writes().place
    if files.exists(path(f"{place}/{_LOG}")) or not files.exists(path(place)):
        return
    if len(files.listStatus(path(place))):
        raise step.wrong(f"output {KIND}:{place}: it has files, but is no Delta table: use another directory")


def _failed(step: PipelineStep, version: str, said: str) -> PipelineError | TableError:
    """Return the error for one of Java's: a misfit of the jar is final, others may pass."""
    written = step.writes()
    if sign := next((each for each in _MISFIT if each in said), ""):
        return step.wrong(f"output {written}: the jar of Delta does not fit Spark {version} ({sign}): {_ADVICE}")
    return TableError(f"{step.query}: output {written} cannot be used: {said}")


def _writer(rows: "DataFrame", step: PipelineStep) -> "DataFrameWriter":
    columns = [value for name, value in step.sink.items() if name.lower() == _PARTITIONED]
    options = {name: value for name, value in step.sink.items() if name.lower() != _PARTITIONED}
    names = [each.strip() for value in columns for each in value.split(",") if each.strip()]
    writer = rows.write.format(KIND).options(**options)
    return writer.partitionBy(*names) if names else writer


class DeltaEpochs:
    """Writer of micro-batches, for ``foreachBatch``. Delta's own sink would not sync Spark's record of an epoch."""

    def __init__(self, step: PipelineStep, checkpoint: str) -> None:
        self._step = step
        self._checkpoint = checkpoint

    def __call__(self, rows: "DataFrame", epoch: int) -> None:
        """Append a micro-batch, unless the table has it."""
        make_durable(self._checkpoint, epoch)
        transaction = {"txnAppId": query_id(self._checkpoint), "txnVersion": str(epoch)}
        _writer(rows, self._step).options(**transaction).mode("append").save(self._step.writes().place)
