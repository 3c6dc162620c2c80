"""Differences of two messages by field."""

import json
from typing import Any

import pytest

from pulsarbox.tui.viewer.difference import CHANGES_MAX, differences
from pulsarbox.tui.viewer.document import Document
from tests.unit.tui.viewer.test_json_reader import VALUES, read


def compared(one: Any, two: Any) -> list[str]:
    first, second = read(json.dumps(one)), read(json.dumps(two))
    return [
        f"{change.sign} {second.path_of(change.after) if change.before < 0 else first.path_of(change.before)}"
        for change in differences(first, second)
        if change is not None
    ]


@pytest.mark.parametrize("value", VALUES)
def test_equal_messages_have_no_difference(value: Any) -> None:
    assert compared(value, value) == []


@pytest.mark.parametrize(
    ("one", "two", "told"),
    [
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, []),
        ({"a": 1}, {"a": 2}, ["~ a"]),
        ({"a": 1}, {"b": 1}, ["- a", "+ b"]),
        ({"a": {"b": [1, 2]}}, {"a": {"b": [1, 3]}}, ["~ a.b[1]"]),
        ([1, 2, 3], [0, 1, 2, 3], ["+ [0]"]),
        ([1, 2, 3, 4], [1, 3, 4], ["- [1]"]),
        ([{"x": 1}, {"x": 2}], [{"x": 1}, {"x": 5}, {"x": 2}], ["+ [1]"]),
        ({"a": [1]}, {"a": {"0": 1}}, ["~ a"]),
        (1, "1", ["~ "]),
        ({"a": None}, {}, ["- a"]),
        ({"a": 1.0}, {"a": 1}, ["~ a"]),
    ],
)
def test_fields_that_were_added_removed_and_changed(one: Any, two: Any, told: list[str]) -> None:
    assert compared(one, two) == told


def test_escapes_are_no_difference() -> None:
    assert [each for each in differences(read('"caf\\u00e9"'), read('"café"')) if each] == []


def test_nothing_and_something_differ() -> None:
    assert [each.sign for each in differences(Document(), read("1")) if each] == ["+"]
    assert [each.sign for each in differences(read("1"), Document()) if each] == ["-"]
    assert list(differences(Document(), Document())) == []


def test_large_and_deep_messages_are_compared_in_small_steps_and_up_to_a_limit() -> None:
    one, two = list(range(CHANGES_MAX + 5)), list(range(1, CHANGES_MAX + 6))
    found = list(differences(read(json.dumps({"a": one})), read(json.dumps({"a": [[each] for each in two]}))))
    assert sum(each is not None for each in found) == CHANGES_MAX
    assert found.count(None) > 50
    deep = ["[" * 5000 + inner + "]" * 5000 for inner in ("1", "2")]
    assert sum(each is not None for each in differences(*map(read, deep))) == 1
