"""Jar with the JVM part of the formats, which sessions load if it is there. Does not import pyspark."""

from pathlib import Path
from typing import Final

JAR: Final = Path(__file__).with_name("jars") / "pulsarbox-spark.jar"


def jar() -> Path | None:
    """Return the jar; None if this installation has none."""
    return JAR if JAR.is_file() else None
