"""Output directories of exports: rejected unless empty, and replaced only by a complete export."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from pulsarbox.errors import Conflict, PulsarBoxError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

STAGED: Final = ".exporting"
"""Suffix of the adjacent directory in which a replacement is written."""


class NotEmptyError(Conflict):
    """The output directory already has files."""


def check_empty(where: str) -> None:
    """Raise NotEmptyError for a non-empty directory on this machine."""
    if urlsplit(where).scheme not in ("", "file"):
        return
    place = Path(urlsplit(where).path if where.startswith("file:") else where)
    if place.is_file() or (place.is_dir() and any(place.iterdir())):
        raise NotEmptyError(f"{place} is not empty: use --append, --overwrite, or another directory")


def write(rows: "DataFrame", form: str, place: str, mode: str, options: Mapping[str, str]) -> None:
    """Write rows to a directory. ``mode``: ``append``, ``overwrite``, or empty for a directory that is empty.

    Spark publishes the files once all are complete. ``overwrite`` writes to an adjacent directory first and keeps the
    existing files until then. Raises Spark's errors.
    """
    if mode == "overwrite":
        staged = _beside(place)
        rows.write.format(form).mode("overwrite").options(**options).save(staged)
        _replace(rows.sparkSession, place, staged)
        return
    is_url = urlsplit(place).scheme not in ("", "file")
    rows.write.format(form).mode(mode or ("errorifexists" if is_url else "append")).options(**options).save(place)


def _beside(place: str) -> str:
    head, slash, name = place.rstrip("/").rpartition("/")
    return f"{head}{slash}.{name}{STAGED}"


def _replace(spark: "SparkSession", place: str, staged: str) -> None:
    """Replace a directory with another. Raises PulsarBoxError if the rename fails."""
    jvm: Any = spark._jvm
    there, new = jvm.org.apache.hadoop.fs.Path(place), jvm.org.apache.hadoop.fs.Path(staged)
    files = there.getFileSystem(spark._jsc.hadoopConfiguration())
    files.delete(there, True)
    if not files.rename(new, there):
        raise PulsarBoxError(
            f"the export is complete in {staged}, but cannot be renamed to {place}: rename it manually"
        )
