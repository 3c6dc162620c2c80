"""Expected messages: matching, and the text of failures."""

from typing import Any

import pytest

from pulsarbox import having
from pulsarbox.embed.testing import SeenMessage, difference, expect, matches, wait_until_as_expected


def seen(payload: bytes, key: str | None = None, **properties: str) -> SeenMessage:
    return SeenMessage(payload, key, properties)


@pytest.mark.parametrize(
    ("message", "expected", "fits"),
    [
        (seen(b"a"), b"a", True),
        (seen(b"a"), b"b", False),
        (seen("ä".encode()), "ä", True),
        (seen(b"a"), "b", False),
        (seen(b'{"a": 1, "b": [2]}'), {"b": [2], "a": 1}, True),
        (seen(b"[1, 2]"), [1, 2], True),
        (seen(b"5"), 5, True),
        (seen(b"null"), None, True),
        (seen(b"no json"), {"a": 1}, False),
        (seen(b"\xff"), [1], False),
        (seen(b"abc"), lambda payload: payload.startswith(b"a"), True),
        (seen(b"xbc"), lambda payload: payload.startswith(b"a"), False),
        (seen(b"a", "k", p="1", q="2"), having(b"a", key="k", properties={"p": "1"}), True),
        (seen(b"a", "k"), having(key="other"), False),
        (seen(b"a", "k", p="1"), having(properties={"p": "2"}), False),
        (seen(b"a"), having("a"), True),
        (seen(b"null"), having(None), True),
        (seen(b"a"), having(None), False),
    ],
)
def test_what_matches(message: SeenMessage, expected: object, fits: bool) -> None:
    assert matches(message, expected) is fits


def test_a_failure_shows_each_message_that_is_wrong_missing_or_too_many() -> None:
    lines = difference([seen(b"a"), seen(b"x", "k"), seen(b"c")], [b"a", "b"])
    assert lines == [
        "     0  b'a'",
        "!    1  b'x' key='k'   expected 'b'",
        "+    2  b'c'   not expected",
    ]
    assert difference([], [having(b"a", key="k")]) == ["-       b'a' key='k'   missing"]
    assert difference([seen(b"a")], [b"a"]) == []


def test_in_any_order_each_is_expected_once() -> None:
    assert difference([seen(b"b"), seen(b"a")], [b"a", b"b"], any_order=True) == []
    lines = difference([seen(b"a"), seen(b"a")], [b"a", b"b"], any_order=True)
    assert lines == ["     0  b'a'", "+    1  b'a'   not expected", "-       b'b'   missing"]


def test_of_many_only_what_is_wrong_is_shown_and_no_line_is_long() -> None:
    many = [seen(b"%d" % number) for number in range(1000)]
    lines = difference([*many, seen(b"x" * 500)], [b"%d" % number for number in range(1000)])
    assert len(lines) == 1 and "not expected" in lines[0] and len(lines[0]) < 120
    lines = difference([], [b"x"] * 100)
    assert len(lines) == 41 and lines[-1] == "  ... and 60 more"


def test_it_is_waited_for() -> None:
    looks = iter([[], [seen(b"a")], [seen(b"a"), seen(b"b")]])
    wait_until_as_expected(lambda: (next(looks), ""), [b"a", b"b"], what="t", within=30, any_order=False)
    with pytest.raises(AssertionError, match=r"t: 0 messages, expected 1; no match within 0 s \(gone\)\n-"):
        wait_until_as_expected(lambda: ([], " (gone)"), [b"a"], what="t", within=0, any_order=False)


class Timeout(Exception):  # matched by name, like that of the official client
    pass


class Message:
    def __init__(self, payload: bytes) -> None:
        self.payload = payload

    def data(self) -> bytes:
        return self.payload

    def partition_key(self) -> str:
        return ""

    def properties(self) -> dict[str, str]:
        return {}


class Consumer:
    """Consumer with the methods used by ``expect``."""

    def __init__(self, *payloads: bytes, failure: Exception | None = None) -> None:
        self.left = [Message(payload) for payload in payloads]
        self.failure = failure or Timeout()
        self.acknowledged: list[bytes] = []

    def receive(self, timeout_millis: int) -> Message:
        assert timeout_millis >= 1
        if not self.left:
            raise self.failure
        return self.left.pop(0)

    def acknowledge(self, message: Message) -> None:
        self.acknowledged.append(message.payload)

    def subscription_name(self) -> str:
        return "billing"

    def topic(self) -> str:
        return "orders"


def test_a_consumer_receives_what_is_expected() -> None:
    consumer = Consumer(b"a", b"b", b"c")
    received: list[Any] = expect(consumer).receives(b"a", "b")
    assert [each.data() for each in received] == [b"a", b"b"] == consumer.acknowledged
    expect(consumer).receives(b"c", acknowledge=False)
    assert consumer.acknowledged == [b"a", b"b"]
    expect(consumer).receives_nothing()


def test_what_a_consumer_does_not_receive_is_shown() -> None:
    with pytest.raises(AssertionError) as failed:
        expect(Consumer(b"a")).receives(b"a", b"b", within=0)
    assert str(failed.value).splitlines() == [
        "subscription billing of orders received 1 of 2 expected messages within 0 s",
        "     0  b'a'",
        "-       b'b'   missing",
    ]
    with pytest.raises(AssertionError, match="received b'a', expected no message"):
        expect(Consumer(b"a")).receives_nothing()


def test_other_failures_of_a_consumer_are_its_own() -> None:
    with pytest.raises(OSError, match="gone"):
        expect(Consumer(failure=OSError("gone"))).receives(b"a")
