"""Serialized offsets, as Spark stores them in checkpoints and accepts them in the options of a read. Pure.

An offset is the next position to read in each topic, so ranges are half-open. Spark compares offsets as text, so equal
offsets need equal texts, in this order::

    {"n": {"persistent://public/default/orders": 678}, "p": {"persistent://public/default/orders": "12:345"}, "v": 1}

``12:345:6`` is inside a batch. ``n`` is the number of messages ever published before the position, if known: a position
at the end of a deleted ledger has lost nothing if the number has not grown since.
"""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from google.protobuf.message import DecodeError

from pulsarbox.names import parse_topic
from pulsarbox.spark.topic_segments import BEGINNING, ReadPosition

VERSION: Final = 1
END: Final = ReadPosition(2**63 - 1, 2**63 - 1)
"""Position after everything that a topic can ever have."""

_PLACE: Final = re.compile(r"(-1|\d{1,19}):(-1|\d{1,19})(?::(\d{1,9}))?")


class Mark(NamedTuple):
    """Position, with the message count of the topic there."""

    place: ReadPosition
    seen: int = -1
    """Messages ever published, if the position was the end; 0 before existing messages; -1: unknown."""


IN_FRONT: Final = 0
"""``seen`` of a position before messages: if its ledger is deleted, they are lost."""
FIRST: Final = Mark(BEGINNING)
"""Starting mark of a topic discovered later: its beginning, whatever is left of it."""


class OffsetError(ValueError):
    """Text that is not a valid offset; the message says why."""


def text(place: ReadPosition) -> str:
    """Format a position: ``ledger:entry``, or ``ledger:entry:batch`` inside a batch."""
    return f"{place.ledger}:{place.entry}" + (f":{place.batch}" if place.batch else "")


def parse(text: str) -> ReadPosition:
    """Parse a position. Raises OffsetError."""
    match = _PLACE.fullmatch(text)
    found = match and ReadPosition(int(match[1]), int(match[2]), int(match[3] or 0))
    if not found or max(found) > END.ledger:
        raise OffsetError(
            f"{text!r} is not a valid position: expected ledger:entry or ledger:entry:batch, such as 12:345"
        )
    return found


def document(marks: Mapping[str, Mark], starts: int = 0) -> dict[str, object]:
    """Return an offset for Spark, in canonical order. ``starts`` distinguishes offsets of the same positions."""
    found: dict[str, object] = {
        "n": {topic: marks[topic].seen for topic in sorted(marks) if marks[topic].seen >= 0},
        "p": {topic: text(marks[topic].place) for topic in sorted(marks)},
        "v": VERSION,
    }
    return found | {"w": starts} if starts else found


def starts(offset: Mapping[str, object]) -> int:
    """Return ``starts`` of an offset; 0 if absent, as in offsets of other versions."""
    found = offset.get("w", 0)
    return found if isinstance(found, int) else 0


def marks(offset: Mapping[str, object]) -> dict[str, Mark]:
    """Parse an offset. Raises OffsetError."""
    if offset.get("v") != VERSION:
        raise OffsetError(
            f"the checkpoint has an offset of version {offset.get('v')!r}, but this pulsarbox reads version {VERSION}: "
            "another version or another source wrote it. Use that one, or a new checkpointLocation"
        )
    found, seen = offset.get("p"), offset.get("n", {})
    if not isinstance(found, dict) or not isinstance(seen, dict):
        raise OffsetError('an offset must have the positions of its topics, such as {"p": {"TOPIC": "12:345"}, "v": 1}')
    return {str(topic): Mark(parse(str(place)), int(seen.get(topic, -1))) for topic, place in found.items()}


def asked(given: Mapping[str, object]) -> dict[str, ReadPosition | Mark | str]:
    """Parse a user's positions by topic: ``ledger:entry``, ``earliest``, ``latest``, or the bytes of a MessageIdData.

    Also accepts the whole text of a checkpoint offset, with its message counts. A message ID denotes the message
    itself. Raises OffsetError.
    """
    if "v" in given and "p" in given:
        return {topic: mark if mark.seen >= 0 else mark.place for topic, mark in marks(given).items()}
    return {str(parse_topic(topic)): _asked(topic, value) for topic, value in given.items()}


def _asked(topic: str, value: object) -> ReadPosition | str:
    if isinstance(value, str):
        return value.lower() if value.lower() in ("earliest", "latest") else parse(value)
    if not isinstance(value, list):
        raise OffsetError(f'{topic}: {value!r} is not a valid position: expected "12:345", "earliest" or "latest"')
    from pulsarbox.protocol.PulsarApi_pb2 import MessageIdData

    try:
        found = MessageIdData.FromString(bytes(number % 256 for number in value))
    except (DecodeError, TypeError):
        raise OffsetError(f"{topic}: the numbers are not the bytes of a MessageIdData") from None
    if found.ledgerId >= 2**63:  # -1 as an unsigned number
        return "earliest"
    if found.ledgerId >= END.ledger:
        return "latest"
    return ReadPosition(found.ledgerId, found.entryId, max(found.batch_index, 0))
