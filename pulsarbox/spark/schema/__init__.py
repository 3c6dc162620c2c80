"""Topic schemas as column types, of Spark and of Arrow, and the columns derived from them.

`column_types` and `arrow_types` do not import pyspark. May import pyspark's types, pyarrow, `protocol.schema`,
`spark.connect`, the columns of `spark.decode` and the topic selection of `spark.source`. Must not read messages.
"""
