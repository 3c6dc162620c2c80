"""`df.write` and `df.writeStream`: encoding rows, staging them in transactions, committing epochs.

May import `spark.connect`, client, protocol and the options that source and sink share. Must not read a topic.
"""
