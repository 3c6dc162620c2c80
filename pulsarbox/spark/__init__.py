"""Topics as sources and sinks of Spark: ``spark.read.format("pulsarbox")``, ``readStream``, ``write``, ``writeStream``.

The only room that imports pyspark and pyarrow. Who reads and writes through the Python Data Source API is in
``source``, ``stream`` and ``sink``; whatever can be decided without Spark is decided in modules that do not import it.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["register"]


def register(spark: "SparkSession") -> None:
    """Make the format ``pulsarbox`` known to a session.

    Needed only where Spark does not find it by itself: where pulsarbox travels as an archive (``--py-files``,
    ``addPyFile``) instead of being installed::

        from pulsarbox.spark import register
        register(spark)
    """
    from pulsarbox.spark.source import PulsarboxSource

    spark.dataSource.register(PulsarboxSource)
