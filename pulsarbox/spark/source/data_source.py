"""Data source ``pulsarbox``, as Spark discovers it. Imports only pyspark until used."""

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from pulsarbox.spark.sink.data_sink import BatchWriter, StreamWriter


class PulsarboxSource(DataSource):
    """Data source of ``spark.read.format("pulsarbox")``, ``readStream``, ``write`` and ``writeStream``."""

    @classmethod
    def name(cls) -> str:
        """Return the name that users pass to ``format``."""
        return "pulsarbox"

    def schema(self) -> "StructType":
        """Return the columns of a row, from the options and the topics' schemas. Raises OptionError."""
        from pulsarbox.spark.options import READ, parse
        from pulsarbox.spark.schema.inference import described

        return described(parse(dict(self.options), READ))

    def reader(self, schema: "StructType") -> DataSourceReader:
        """Return the reader of a batch. Raises OptionError."""
        from pulsarbox.spark.options import BATCH, parse
        from pulsarbox.spark.source.batch_reader import BatchReader, PrunedBatchReader

        options = parse(dict(self.options), BATCH)
        return (PrunedBatchReader if options.pushdown else BatchReader)(options, schema)

    def streamReader(self, schema: "StructType") -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """Return the reader of a stream. Raises OptionError."""
        from pulsarbox.spark.options import STREAM, parse
        from pulsarbox.spark.source.stream_reader import StreamReader

        return StreamReader(parse(dict(self.options), STREAM), schema)

    def writer(self, schema: "StructType", overwrite: bool) -> "BatchWriter":
        """Return the writer of ``df.write``. Raises OptionError, SinkError."""
        from pulsarbox.spark.sink.data_sink import BatchWriter, sinking_of

        return BatchWriter(sinking_of(self.options, schema, overwrite, is_stream=False))

    def streamWriter(self, schema: "StructType", overwrite: bool) -> "StreamWriter":  # noqa: N802 - Spark's name
        """Return the writer of ``df.writeStream``. Raises OptionError, SinkError."""
        from pulsarbox.spark.sink.data_sink import StreamWriter, checkpoint_of, sinking_of

        return StreamWriter(sinking_of(self.options, schema, overwrite, is_stream=True), checkpoint_of(self.options))
