"""Python functions over batches of Arrow's, without pandas: Spark's own ``mapInArrow`` asks for it, and uses none."""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql.udf import _create_udf
from pyspark.util import PythonEvalType

if TYPE_CHECKING:
    from pyarrow import RecordBatch

    Work = Callable[[Iterable[RecordBatch]], Iterator[RecordBatch]]


def map_in_arrow(frame: DataFrame, work: "Work", fields: str) -> DataFrame:
    """What ``work`` makes of the batches of each partition; ``fields``: its columns as Spark's SQL declares them."""
    function = _create_udf(work, fields, PythonEvalType.SQL_MAP_ARROW_ITER_UDF, name="work")
    column = function(*(frame[name] for name in frame.columns))
    made = frame._jdf.mapInArrow(column._jc, False, None)
    return DataFrame(made, frame.sparkSession)
