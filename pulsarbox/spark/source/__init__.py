"""`spark.read` and `spark.readStream`: topic selection, partition plans, offsets and reading in workers.

May import `spark.access`, `spark.connect` and `spark.decode`; `data_source` alone names the sink, because Spark asks
one class for both. Must not write to a topic.
"""
