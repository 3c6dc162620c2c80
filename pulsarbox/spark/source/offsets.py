"""The text in which Spark keeps places in topics, in its checkpoints and in the options of a read. Pure.

An offset is the place that is read next in each topic, so ranges are half open. Spark compares offsets by their text,
so equal ones must have equal texts, in this order::

    {"n": {"persistent://public/default/orders": 678}, "p": {"persistent://public/default/orders": "12:345"}, "v": 1}

``12:345:6`` stands inside a batch. ``n`` is how many messages the topic had had there, where that is known: a place at
the end of a ledger that is gone has lost nothing if the topic has had no more since.
"""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from google.protobuf.message import DecodeError

from pulsarbox.names import parse_topic
from pulsarbox.spark.topic_segments import BEGINNING, Place

VERSION: Final = 1
END: Final = Place(2**63 - 1, 2**63 - 1)
"""Behind everything that a topic can ever have."""

_PLACE: Final = re.compile(r"(-1|\d{1,19}):(-1|\d{1,19})(?::(\d{1,9}))?")


class Mark(NamedTuple):
    """A place, and what is known of it."""

    place: Place
    seen: int = -1
    """The messages that the topic had had, where the place was its end; 0 in front of some; -1: unknown."""


IN_FRONT: Final = 0
"""Of a place in front of messages: where its ledger is gone, these are."""
FIRST: Final = Mark(BEGINNING)
"""Where a topic is read from that came later: its beginning, whatever is left of it."""


class OffsetError(ValueError):
    """A text is no offset; says what is wrong with it."""


def text(place: Place) -> str:
    """``ledger:entry``, or ``ledger:entry:batch`` inside a batch."""
    return f"{place.ledger}:{place.entry}" + (f":{place.batch}" if place.batch else "")


def parse(text: str) -> Place:
    """The place that ``text`` wrote. Raises OffsetError."""
    match = _PLACE.fullmatch(text)
    found = match and Place(int(match[1]), int(match[2]), int(match[3] or 0))
    if not found or max(found) > END.ledger:
        raise OffsetError(f"{text!r} is no place in a topic; one is ledger:entry or ledger:entry:batch, as 12:345")
    return found


def document(marks: Mapping[str, Mark], starts: int = 0) -> dict[str, object]:
    """An offset as Spark takes it from a reader: in the same order whatever that of ``marks`` is. ``starts`` makes
    another one of the same places."""
    found: dict[str, object] = {
        "n": {topic: marks[topic].seen for topic in sorted(marks) if marks[topic].seen >= 0},
        "p": {topic: text(marks[topic].place) for topic in sorted(marks)},
        "v": VERSION,
    }
    return found | {"w": starts} if starts else found


def starts(offset: Mapping[str, object]) -> int:
    """Of what ``document`` made, of which other versions may have left this out."""
    found = offset.get("w", 0)
    return found if isinstance(found, int) else 0


def marks(offset: Mapping[str, object]) -> dict[str, Mark]:
    """What ``document`` made. Raises OffsetError."""
    if offset.get("v") != VERSION:
        raise OffsetError(
            f"the checkpoint has an offset of version {offset.get('v')!r}, this pulsarbox reads version {VERSION}: it "
            "was written by another version or another source. Use that one, or begin with a new checkpointLocation"
        )
    found, seen = offset.get("p"), offset.get("n", {})
    if not isinstance(found, dict) or not isinstance(seen, dict):
        raise OffsetError('an offset must have the places of its topics, as {"p": {"TOPIC": "12:345"}, "v": 1}')
    return {str(topic): Mark(parse(str(place)), int(seen.get(topic, -1))) for topic, place in found.items()}


def asked(given: Mapping[str, object]) -> dict[str, Place | Mark | str]:
    """Places that a user gave, by topic: ``ledger:entry``, ``earliest``, ``latest``, or the bytes of a MessageIdData.

    The whole text of a checkpoint will do too: what is known of its places stays with them. A message id names the
    message itself. Raises OffsetError.
    """
    if "v" in given and "p" in given:
        return {topic: mark if mark.seen >= 0 else mark.place for topic, mark in marks(given).items()}
    return {str(parse_topic(topic)): _asked(topic, value) for topic, value in given.items()}


def _asked(topic: str, value: object) -> Place | str:
    if isinstance(value, str):
        return value.lower() if value.lower() in ("earliest", "latest") else parse(value)
    if not isinstance(value, list):
        raise OffsetError(f'{topic}: {value!r} is no place; one is "12:345", "earliest" or "latest"')
    from pulsarbox.protocol.PulsarApi_pb2 import MessageIdData

    try:
        found = MessageIdData.FromString(bytes(number % 256 for number in value))
    except (DecodeError, TypeError):
        raise OffsetError(f"{topic}: these numbers are not the bytes of a MessageIdData") from None
    if found.ledgerId >= 2**63:  # -1 as an unsigned number
        return "earliest"
    if found.ledgerId >= END.ledger:
        return "latest"
    return Place(found.ledgerId, found.entryId, max(found.batch_index, 0))
