"""Archive of the classes that Spark loads, for the JVMs of the tests: ``python -m tests.e2e.spark.jvm_archive``.

A JVM with the archive starts with half of the processor time. It is made once, by ``.ci/environment dev``, because
writing it takes longer than a start. Without it, or with an archive of another Java, JVMs load the classes one by one.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pulsarbox.spark.pipelines.session import FAST, archive

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CACHE: Final = Path(__file__).parents[3] / ".make"
END_SECONDS: Final = 600.0
"""Limit of the time that a JVM takes to write the archive and exit."""


def kept() -> Path:
    """Return the path of the archive."""
    return archive(os.environ | {"XDG_CACHE_HOME": str(CACHE)})


def options() -> str:
    """Return the options of JVMs that start fast, with the archive if there is one: for ``SPARK_SUBMIT_OPTS``."""
    shared = (f"-XX:SharedArchiveFile={kept()}", "-Xshare:auto") if kept().exists() else ()
    return " ".join((*FAST, *shared))


def make() -> None:
    """Write the archive: run typical queries in a JVM that writes its classes when it exits."""
    new = kept().with_suffix(".new")
    new.parent.mkdir(parents=True, exist_ok=True)
    os.environ["SPARK_SUBMIT_OPTS"] = " ".join((*FAST, f"-XX:ArchiveClassesAtExit={new}"))
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    with tempfile.TemporaryDirectory() as folder:
        process = _run(Path(folder))
        if process.wait(END_SECONDS) == 0 and new.exists():
            new.replace(kept())


def _run(folder: Path) -> "subprocess.Popen[bytes]":
    """Run the queries and tell the JVM to exit. Returns its process."""
    from pyspark import SparkContext

    from pulsarbox.spark.pipelines.session import session

    spark = session("local[2]", conf={"spark.sql.warehouse.dir": str(folder / "warehouse")}, log=folder / "log")
    _query(spark, folder)
    gateway = SparkContext._gateway
    spark.stop()
    assert gateway is not None
    gateway.shutdown()
    process: subprocess.Popen[bytes] = gateway.proc
    assert process.stdin is not None
    process.stdin.close()
    return process


def _query(spark: "SparkSession", folder: Path) -> None:
    """Use what the tests use: rows of Python, sorting, groups, files of all kinds, a stream."""
    rows = spark.createDataFrame([(1, "a"), (2, "b")], "n int, s string")
    rows.groupBy("s").count().orderBy("s").collect()
    rows.rdd.map(tuple).collect()
    for kind in ("parquet", "json", "csv"):
        rows.write.format(kind).save(str(folder / kind))
        spark.read.schema("n int, s string").format(kind).load(str(folder / kind)).count()
    stream = spark.readStream.schema("n int, s string").json(str(folder / "json"))
    writer = stream.writeStream.format("parquet").option("checkpointLocation", str(folder / "checkpoint"))
    writer.trigger(availableNow=True).start(str(folder / "written")).awaitTermination()


if __name__ == "__main__":
    if shutil.which("java") and not kept().exists():
        make()
    sys.exit(0 if kept().exists() or not shutil.which("java") else 1)
