"""That Spark knows the format, by itself and by hand."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_tasks_run_in_this_environment(spark: "SparkSession") -> None:
    assert spark.range(10).count() == 10
