"""Directories that exports write: refused where they hold something, and replaced only by a complete export."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from pulsarbox.errors import Conflict, PulsarBoxError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

STAGED: Final = ".exporting"
"""End of the name of the directory beside it in which the replacement of a directory is written."""


class NotEmptyError(Conflict):
    """The directory to write to holds files already."""


def check_empty(where: str) -> None:
    """Raise NotEmptyError for a directory of this machine that holds something."""
    if urlsplit(where).scheme not in ("", "file"):
        return
    place = Path(urlsplit(where).path if where.startswith("file:") else where)
    if place.is_file() or (place.is_dir() and any(place.iterdir())):
        raise NotEmptyError(f"{place} is not empty: give --append, --overwrite, or another directory")


def write(rows: "DataFrame", form: str, place: str, mode: str, options: Mapping[str, str]) -> None:
    """Write rows to a directory. ``mode``: ``append``, ``overwrite``, or empty for a directory that holds nothing yet.

    Spark publishes the files when all of them are complete. ``overwrite`` writes beside the directory first, so that
    the files in it stay until then. Raises what Spark raises.
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
    """Put a directory in the place of another one. Raises PulsarBoxError where the file system refuses."""
    jvm: Any = spark._jvm
    there, new = jvm.org.apache.hadoop.fs.Path(place), jvm.org.apache.hadoop.fs.Path(staged)
    files = there.getFileSystem(spark._jsc.hadoopConfiguration())
    files.delete(there, True)
    if not files.rename(new, there):
        raise PulsarBoxError(f"the export is complete in {staged}, but cannot be renamed to {place}: rename it by hand")
