"""Registration of the format with Spark, automatic and manual."""

from typing import TYPE_CHECKING

import pytest

from pulsarbox.spark import register
from tests.e2e.conftest import Running

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_the_format_is_known_where_pulsarbox_is_installed(spark: "SparkSession", box: Running, topic: str) -> None:
    box.admin("PUT", topic.replace("://", "/"))
    frame = spark.read.format("pulsarbox").option("service.url", box.url).option("admin.url", box.web_url)
    names = frame.option("topic", topic).load().columns
    assert names == ["value", "__key", "__topic", "__messageId", "__publishTime", "__eventTime", "__messageProperties"]


def test_it_may_be_registered_by_hand(spark: "SparkSession") -> None:
    register(spark)


def test_a_wrong_option_is_told_with_the_right_one(spark: "SparkSession") -> None:
    from pyspark.errors import AnalysisException

    said = r"unknown option 'startingofset' .*did you mean startingOffsets\?"
    with pytest.raises(AnalysisException, match=said) as found:
        spark.read.format("pulsarbox").option("topic", "t").option("startingOfset", "earliest").load()
    assert "options.py" not in str(found.value), "no frames of the package"
