"""The filter language, over objects of any kind."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarbox.expressions import Language, Pattern, inside

NOW = 1_700_000_000_000
ROW = {"topic": "persistent://shop/eu/orders", "backlog": 1200, "cause": None, "since": NOW - 60_000}
NAMES = ("topic", "backlog", "cause", "since")


def named(name: str) -> Callable[[Any], Any] | None:
    return (lambda row: row[name]) if name in NAMES else None


def member(name: str, path: list[str]) -> None:
    return None


ROWS = Language(named, member, ", ".join(NAMES), searched=lambda row: [row["topic"], row["cause"] or ""])


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("backlog>1000", True),
        ('backlog > 1000 and cause == "throttled"', False),
        ("cause is None", True),
        ("cause > 1", False),
        ('since < time("-30s")', True),
        ('since < time("-2m")', False),
        ('matches(topic, "/eu/")', True),
        ("/orders$", True),
        (" /shop/eu/ord", True),
        ("/^orders", False),
        ("!/orders", False),
        ("! /invoices", True),
        ("/", True),
    ],
)
def test_what_holds(text: str, holds: bool) -> None:
    assert ROWS.parse(text, NOW)(ROW) is holds


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("size > 1", "unknown name 'size': expected one of topic, backlog, cause, since"),
        ("topic.a == 1", "unknown name 'topic.a'"),
        ("/(", "invalid regular expression '('"),
        ("!!/a", "invalid search '!!/a': expected /pattern or !/pattern"),
        ('matches(topic, "(")', "invalid regular expression '('"),
        ("", "invalid expression"),
        ("backlog = 1", "invalid expression"),
        ("topic contains 'a'", "functions such as contains(x, 'a'): startswith, "),
    ],
)
def test_what_is_refused_says_why(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        ROWS.parse(text, NOW)


def test_things_without_texts_cannot_be_searched() -> None:
    with pytest.raises(ValueError, match="invalid expression"):
        Language(named, member, "").parse("/orders", NOW)


def test_regular_expressions_may_be_those_of_another_library() -> None:
    asked = []

    class Literal:
        def __init__(self, text: str) -> None:
            self.text = text

        def search(self, text: str) -> object:
            asked.append(text)
            return True if self.text in text else None

    def compiled(text: str) -> Pattern:
        return Literal(text)

    rows = Language(named, member, "", searched=lambda row: [row["topic"]], compiled=compiled)
    assert rows.parse("/shop/eu", NOW)(ROW)
    assert not rows.parse('matches(topic, "s.*p")', NOW)(ROW)
    assert asked == [str(ROW["topic"]).removeprefix("persistent://"), ROW["topic"]]


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("/per", ["persistent://shop/eu/periods", "non-persistent://shop/eu/quick"]),
        ("!/per", ["persistent://shop/eu/orders"]),
        ("/^shop/eu/o", ["persistent://shop/eu/orders"]),
        ("/^persistent://shop/.*s$", ["persistent://shop/eu/orders", "persistent://shop/eu/periods"]),
        ("/non-persistent", ["non-persistent://shop/eu/quick"]),
        ('contains(topic, "persistent://shop/eu/o")', ["persistent://shop/eu/orders"]),
    ],
)
def test_the_scheme_that_almost_all_share_is_found_only_where_it_is_meant(pattern: str, found: list[str]) -> None:
    topics = ["persistent://shop/eu/orders", "persistent://shop/eu/periods", "non-persistent://shop/eu/quick"]
    wanted = ROWS.parse(pattern, NOW)
    assert [topic for topic in topics if wanted({**ROW, "topic": topic, "cause": None})] == found


@given(st.text(alphabet='backlogtopic. /!()[]<>="andornt_01,;:+-*', max_size=40))
def test_any_text_is_a_filter_or_refused(text: str) -> None:
    try:
        wanted = ROWS.parse(text, NOW)
    except ValueError:
        return
    assert isinstance(wanted(ROW), bool)


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("", {"a": [{"b": 5}, "text"], "c": None}),
        ("a.0.b", 5),
        ("a.1", "text"),
        ("a.2", None),
        ("a.-1", None),
        ("a.b", None),
        ("a.1.0", None),
        ("a.1.b", None),
        ("a.0.b.c", None),
        ("c.d", None),
        ("missing.d", None),
        ("a." + "9" * 5000, None),
    ],
)
def test_a_path_leads_into_objects_and_lists_only(path: str, found: object) -> None:
    value = {"a": [{"b": 5}, "text"], "c": None}
    assert inside(value, filter(None, path.split("."))) == found
