"""Spark job that counts the messages of a topic by key, and publishes the counts to another topic.

    spark-submit --master 'local[*]' examples/spark/job.py orders counts

It runs on the master of its command. ``SERVICE_URL`` and ``ADMIN_URL`` are the addresses of the broker.
"""

import os
import sys

from pulsarbox.spark import session


def main(source: str, target: str) -> None:
    """Count once."""
    spark = session(f"count {source}")
    broker = {
        "service.url": os.environ.get("SERVICE_URL", "pulsar://localhost:6650"),
        "admin.url": os.environ.get("ADMIN_URL", "http://localhost:8080"),
    }
    orders = spark.read.format("pulsarbox").options(**broker).option("topic", source).load()
    counts = orders.groupBy("__key").count().selectExpr("__key", "CAST(count AS STRING) AS value")
    counts.write.format("pulsarbox").mode("append").options(**broker).option("topic", target).save()
    print(f"{source}: {orders.count()} messages on {spark.sparkContext.master}")
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:3])
