"""Registers ``spark.read.format("pulsarbox")`` wherever pulsarbox is installed.

Spark imports every top-level module named ``pyspark_*`` and registers its ``DefaultSource``. A module that fails to
import breaks the lookup of all formats, so this one depends only on pyspark. In a wheel it is a top-level package, in a
checkout it is in ``pulsarbox/spark/registered``.
"""

from pulsarbox.spark.source.data_source import PulsarboxSource as DefaultSource

__all__ = ["DefaultSource"]
