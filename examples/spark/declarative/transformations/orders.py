"""Declarative pipeline from topic to table to topic: ``orders`` is a table, ``bills`` a topic with its large ones."""

from pyspark import pipelines
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

spark = SparkSession.active()
BROKER = {name: spark.conf.get(f"orders.{name}") or "" for name in ("service.url", "admin.url")}


@pipelines.table
def orders() -> DataFrame:
    """Return the orders, as they arrive."""
    source = spark.readStream.format("pulsarbox").options(**BROKER).option("topic", "orders")
    rows = source.option("startingOffsets", "earliest").load()
    total = "CAST(CAST(value AS STRING) AS INT) AS total"
    return rows.selectExpr("CAST(__key AS STRING) AS customer", total, "__publishTime AS at")


@pipelines.materialized_view
def customers() -> DataFrame:
    """Return the total of each customer."""
    return spark.table("orders").groupBy("customer").agg(sql.sum("total").alias("total"))


pipelines.create_sink("bills", "pulsarbox", {**BROKER, "topic": "bills"})


@pipelines.append_flow(target="bills")
def large() -> DataFrame:
    """Publish large orders."""
    rows = spark.readStream.table("orders").where("total >= 100")
    return rows.selectExpr("customer AS __key", "CAST(total AS STRING) AS value")
