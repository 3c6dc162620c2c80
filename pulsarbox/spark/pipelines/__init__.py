"""Pipelines: queries of Spark between topics that somebody declares in a file, and what runs them.

``declaring`` and ``definition`` say what a pipeline is; nothing of Spark is needed for that.
"""
