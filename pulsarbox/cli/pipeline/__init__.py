"""The `pipeline` command group: run, validate, list and reset Spark pipelines.

May import `cli.common`, `cli.connect` and, inside functions, `pulsarbox.spark`. Must not import pyspark at import time.
"""
