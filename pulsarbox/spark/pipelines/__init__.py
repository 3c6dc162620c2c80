"""Pipelines: Spark queries between topics, declared in a Python file, and their runner.

``declaration`` and ``definition`` describe a pipeline without importing Spark.
"""
