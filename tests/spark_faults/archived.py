"""A driver whose workers lack pulsarbox: it ships an archive and registers the format itself.

Run it with a Python that lacks pulsarbox, too.
"""

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession


def main() -> None:
    """Write rows and read them."""
    plan = json.loads(Path(sys.argv[1]).read_text())
    builder = SparkSession.builder.master(plan["master"]).appName("spark-faults").config("spark.ui.enabled", "false")
    for name, value in plan["conf"].items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    spark.sparkContext.addPyFile(plan["archive"])
    from pulsarbox.spark import register

    register(spark)
    where = f"concat('{plan['topic']}', if(id % 5 = 0, '-b', '-a')) as __topic"
    rows = spark.range(0, plan["rows"], 1, 4).selectExpr("cast(id as string) as value", where)
    urls = {"service.url": plan["url"], "admin.url": plan["web_url"]}
    rows.write.format("pulsarbox").mode("append").options(**urls).option("jobId", "archived").save()
    found = spark.read.format("pulsarbox").options(**urls, topics=f"{plan['topic']}-a,{plan['topic']}-b").load()
    sys.stdout.write(f"read {found.selectExpr('CAST(value AS STRING)').distinct().count()}\n")
    spark.stop()


if __name__ == "__main__":
    main()
