"""Reaching a broker from Spark: service URLs, the Admin API, connections and topic schemas.

May import client and protocol. Must not import pyspark.
"""
