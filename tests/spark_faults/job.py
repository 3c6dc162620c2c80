"""The driver that the campaign kills: a stream over files, written to two topics, until all files are read."""

import argparse
import json
from pathlib import Path

from pyspark.sql import SparkSession

from pulsarbox.spark import accelerator
from tests.spark_faults.faulty import FaultySource

CONF = {
    "spark.ui.enabled": "false",
    "spark.driver.memory": "512m",
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
}


def main() -> None:
    """Run until everything is written."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("plan", type=Path)
    plan = json.loads(parser.parse_args().plan.read_text())
    folder, partitions = Path(plan["folder"]), str(plan["partitions"])
    builder = SparkSession.builder.master(plan["master"]).appName("spark-faults")
    for name, value in (CONF | plan["conf"] | {"spark.sql.shuffle.partitions": partitions}).items():
        builder = builder.config(name, value)
    if reader := accelerator.jar():
        builder = builder.config("spark.jars", str(reader))
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    pid = folder / "jvm.pid"
    pid.with_suffix(".new").write_text(str(gateway.proc.pid))
    pid.with_suffix(".new").replace(pid)
    spark.dataSource.register(FaultySource)
    rows = spark.readStream.schema("value string").option("maxFilesPerTrigger", 1).text(str(folder / "in"))
    rows = rows.repartition(plan["partitions"]).selectExpr(
        "value", f"concat('{plan['topic']}', if(cast(value as int) % 5 = 0, '-b', '-a')) as __topic"
    )
    query = (
        rows.writeStream.format("pulsarbox")
        .option("service.url", plan["url"])
        .option("admin.url", plan["web_url"])
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main()
