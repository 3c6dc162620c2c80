"""Source of `spark.read` and `spark.readStream`: topic selection, partition plans, offsets and reading in workers.

May import `spark.connect`, `spark.schema`, `spark.decode` and `spark.offload`; only `data_source` refers to the sink,
because Spark requires one class for both. Must not write to a topic.
"""
