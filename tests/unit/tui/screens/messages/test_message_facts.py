"""Metadata of a message as lines."""

import base64

import pytest

from pulsarbox.tui.screens.messages.message_facts import facts, fitted_facts
from tests.unit.tui.fake import message


def test_the_number_zero_is_shown_where_it_says_something() -> None:
    told = facts(message(0, schemaVersion=0, partition=0, redeliveries=0, state="waiting"), 40)
    assert {"schema       0", "partition    0", "redeliveries 0", "state        waiting"} <= set(told)


def test_absent_values_have_no_line() -> None:
    row = message(
        *(0,), key=None, properties={}, partition=-1, redeliveries=0, state=None, batchSize=None, tombstone=False,
        eventTime=0, marker=False, chunk=None, orderingKey=None, closed=None, damaged=None,
    )  # fmt: skip
    assert len(facts(row, 40)) == 1


@pytest.mark.parametrize(
    ("key", "told"),
    [(b"a b", "a b"), (b"a\x1b", "a\\x1b"), (b"\xff", "/w== (base64)")],
    ids=["text", "control", "bytes"],
)
def test_ordering_keys_are_text_where_they_can_be(key: bytes, told: str) -> None:
    assert f"ordering key {told}" in facts(message(0, orderingKey=base64.b64encode(key).decode()), 40)


def test_times_are_named() -> None:
    assert [line[:12] for line in facts(message(0, eventTime=1_700_000_000_000), 40)][2] == "event time  "


@pytest.mark.parametrize("count", [0, 1, 2, 3, 11, 200])
@pytest.mark.parametrize("room", [2, 5, 8, 300])
def test_properties_are_left_out_and_counted_where_there_is_no_room(count: int, room: int) -> None:
    row = message(0, properties={f"name-{at}": "x" for at in range(count)})
    lines = fitted_facts(row, 40, room)
    shown = sum(" = x" in line for line in lines)
    assert (shown == count) == (f"properties   {count}, {shown} shown" not in lines)
    assert len(lines) <= max(room, 4)
    assert lines == facts(row, 40) or (shown < count - 1 and len(lines) < len(facts(row, 40)))
