"""Topic schemas as Spark types, and the columns derived from them.

May import pyspark's types, `protocol.schema`, `spark.connect`, the columns of `spark.decode` and the topic selection of
`spark.source`. Must not read messages.
"""
