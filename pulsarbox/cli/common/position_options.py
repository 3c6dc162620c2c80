"""Where reading begins and where it ends: ``--from`` and ``--until``."""

import re
from enum import Enum
from typing import Final, NamedTuple

from pulsarbox.cli.common.time_arguments import Words, moment
from pulsarbox.client.places import EARLIEST, LATEST, MessageId, Start
from pulsarbox.times import duration

_ID: Final = re.compile(r"(\d+):(\d+)(?::(-1|\d+))?(?::(-1|\d+))?")
FROM_FORMS: Final = "earliest, latest, -10 (the last ten of each partition), @TIME, or a message id"
UNTIL_FORMS: Final = "end, a number of messages, a length of time (30s), @TIME, or a message id"


class From(NamedTuple):
    """Where reading begins."""

    start: Start
    last: int = 0
    """Not there, but so many messages before the end; 0 for not so."""


class End(Enum):
    """What ends reading."""

    NEVER = "never"
    END = "end"
    COUNT = "count"
    DURATION = "duration"
    TIME = "time"
    ID = "id"


class Until(NamedTuple):
    """Where reading ends."""

    kind: End = End.NEVER
    number: int = 0
    """Messages, milliseconds, or milliseconds since 1970, as ``kind`` says."""
    id: MessageId = LATEST
    """The last message that is wanted."""


def message_id(text: str) -> MessageId | None:
    """``ledger:entry``, ``ledger:entry:partition``, ``ledger:entry:partition:index``; None for anything else."""
    found = _ID.fullmatch(text)
    if found is None:
        return None
    ledger, entry, partition, index = found.groups()
    numbers = int(ledger), int(entry), int(index or -1), int(partition or -1)
    return MessageId(*numbers) if max(numbers) < 2**63 else None


def is_ago(text: str) -> bool:
    """Whether it is an instant such as ``-1h``, which need not be marked as one."""
    return re.fullmatch(r"-\d[\d.a-z]*[a-z]", text) is not None


def parse_from(text: str, now: int | None = None) -> From:
    """The value of --from. Raises ValueError, in words."""
    if text in ("earliest", "latest"):
        return From(Start(EARLIEST if text == "earliest" else LATEST))
    if re.fullmatch(r"-[1-9][0-9]{0,8}", text):
        return From(Start(EARLIEST), last=int(text[1:]))
    if text.startswith("@") or is_ago(text):
        return From(Start(EARLIEST, time=max(1, moment(text.removeprefix("@"), now))))
    found = message_id(text)
    if found is None:
        raise ValueError(f"'{text}' is none of: {FROM_FORMS}")
    return From(Start(found))


def parse_until(text: str, now: int | None = None) -> Until:
    """The value of --until. Raises ValueError, in words."""
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
        raise ValueError(f"'{text}' is none of: {UNTIL_FORMS}") from None


FROM: Final = Words("position", parse_from)
UNTIL: Final = Words("end", parse_until)
