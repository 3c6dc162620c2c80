"""The format ``pulsarbox``, as Spark finds it. Imports nothing but pyspark itself before it is used."""

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from pulsarbox.spark.sink import BatchWriter, StreamWriter


class PulsarboxSource(DataSource):
    """``spark.read.format("pulsarbox")`` and its three siblings."""

    @classmethod
    def name(cls) -> str:
        """What ``format`` is given."""
        return "pulsarbox"

    def writer(self, schema: "StructType", overwrite: bool) -> "BatchWriter":
        """``df.write``. Raises OptionError, SinkError."""
        from pulsarbox.spark.sink import BatchWriter, sinking_of

        return BatchWriter(sinking_of(self.options, schema, overwrite, is_stream=False))

    def streamWriter(self, schema: "StructType", overwrite: bool) -> "StreamWriter":  # noqa: N802 - Spark's name
        """``df.writeStream``. Raises OptionError, SinkError."""
        from pulsarbox.spark.sink import StreamWriter, sinking_of

        return StreamWriter(sinking_of(self.options, schema, overwrite, is_stream=True))
