"""Start and end of reading: ``--from`` and ``--until``."""

import re
from enum import Enum
from typing import Final, NamedTuple

from pulsarbox.cli.common.time_arguments import Words, moment
from pulsarbox.client.places import EARLIEST, LATEST, MessageId, Start
from pulsarbox.times import duration

_ID: Final = re.compile(r"(\d+):(\d+)(?::(-1|\d+))?(?::(-1|\d+))?")
FROM_FORMS: Final = "earliest, latest, -10 (the last ten of each partition), @TIME, or a message ID"
UNTIL_FORMS: Final = "end, a number of messages, a duration (30s), @TIME, or a message ID"


class From(NamedTuple):
    """Start of reading."""

    start: Start
    last: int = 0
    """Number of messages before the end to start at, instead of ``start``; 0 for none."""


class End(Enum):
    """Condition that ends reading."""

    NEVER = "never"
    END = "end"
    COUNT = "count"
    DURATION = "duration"
    TIME = "time"
    ID = "id"


class Until(NamedTuple):
    """End of reading."""

    kind: End = End.NEVER
    number: int = 0
    """Messages (COUNT), milliseconds (DURATION), or milliseconds since 1970 (TIME)."""
    id: MessageId = LATEST
    """The last message to read (ID)."""


def message_id(text: str) -> MessageId | None:
    """Parse ``ledger:entry``, ``ledger:entry:partition`` or ``ledger:entry:partition:index``; None for other text."""
    found = _ID.fullmatch(text)
    if found is None:
        return None
    ledger, entry, partition, index = found.groups()
    numbers = int(ledger), int(entry), int(index or -1), int(partition or -1)
    return MessageId(*numbers) if max(numbers) < 2**63 else None


def is_ago(text: str) -> bool:
    """Return whether a text is a relative time such as ``-1h``, which needs no ``@``."""
    return re.fullmatch(r"-\d[\d.a-z]*[a-z]", text) is not None


def parse_from(text: str, now: int | None = None) -> From:
    """Parse the value of --from. Raises ValueError."""
    if text in ("earliest", "latest"):
        return From(Start(EARLIEST if text == "earliest" else LATEST))
    if re.fullmatch(r"-[1-9][0-9]{0,8}", text):
        return From(Start(EARLIEST), last=int(text[1:]))
    if text.startswith("@") or is_ago(text):
        return From(Start(EARLIEST, time=max(1, moment(text.removeprefix("@"), now))))
    found = message_id(text)
    if found is None:
        raise ValueError(f"invalid start position '{text}'; expected {FROM_FORMS}")
    return From(Start(found))


def parse_until(text: str, now: int | None = None) -> Until:
    """Parse the value of --until. Raises ValueError."""
    if text == "end":
        return Until(End.END)
    if text.isascii() and text.isdigit():
        return Until(End.COUNT, int(text))
    if text.startswith("@"):
        return Until(End.TIME, moment(text[1:], now))
    found = message_id(text)
    if found is not None:
        return Until(End.ID, id=found)
    try:
        return Until(End.DURATION, duration(text))
    except ValueError:
        raise ValueError(f"invalid end position '{text}'; expected {UNTIL_FORMS}") from None


FROM: Final = Words("position", parse_from)
UNTIL: Final = Words("end", parse_until)
