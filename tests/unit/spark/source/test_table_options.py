"""Options that a table keeps in the metadata of its columns."""

import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType

from pulsarbox.spark.options import BATCH, WRITE, OptionError
from pulsarbox.spark.source.table_options import keep, of_creation, with_stored

GIVEN = {"provider": "pulsarbox", "owner": "me", "option.topic": "orders", "topic": "orders", "option.keep": "all"}


def schema() -> StructType:
    return StructType([StructField("id", LongType(), True, {"comment": "unique"}), StructField("__key", StringType())])


def test_the_options_of_a_table_are_those_of_its_reads_and_writes() -> None:
    created = of_creation(GIVEN | {"option.startingoffsets": "latest"})
    assert created == {"topic": "orders", "keep": "all", "startingoffsets": "latest"}
    table = StructType.fromJson(keep(schema(), created).jsonValue())
    assert table.fields[0].metadata["comment"] == "unique"
    assert with_stored({}, table, BATCH) == {"topic": "orders", "startingoffsets": "latest"}
    assert with_stored({"startingOffsets": "earliest"}, table, BATCH) == {
        "topic": "orders",
        "startingOffsets": "earliest",
    }
    assert with_stored({}, table, WRITE) == {"topic": "orders", "keep": "all"}


def test_columns_that_come_from_a_table_do_not_bring_its_options() -> None:
    table = keep(schema(), {"topic": "orders", "service.url": "pulsar://h:1"})
    assert with_stored({"topics": "a,b"}, table, BATCH) == {"topics": "a,b"}
    assert with_stored({"service.url": "pulsar://h:2"}, table, WRITE) == {"service.url": "pulsar://h:2"}


def test_a_read_creates_no_table() -> None:
    assert of_creation({"topic": "orders"}) is None
    assert with_stored({"a": "b"}, schema(), BATCH) == {"a": "b"}


def test_the_catalog_stores_no_secrets() -> None:
    with pytest.raises(OptionError, match="option token would be visible in the catalog: use tokenFile"):
        of_creation(GIVEN | {"option.token": "hidden"})
