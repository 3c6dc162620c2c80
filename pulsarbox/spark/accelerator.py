"""Jar with the reader inside the JVM, which sessions load if it is there. Imports pyspark only when used.

``make jar`` builds it from ``jvm/*.java``. Spark takes the jar's source for ``format("pulsarbox")`` instead of the
Python source of this name. It lets the latter plan, and reads the entries that it can itself.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JAR: Final = Path(__file__).with_name("jars") / "pulsarbox-spark.jar"


def jar() -> Path | None:
    """Return the jar; None if this installation has none."""
    return JAR if JAR.is_file() else None


def add_to(spark: "SparkSession") -> None:
    """Add the jar to a running session that lacks it. A session of Spark Connect takes the jars of its server."""
    found = jar()
    if found is None or not hasattr(spark, "_jsparkSession"):
        return
    if found.name not in spark.sparkContext.getConf().get("spark.jars", ""):
        spark.sql(f"ADD JAR '{found}'")
