"""Registers ``spark.read.format("pulsar")`` wherever pulsarbox is installed, for programs of the existing connector.

Spark registers one ``DefaultSource`` per top-level module named ``pyspark_*``: see ``pyspark_pulsarbox``.
"""

from pulsarbox.spark.source.data_source import PulsarSource as DefaultSource

__all__ = ["DefaultSource"]
