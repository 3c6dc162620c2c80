"""Connections from Spark to a broker: service URLs, the Admin API, connections and topic schemas.

May import client, protocol and `spark.access`, and storage and server to find the box of a data directory. Must not
import pyspark.
"""
