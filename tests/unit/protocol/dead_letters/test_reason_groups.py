"""Groups of dead letters by reason: sums, and filters that select exactly their messages."""

from typing import Any

import pytest

from pulsarbox.broker.replay.entry_messages import InspectedMessage, open_entry
from pulsarbox.broker.replay.grouping import FailureGroup
from pulsarbox.protocol.dead_letters.fingerprint import fingerprint
from pulsarbox.protocol.dead_letters.message_filter import message_language
from pulsarbox.protocol.dead_letters.reason_groups import by_reason, shape_filter
from pulsarbox.protocol.metadata import encode_entry
from pulsarbox.protocol.PulsarApi_pb2 import MessageMetadata
from pulsarbox.storage.record import Entry
from tests.unit.broker.replay.playbook import DLQ, pairs

ORDERS = {"REAL_TOPIC": "persistent://public/default/orders", "REAL_SUBSCRIPTION": "billing"}


def message(body: bytes, **properties: str) -> InspectedMessage:
    metadata = MessageMetadata(producer_name="p", sequence_id=1, publish_time=1, properties=pairs(properties))
    entry = Entry(3, 4, 0, 1, 1, 1, 0, 1, 1, 0, 0, encode_entry(metadata, body))
    return open_entry(entry, DLQ, {}, 1 << 20).messages[0]


def group(of: InspectedMessage, count: int = 1, last: int = 0) -> dict[str, Any]:
    return FailureGroup(fingerprint(of), count, 10 - last, last, f"3:{last}", DLQ).as_json()


def test_groups_with_the_same_reason_are_one_with_their_sums() -> None:
    failed = {**ORDERS, "error": "timeout after 3 s"}
    few, many = message(b"text", **failed), message(b'{"n": 1}', **failed)
    other = message(b"text", **ORDERS, error="refused")
    reasons = by_reason([group(few, 2, last=7), group(many, 5, last=3), group(other, 6)])
    assert [each.row["count"] for each in reasons] == [7, 6]
    row = reasons[0].row
    assert (row["reason"], row["first"], row["last"], row["sample"]) == ("timeout after # s", 3, 7, "3:7")
    assert row["fingerprint"] == row["shape"] == ""
    assert [each["shape"] for each in reasons[0].shapes] == ["{n: number}", "text"]
    assert reasons[1].row == group(other, 6)


def test_a_reason_of_another_origin_is_another_one() -> None:
    one = message(b"text", **ORDERS, error="refused")
    other = message(b"text", error="refused")
    assert len(by_reason([group(one), group(other)])) == 2


@pytest.mark.parametrize("reason", ["refused", "", "quote \" and ' \\", "\N{SNOWMAN}\u202e\x07\x00 \N{PILE OF POO}"])
@pytest.mark.parametrize("more", [ORDERS, {}, {"REAL_TOPIC": ""}])
def test_a_filter_selects_all_shapes_of_a_reason_or_one(reason: str, more: dict[str, str]) -> None:
    failed = {**more, "error": reason} if reason else more
    shapes = [message(body, **failed) for body in (b"text", b'{"n": 1}', b"\xff\xff")]
    others = [message(b"text", **more, error="else"), message(b"text", **{**failed, "REAL_SUBSCRIPTION": "other"})]
    (whole,) = by_reason(map(group, shapes))
    language = message_language()
    wanted = language.parse(whole.filter, 0)
    assert whole.filter.isascii()
    assert [wanted(each) for each in (*shapes, *others)] == [True, True, True, False, False]
    one = language.parse(shape_filter(whole.shapes[0]), 0)
    assert [one(each) for each in (*shapes, *others)] == [True, False, False, False, False]


def test_a_reason_with_one_shape_is_that_shape() -> None:
    known = group(message(b"text", **ORDERS, error="refused"))
    (only,) = by_reason([known])
    assert only.filter == shape_filter(known) == f'fingerprint == "{known["fingerprint"]}"'
