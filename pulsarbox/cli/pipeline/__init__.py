"""The `pipeline` command group: running, validating, listing and resetting Spark pipelines.

May import `cli.common`, `cli.connect` and, inside functions, `pulsarbox.spark`. Must not import pyspark at import time.
"""
