"""Python functions over rows of Spark without pandas: Spark asks for it where they are made, but uses it nowhere."""

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

if TYPE_CHECKING:
    from pyarrow import RecordBatch

    Work = Callable[[Iterable[RecordBatch]], Iterator[RecordBatch]]


def map_in_arrow(frame: DataFrame, work: "Work", fields: StructType | str) -> DataFrame:
    """What ``work`` makes of the batches of each partition; ``fields``: its columns, also as Spark's SQL has them."""
    with without_pandas():
        return frame.mapInArrow(work, fields)


@contextlib.contextmanager
def without_pandas() -> Iterator[None]:
    """While it lasts, Spark does not ask whether pandas is there."""
    import pyspark.sql.pandas.functions as home

    asked: Any = home.require_minimum_pandas_version  # type: ignore[attr-defined]
    home.require_minimum_pandas_version = _nothing  # type: ignore[attr-defined]
    try:
        yield
    finally:
        home.require_minimum_pandas_version = asked  # type: ignore[attr-defined]


def _nothing() -> None:
    pass
