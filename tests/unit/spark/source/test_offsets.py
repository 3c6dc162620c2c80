"""The text form of offsets: canonical, with errors that explain what to do."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarbox.protocol.PulsarApi_pb2 import MessageIdData
from pulsarbox.spark.source.offsets import END, Mark, OffsetError, asked, document, marks, parse, text
from pulsarbox.spark.topic_segments import BEGINNING, ReadPosition

IDS = st.integers(0, END.ledger)
PLACES = st.builds(ReadPosition, IDS, IDS, st.integers(0, 10**9 - 1))
TOPIC = "persistent://public/default/orders"


@given(PLACES)
def test_a_place_is_what_its_text_says(place: ReadPosition) -> None:
    assert parse(text(place)) == place


@pytest.mark.parametrize("place", [BEGINNING, END])
def test_the_ends_of_everything_have_texts_too(place: ReadPosition) -> None:
    assert parse(text(place)) == place


@given(st.dictionaries(st.text(min_size=1), st.builds(Mark, PLACES, st.integers(-1, 2**62))))
def test_equal_offsets_have_equal_texts(found: dict[str, Mark]) -> None:
    backwards = dict(reversed(found.items()))
    assert json.dumps(document(found)) == json.dumps(document(backwards))
    assert marks(json.loads(json.dumps(document(found)))) == found


@pytest.mark.parametrize("wrong", ["", "12", "12:", "12:3:", "a:b", "12:-3", "1:2:3:4", f"{2**63}:0", " 1:2"])
def test_what_is_no_place_is_refused(wrong: str) -> None:
    with pytest.raises(OffsetError, match="ledger:entry"):
        parse(wrong)


def test_an_offset_of_another_source_is_refused() -> None:
    with pytest.raises(OffsetError, match="checkpointLocation"):
        marks({"orders": "12:3"})
    with pytest.raises(OffsetError, match="positions of its topics"):
        marks({"v": 1})


def test_a_user_names_places_in_several_ways() -> None:
    inside = list(MessageIdData(ledgerId=11, entryId=101, batch_index=2).SerializeToString())
    signed = [number - 256 if number > 127 else number for number in inside]
    given = {"orders": "12:345", TOPIC + "2": "Earliest", "bills": signed, "t": "latest"}
    assert asked(given) == {
        TOPIC: ReadPosition(12, 345),
        TOPIC + "2": "earliest",
        "persistent://public/default/bills": ReadPosition(11, 101, 2),
        "persistent://public/default/t": "latest",
    }


def test_the_text_of_a_checkpoint_is_taken_as_it_is() -> None:
    assert asked(document({TOPIC: Mark(ReadPosition(12, 345, 6), 7)})) == {TOPIC: Mark(ReadPosition(12, 345, 6), 7)}
    assert asked(document({TOPIC: Mark(ReadPosition(12, 345, 6))})) == {TOPIC: ReadPosition(12, 345, 6)}


def test_the_ids_of_java_for_both_ends_are_known() -> None:
    """MessageId.earliest is -1:-1, and MessageId.latest the largest ID; Java's bytes are signed."""
    earliest = [8, -1, -1, -1, -1, -1, -1, -1, -1, -1, 1, 16, -1, -1, -1, -1, -1, -1, -1, -1, -1, 1]
    latest = [8, -1, -1, -1, -1, -1, -1, -1, -1, 127, 16, -1, -1, -1, -1, -1, -1, -1, -1, 127]
    assert asked({"orders": earliest}) == {TOPIC: "earliest"}
    assert asked({"orders": latest}) == {TOPIC: "latest"}


@pytest.mark.parametrize("wrong", [7, None, [1, 2, 3], ["a"], "yesterday"])
def test_what_names_no_place_is_refused(wrong: object) -> None:
    with pytest.raises(OffsetError):
        asked({"orders": wrong})
