"""Sink of `df.write` and `df.writeStream`: encoding rows, staging them in transactions, committing epochs.

May import `spark.connect`, client, protocol, plugins, and the options and columns that source and sink share. Must not
read a topic.
"""
