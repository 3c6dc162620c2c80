"""Topics as sources and sinks of Spark: ``spark.read.format("pulsarbox")``, ``readStream``, ``write``, ``writeStream``.

The only room that imports pyspark and pyarrow. Who reads and writes through the Python Data Source API is in
``source``, ``stream`` and ``sink``; whatever can be decided without Spark is decided in modules that do not import it.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

__all__ = ["register", "table"]


def register(spark: "SparkSession") -> None:
    """Make the format ``pulsarbox`` known to a session.

    Needed only where Spark does not find it by itself: where pulsarbox travels as an archive (``--py-files``,
    ``addPyFile``) instead of being installed::

        from pulsarbox.spark import register
        register(spark)
    """
    from pulsarbox.spark.source.data_source import PulsarboxSource

    spark.dataSource.register(PulsarboxSource)


def table(
    spark: "SparkSession",
    topic: str | Sequence[str] | None = None,
    directory: str | Path = "",
    *,
    tail: bool = True,
    schema: "StructType | str | None" = None,
    **options: Any,
) -> "DataFrame":
    """A topic as one table: what ``pulsarbox pipeline offload`` has put into ``directory``, and behind it what the box
    has, no row twice and none missing, whatever is offloaded and trimmed meanwhile::

        from pulsarbox.spark import table
        orders = table(spark, "orders", "/data/history", **{"service.url": "pulsar://localhost:6650"})
        orders.where("__publishTime > '2026-11-01'").groupBy("__key").count().show()

    ``topic``: one, several, or None with the option ``topicsPattern``. ``tail=False``: only what was offloaded, without
    a box. ``schema``: only these columns. ``options`` are those of the format where they are for batch reads, without
    those that say where to begin and end. The files are read by Spark's own reader, so filters leave out row groups and
    only the columns are read that a query needs; the directory has to be there on all workers.

    Raises OptionError, OffloadError where the manifest is damaged, DataLost, and what the broker tells.
    """
    from pulsarbox.spark.source import offloaded_table

    if not str(directory):
        from pulsarbox.spark.options import OptionError

        raise OptionError("table() needs the directory that the topic was offloaded into: directory='/data/history'")
    return offloaded_table.table(spark, topic, directory, tail=tail, schema=schema, options=options)
