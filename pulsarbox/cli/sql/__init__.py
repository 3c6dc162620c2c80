"""The `sql` command: queries over topics with DuckDB, offloaded files and live messages together.

``topic_table`` describes a topic as a table, ``live_dataset`` reads its live messages, ``database`` runs a query over
both, and ``result_output`` writes the rows. May import `cli.common`, `cli.connect`, client, protocol, of
`pulsarbox.spark` only modules without pyspark, and in ``stopped_box`` storage and the visible segments of the broker.
The only room besides `pulsarbox.spark` that imports pyarrow, and the only one that imports duckdb; ``command`` imports
neither before a query runs. Must not write to topics or data directories.
"""
