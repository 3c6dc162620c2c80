"""Topics as tables and views of Spark SQL."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.conftest import Running

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def table(spark: "SparkSession", box: Running, client: Any, topic: str) -> Iterator[str]:
    """Create a table of a topic with two messages."""
    producer = client.create_producer(topic)
    for number in range(2):
        producer.send(b"%d" % number, partition_key="k")
    urls = f"`service.url` '{box.url}', `admin.url` '{box.web_url}'"
    spark.sql(f"CREATE TABLE orders USING pulsarbox OPTIONS (topic '{topic}', {urls}, startingOffsets 'earliest')")
    yield "orders"
    spark.sql("DROP TABLE orders")


def test_a_table_is_read_and_written_with_the_options_of_its_creation(spark: "SparkSession", table: str) -> None:
    assert spark.sql(f"SELECT count(*) FROM {table}").first()[0] == 2  # type: ignore[index]
    spark.sql(f"INSERT INTO {table} (value, __key) VALUES (CAST('2' AS BINARY), CAST('new' AS BINARY))")
    rows = spark.sql(f"SELECT CAST(value AS STRING), CAST(__key AS STRING) FROM {table} ORDER BY 1").collect()
    assert [tuple(row) for row in rows] == [("0", "k"), ("1", "k"), ("2", "new")]
    assert spark.sql(f"SELECT * FROM {table} WITH (startingOffsets = 'latest')").collect() == []


def test_a_table_with_listed_columns_says_how_to_create_it(spark: "SparkSession") -> None:
    spark.sql("CREATE TABLE listed (value BINARY) USING pulsarbox OPTIONS (topic 'orders')")
    try:
        with pytest.raises(Exception, match="create it without columns"):
            spark.sql("SELECT * FROM listed").collect()
    finally:
        spark.sql("DROP TABLE listed")


@pytest.mark.campaign
def test_a_view_is_read_with_its_options(spark: "SparkSession", box: Running, client: Any, topic: str) -> None:
    client.create_producer(topic).send(b"x")
    urls = f"`service.url` '{box.url}', `admin.url` '{box.web_url}'"
    spark.sql(f"CREATE TEMPORARY VIEW recent USING pulsarbox OPTIONS (topic '{topic}', {urls})")
    try:
        assert spark.sql("SELECT CAST(value AS STRING) FROM recent").first()[0] == "x"  # type: ignore[index]
    finally:
        spark.catalog.dropTempView("recent")
