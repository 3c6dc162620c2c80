"""Spark source and sink for topics: ``spark.read.format("pulsarbox")``, ``readStream``, ``write``, ``writeStream``.

The only room that imports pyspark and pyarrow. The Python Data Source API is implemented in ``source`` and ``sink``;
modules whose logic does not need Spark do not import it.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

__all__ = ["register", "session", "table"]


def register(spark: "SparkSession") -> None:
    """Register the formats ``pulsarbox`` and ``pulsar`` with a session.

    Needed only where Spark does not discover it: when pulsarbox is shipped as an archive (``--py-files``,
    ``addPyFile``) instead of being installed::

        from pulsarbox.spark import register
        register(spark)

    Also adds the jar of the reader inside the JVM, if this installation has it and the session has not.
    """
    from pulsarbox.spark import accelerator
    from pulsarbox.spark.lakehouse.iceberg_sink import IcebergSource
    from pulsarbox.spark.source.data_source import PulsarboxSource, PulsarSource

    accelerator.add_to(spark)
    spark.dataSource.register(PulsarboxSource)
    spark.dataSource.register(PulsarSource)
    spark.dataSource.register(IcebergSource)


def session(
    name: str = "pulsarbox",
    *,
    master: str | None = None,
    memory: str | None = None,
    ui: bool = False,
    conf: Mapping[str, str] | None = None,
) -> "SparkSession":
    """Return a Spark session with the formats ``pulsarbox`` and ``pulsar``, or the one that this process has.

        from pulsarbox.spark import session
        spark = session("orders", memory="4g", ui=True)

    Workers run this interpreter, so a virtual environment need not be activated. ``master``: by default all cores of
    this machine, or the master given to spark-submit; also ``local[2]``, ``spark://host:7077``, or a Spark Connect
    server as ``sc://host:15002``. ``memory``: of the driver, which in local mode runs the tasks too (1g). ``ui``: serve
    Spark's web pages; ``spark.sparkContext.uiWebUrl`` is the address. ``conf``: Spark settings, which override those of
    docs/spark.md.

    Raises SparkMissingError without Spark or Java, and PipelineError if Spark rejects the master or a setting.
    """
    from pulsarbox.spark import spark_session

    return spark_session.session(name, master, memory, ui, conf)


def table(
    spark: "SparkSession",
    topic: str | Sequence[str] | None = None,
    directory: str | Path = "",
    *,
    tail: bool = True,
    schema: "StructType | str | None" = None,
    catalog: str = "",
    **options: Any,
) -> "DataFrame":
    """Return a topic as one table: the entries offloaded into ``directory`` plus those still in the box.

    Each message appears exactly once, even while the topic is offloaded and trimmed concurrently::

        from pulsarbox.spark import table
        orders = table(spark, "orders", "/data/history", **{"service.url": "pulsar://localhost:6650"})
        orders.where("__publishTime > '2026-11-01'").groupBy("__key").count().show()

    ``topic``: one, several, or None with the option ``topicsPattern``. ``directory``: it must exist on all workers.
    ``iceberg:lake/shop.orders`` is a table, and ``iceberg:lake/shop.orders@SNAPSHOT`` a snapshot of it; ``catalog``:
    that of a table without a directory. ``tail=False``: offloaded entries only, without a broker. ``schema``: only
    these columns. ``options``: those of a batch read, except the starting and ending ones. Spark's own reader scans the
    files of a local directory, so filters skip row groups and unused columns are not read.

    Raises OptionError, OffloadError for a damaged manifest, TableError, DataLost, and the broker's errors.
    """
    from pulsarbox.spark.source import offloaded_table

    if not str(directory):
        from pulsarbox.spark.options import OptionError

        raise OptionError("table() requires the directory that the topic was offloaded into: directory='/data/history'")
    return offloaded_table.table(spark, topic, directory, tail=tail, schema=schema, catalog=catalog, options=options)
