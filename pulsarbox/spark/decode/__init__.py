"""From entries to Arrow record batches: metadata, payloads and typed columns, many messages at a time.

May import protocol, plugins and pyarrow. Must not reach a broker or a data directory: `spark.access` hands entries in.
"""
