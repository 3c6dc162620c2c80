"""Options of the format pulsar, in the sense of the existing connector."""

import json
from typing import Any

import pytest

from pulsarbox.protocol.PulsarApi_pb2 import MessageIdData
from pulsarbox.spark.connector_options import INSTEAD, remedy, translated
from pulsarbox.spark.options import BATCH, READ, ROWS, STREAM, WRITE, parse
from pulsarbox.spark.topic_segments import ReadPosition

ORDERS = "persistent://public/default/orders"


def signed(ledger: int, entry: int, batch_index: int = -1) -> list[int]:
    """Return a message ID as the connector writes it: signed bytes."""
    text = MessageIdData(ledgerId=ledger, entryId=entry, batch_index=batch_index).SerializeToString()
    return [byte - 256 if byte > 127 else byte for byte in text]


@pytest.mark.parametrize(
    ("place", "after"),
    [
        (signed(16, 101), ReadPosition(16, 102)),
        (signed(300, 200, batch_index=6), ReadPosition(300, 200, 7)),
        ("16:101", ReadPosition(16, 102)),
        ("16:101:0", ReadPosition(16, 101, 1)),
        ("latest", "latest"),
        (signed(2**63 - 1, 2**63 - 1), "latest"),
    ],
)
def test_the_last_message_of_a_range_is_included(place: Any, after: Any) -> None:
    given = {"topic": "orders", "endingOffsets": json.dumps({"orders": place})}
    assert parse(translated(given, BATCH), BATCH).ending_offsets == {ORDERS: after}


def test_the_first_message_of_a_range_is_included() -> None:
    given = {"topic": "orders", "startingoffsets": json.dumps({"orders": signed(16, 101)})}
    assert parse(translated(given, STREAM), STREAM).starting_offsets == {ORDERS: ReadPosition(16, 101)}


@pytest.mark.parametrize("wrong", ["{", '{"orders": 7}', '{"orders": [300]}', "[]", '{"orders": "soon"}'])
def test_an_unreadable_offset_is_refused_as_given(wrong: str) -> None:
    given = {"topic": "orders", "endingOffsets": wrong}
    with pytest.raises(ValueError, match="option endingOffsets"):
        parse(translated(given, BATCH), BATCH)


def test_defaults_are_those_of_the_connector() -> None:
    assert parse(translated({"topic": "t"}, WRITE), WRITE).delivery == "at-least-once"
    assert parse(translated({"topic": "t", "Delivery": "exactly-once"}, WRITE), WRITE).delivery == "exactly-once"
    assert parse(translated({"topic": "t"}, READ), READ).mode == "failfast"
    assert parse(translated({"topic": "t", "MODE": "permissive"}, READ), READ).mode == "permissive"


def test_what_replaces_an_option_is_an_option_or_a_column() -> None:
    names = {name for each in ROWS for name in (each.name, *each.aliases)}
    for name, words in INSTEAD.items():
        assert name not in {each.lower() for each in names}
        first = words.removeprefix("use ").replace("=", " ").replace(",", " ").split()[0]
        assert first in names or words.startswith(("use PEM", "use bytes", "use .schema")), (name, words)


@pytest.mark.parametrize("name", ["topic", "service.url", "checkpointLocation", "startingOfsets"])
def test_other_options_have_no_remedy(name: str) -> None:
    assert remedy(name) == ""
