"""Python functions over Spark rows without pandas, which Spark requires at definition but does not use."""

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

if TYPE_CHECKING:
    from pyarrow import RecordBatch

    Work = Callable[[Iterable[RecordBatch]], Iterator[RecordBatch]]


def map_in_arrow(frame: DataFrame, work: "Work", fields: StructType | str) -> DataFrame:
    """Apply ``work`` to the batches of each partition; ``fields`` is the result schema, also as a DDL string."""
    with without_pandas():
        return frame.mapInArrow(work, fields)


@contextlib.contextmanager
def without_pandas() -> Iterator[None]:
    """Disable Spark's check for pandas within the context."""
    import pyspark.sql.pandas.functions as home

    asked: Any = home.require_minimum_pandas_version  # type: ignore[attr-defined]
    home.require_minimum_pandas_version = _nothing  # type: ignore[attr-defined]
    try:
        yield
    finally:
        home.require_minimum_pandas_version = asked  # type: ignore[attr-defined]


def _nothing() -> None:
    pass
