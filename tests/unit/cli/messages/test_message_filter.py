"""Filters: the fields of a message, and rejection of anything but message expressions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarbox.cli.messages.message_filter import parse_filter
from pulsarbox.protocol.message_encoder import Outgoing
from tests.unit.cli.incoming import received

MESSAGE = received(
    Outgoing(
        b'{"total": 7, "user": {"name": "Ann", "tags": ["a", "b"]}}',
        "key-1",
        properties=[("region", "eu")],
        event_time=5,
    )
)


@pytest.mark.parametrize(
    ("expression", "holds"),
    [
        ('key == "key-1"', True),
        ("key == 'other'", False),
        ('key != "other" and size > 10', True),
        ('key == "other" or redelivery >= 3', True),
        ("not tombstone", True),
        ("tombstone", False),
        ('props.region == "eu"', True),
        ('props["region"] in ("eu", "us")', True),
        ('"region" in props', True),
        ("props.none == null", True),
        ("props.none > 5", False),
        ('props.none < "a"', False),
        ("json.total == 7", True),
        ("5 < json.total <= 7", True),
        ("5 < json.total < 7", False),
        ('json.user.name == "Ann"', True),
        ('json.user.tags[1] == "b"', True),
        ('"a" in json.user.tags', True),
        ('"z" not in json.user.tags', True),
        ("json.user.age > 18", False),
        ("json.user.age is None", True),
        ('json.total > "a"', False),
        ('payload != ""', True),
        ('matches(key, "^key-[0-9]+$")', True),
        ('matches(props.none, ".")', False),
        ('startswith(topic, "persistent://")', True),
        ('endswith(key, "2")', False),
        ('contains(payload, "Ann")', True),
        ('lower(json.user.name) == "ann"', True),
        ("len(json.user.tags) == 2", True),
        ("len(7) == null", True),
        ('publish_time > time("2020-01-01")', True),
        ("event_time == 5", True),
        ("seq == 0 and producer == 'sender' and id == '12:7:-1:-1' and partition == -1", True),
        ("redelivery > -1", True),
        ("true", True),
        ("false", False),
    ],
)
def test_what_holds(expression: str, holds: bool) -> None:
    assert parse_filter(expression)(MESSAGE) is holds


def test_payloads_that_are_no_json() -> None:
    for payload in (b"", b"\xff", b"[", None):
        assert not parse_filter("json.a.b > 1")(received(Outgoing(payload)))


@pytest.mark.parametrize(
    "expression",
    [
        "",
        "key ==",
        "unknown == 1",
        "__import__('os').system('true')",
        "().__class__",
        "key.__class__",
        "props.__class__.__mro__",
        "payload.format(key)",
        "open('x')",
        "lambda: 1",
        "[each for each in (1, 2)]",
        "key if key else key",
        "(key := 1)",
        'f"{key}"',
        "1 + 1",
        "2 ** 99999999",
        "key[0]",
        "b'x' == key",
        "...",
        "-key",
        "*key",
        "lower()",
        "lower(key, key)",
        "matches(key, key)",
        "matches(key, '(')",
        "time(key)",
        "time('soon')",
        "not " * 60 + "key",
        "(" * 500 + "key" + ")" * 500,
        "key; key",
        "\0",
    ],
)
def test_what_is_refused(expression: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_filter(expression)


@given(st.text(alphabet="abkey. ()[]<>=!'\"andornt_01,;:+-*json", max_size=40))
def test_any_text_is_a_filter_or_refused(expression: str) -> None:
    try:
        wanted = parse_filter(expression)
    except ValueError:
        return
    assert isinstance(wanted(MESSAGE), bool)
