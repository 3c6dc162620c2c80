"""Decoding of entries into Arrow record batches: metadata, payloads and typed columns, many messages at a time.

May import `spark.access`, `spark.connect`, `spark.schema`, client, protocol, plugins and pyarrow; only `record_batches`
imports pyspark. Must not open a data directory: `spark.access` supplies entries.
"""
