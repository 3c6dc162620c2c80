"""Values of results in text formats."""

import json
import math
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from pulsarbox.cli.sql.result_values import JsonValues, cell, csv_field, unique


def rows(columns: dict[str, pa.Array], form: str = "text", **more: Any) -> list[dict[str, Any]]:
    batch = pa.record_batch(columns)
    return JsonValues(batch.schema, form, **more).rows(batch)


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (pa.array([1, None]), [1, None]),
        (pa.array([math.nan, math.inf, 0.5]), ["nan", "inf", 0.5]),
        (pa.array([Decimal(10**30)], pa.decimal128(38, 0)), [10**30]),
        (pa.array([Decimal("1.50")], pa.decimal128(5, 2)), [1.5]),
        (pa.array([Decimal("1234567890123456.78")], pa.decimal128(18, 2)), ["1234567890123456.78"]),
        (pa.array([date(2026, 11, 23)]), ["2026-11-23"]),
        (pa.array([time(1, 2, 3)]), ["01:02:03"]),
        (pa.array([timedelta(seconds=90)]), [90.0]),
        (pa.array([datetime(2026, 11, 23, 1, 2, 3, 4, UTC)]), ["2026-11-23T01:02:03.000004+00:00"]),
        (pa.array([[1, None]]), [[1, None]]),
        (pa.array([{"a": b"x"}]), [{"a": "x"}]),
        (pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())), [{"k": 1}]),
        (pa.array([[(5, True)]], pa.map_(pa.int64(), pa.bool_())), [{"5": True}]),
    ],
)
def test_each_type_has_a_json_value(array: pa.Array, expected: list[Any]) -> None:
    found = [row["x"] for row in rows({"x": array})]
    assert found == expected
    json.dumps(found, allow_nan=False)


@pytest.mark.parametrize(("form", "expected"), [("text", "a\\xff"), ("base64", "Yf8="), ("hex", "61ff")])
def test_bytes_are_text_as_requested(form: str, expected: str) -> None:
    assert rows({"x": pa.array([b"a\xff"])}, form) == [{"x": expected}]


def test_times_for_people_are_shorter() -> None:
    array = pa.array([datetime(2026, 11, 23, 1, 2, 3, 4000, UTC)], pa.timestamp("us", tz="Europe/Berlin"))
    assert rows({"x": array}, for_people=True) == [{"x": "2026-11-23 02:02:03.004+01:00"}]


def test_repeated_names_get_a_number() -> None:
    assert unique(["a", "a", "b", "a"]) == ["a", "a_1", "b", "a_2"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, ""), ("", '""'), ("a", "a"), ('a"b', '"a""b"'), (" a", '" a"'), ("a,b", '"a,b"'), (1.5, "1.5"),
        (True, "true"), ([1, "x"], '"[1, ""x""]"'),
    ],
)  # fmt: skip
def test_csv_distinguishes_null_from_empty_text(value: Any, expected: str) -> None:
    assert csv_field(value) == expected


def test_cells_escape_control_characters() -> None:
    assert cell("a\x1b[31m\n") == "a\\x1b[31m\\n"
    assert cell({"a": [1, None]}) == '{"a": [1, null]}' and cell(True) == "true" and cell(None) == ""
