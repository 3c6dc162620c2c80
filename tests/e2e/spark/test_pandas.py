"""pandas: frames of topics, pandas functions, and pandas functions by key."""

from typing import TYPE_CHECKING, Any

from tests.e2e.conftest import Running

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def pandas_of(frame: "DataFrame") -> Any:
    return frame.toPandas()


def test_topics_in_pandas(spark: "SparkSession", box: Running, client: Any, topic: str) -> None:
    import pandas as pd
    from pyspark.sql.functions import pandas_udf  # type: ignore[attr-defined]

    def length(values: pd.Series) -> pd.Series:
        return values.str.len()

    def largest(rows: pd.DataFrame) -> pd.DataFrame:
        return rows.nlargest(1, "total")

    producer = client.create_producer(topic)
    for number in range(6):
        producer.send(b"%d" % 10**number, partition_key=f"k{number % 2}")
    urls = {"service.url": box.url, "admin.url": box.web_url}
    frame = spark.read.format("pulsarbox").options(**urls, topic=topic).load()
    texts = frame.selectExpr("CAST(__key AS STRING) AS k", "CAST(value AS STRING) AS text")
    rows = texts.selectExpr("*", "CAST(text AS INT) AS total")
    assert sorted(pandas_of(frame)["value"]) == [b"%d" % 10**number for number in range(6)]
    lengths = pandas_of(rows.select(pandas_udf(length, "long")("text").alias("n")))
    assert sorted(lengths["n"]) == [1, 2, 3, 4, 5, 6]
    most = pandas_of(rows.groupBy("k").applyInPandas(largest, rows.schema))
    assert sorted(most["total"]) == [10**4, 10**5]
