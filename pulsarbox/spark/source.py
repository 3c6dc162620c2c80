"""The format ``pulsarbox``, as Spark finds it. Imports nothing but pyspark itself before it is used."""

from pyspark.sql.datasource import DataSource


class PulsarboxSource(DataSource):
    """``spark.read.format("pulsarbox")`` and its three siblings."""

    @classmethod
    def name(cls) -> str:
        """What ``format`` is given."""
        return "pulsarbox"
