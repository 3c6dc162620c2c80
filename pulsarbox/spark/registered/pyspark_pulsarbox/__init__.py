"""Makes ``spark.read.format("pulsarbox")`` known wherever pulsarbox is installed.

Spark imports every top-level module called ``pyspark_*`` and registers its ``DefaultSource``. One that cannot be
imported breaks every such look-up, so what this imports needs nothing but pyspark itself. In a wheel it stands at the
top, in a checkout below ``pulsarbox/spark/registered``.
"""

from pulsarbox.spark.source.data_source import PulsarboxSource as DefaultSource

__all__ = ["DefaultSource"]
