"""Decoding of entries into Arrow record batches: metadata, payloads and typed columns, many messages at a time.

May import `spark.access`, `spark.connect`, `spark.schema`, client, protocol, plugins and pyarrow. Must not import
pyspark, because `pulsarbox sql` decodes without Spark, nor open a data directory: `spark.access` supplies entries.
"""
