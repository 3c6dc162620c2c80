"""Spark reads and writes topics through the Python Data Source API. Only this room imports pyspark."""
