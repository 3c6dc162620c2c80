"""Consistency of docs/spark.md with the tables in the code."""

import pytest

from pulsarbox.spark.options import ROWS
from tests.tools.generate_spark import DOCUMENT, generate

TEXT = DOCUMENT.read_text("utf-8")


def test_the_tables_are_those_of_the_code() -> None:
    assert generate(TEXT) == TEXT, "make generate"


@pytest.mark.parametrize("name", [each.name for each in ROWS])
def test_an_option_stands_in_the_page(name: str) -> None:
    assert f"`{name}`" in TEXT
