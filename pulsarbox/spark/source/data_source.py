"""Data sources ``pulsarbox`` and ``pulsar``, as Spark discovers them. Import only pyspark until used."""

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader

from pulsarbox.spark.brief_errors import brief

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql.types import StructType

    from pulsarbox.spark.sink.data_sink import BatchWriter, StreamWriter


class PulsarboxSource(DataSource):
    """Data source of ``spark.read.format("pulsarbox")``, ``readStream``, ``write`` and ``writeStream``."""

    @classmethod
    def name(cls) -> str:
        """Return the name that users pass to ``format``."""
        return "pulsarbox"

    @brief
    def schema(self) -> "StructType":
        """Return the columns of a row, from the options and the topics' schemas. Raises OptionError."""
        from pulsarbox.spark.options import READ, of_use, parse
        from pulsarbox.spark.schema.inference import described
        from pulsarbox.spark.source import table_options
        from pulsarbox.spark.worker_gc import settle

        created = table_options.of_creation(self.options)
        given = self.options if created is None else of_use(created, READ)
        found = described(parse(self._meant(given, READ), READ))
        settle()
        return found if created is None else table_options.keep(found, created)

    @brief
    def reader(self, schema: "StructType") -> DataSourceReader:
        """Return the reader of a batch. Raises OptionError."""
        from pulsarbox.spark.options import BATCH, parse
        from pulsarbox.spark.source.batch_reader import BatchReader, PrunedBatchReader

        options = parse(self._given(BATCH, schema), BATCH)
        return (PrunedBatchReader if options.pushdown else BatchReader)(options, schema)

    @brief
    def streamReader(self, schema: "StructType") -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """Return the reader of a stream. Raises OptionError."""
        from pulsarbox.spark.options import STREAM, parse
        from pulsarbox.spark.source.stream_reader import StreamReader

        return StreamReader(parse(self._given(STREAM, schema), STREAM), schema)

    @brief
    def writer(self, schema: "StructType", overwrite: bool) -> "BatchWriter":
        """Return the writer of ``df.write``. Raises OptionError, SinkError."""
        from pulsarbox.spark.options import WRITE
        from pulsarbox.spark.sink.data_sink import BatchWriter, sinking_of

        return BatchWriter(sinking_of(self._given(WRITE, schema), schema, overwrite, is_stream=False))

    @brief
    def streamWriter(self, schema: "StructType", overwrite: bool) -> "StreamWriter":  # noqa: N802 - Spark's name
        """Return the writer of ``df.writeStream``. Raises OptionError, SinkError."""
        from pulsarbox.spark.options import WRITE
        from pulsarbox.spark.sink.data_sink import StreamWriter, checkpoint_of, sinking_of

        given = self._given(WRITE, schema)
        return StreamWriter(sinking_of(given, schema, overwrite, is_stream=True), checkpoint_of(given))

    def _given(self, use: str, schema: "StructType") -> dict[str, str]:
        """Return the options for ``use``, with those of the table that ``schema`` belongs to, if it is one."""
        from pulsarbox.spark.source import table_options

        return self._meant(table_options.with_stored(self.options, schema, use), use)

    def _meant(self, given: "Mapping[str, str]", use: str) -> dict[str, str]:
        """Return options in the sense of the format pulsarbox."""
        return dict(given)


class PulsarSource(PulsarboxSource):
    """Data source ``pulsar``: for programs of the existing connector, whose options keep their meaning."""

    @classmethod
    def name(cls) -> str:
        """Return the name that users pass to ``format``."""
        return "pulsar"

    def _meant(self, given: "Mapping[str, str]", use: str) -> dict[str, str]:
        from pulsarbox.spark.connector_options import translated

        return translated(given, use)
