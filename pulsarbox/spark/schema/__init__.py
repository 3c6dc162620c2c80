"""Topic schemas as Spark types, and the columns that follow from them.

May import pyspark's types and `protocol.schema`. Must not read messages.
"""
