"""Parsing of times and positions typed into dialogs, in the syntax of the command line."""

import re
import time
from typing import Any, Final

from pulsarbox.client.admin import EARLIEST, LATEST
from pulsarbox.times import duration, moment
from pulsarbox.tui.actions.operation import Wrong

_PAST_FORMS: Final = "such as -8h, 03:12, or 2026-11-21 10:00"
_SHOWN_MAX: Final = 60
"""Characters of an invalid time that an error message repeats."""
_ID: Final = re.compile(r"(\d{1,18}):(\d{1,18})")


def now_ms() -> int:
    """Return the current time in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def instant(text: str, now: int | None = None) -> int:
    """Parse ``-8h``, ``03:12`` (its last occurrence) or ``2026-11-21 10:00`` into ms since 1970. Raises Wrong."""
    now = now_ms() if now is None else now
    text = text.strip().removeprefix("@")
    clock = re.fullmatch(r"(\d{1,2}):(\d{2})(?::(\d{2}))?", text)
    try:
        if clock is None:
            return moment(text, now)
        from datetime import datetime, timedelta

        here = datetime.fromtimestamp(now / 1000).astimezone()
        hours, minutes, seconds = int(clock[1]), int(clock[2]), int(clock[3] or 0)
        then = here.replace(hour=hours, minute=minutes, second=seconds, microsecond=0)
        if then > here:
            then -= timedelta(days=1)
        return round(then.timestamp() * 1000)
    except ValueError as error:
        raise Wrong(str(error)) from None


def past(text: str, now: int | None = None) -> int:
    """Parse a time of recorded history as ``instant`` does. Raises Wrong, also for a time after ``now`` if given."""
    try:
        found = instant(text, now)
    except Wrong:
        raise Wrong(f"invalid time '{text.strip()[:_SHOWN_MAX]}': expected a form {_PAST_FORMS}") from None
    if now is not None and found > now:
        raise Wrong(f"'{text.strip()[:_SHOWN_MAX]}' is in the future: history ends now; expected a form {_PAST_FORMS}")
    return found


def span(text: str) -> int:
    """Parse a duration into whole seconds, at least one. Raises Wrong."""
    try:
        return max(duration(text.strip()) // 1000, 1)
    except ValueError as error:
        raise Wrong(str(error)) from None


def place(text: str) -> int | dict[str, Any]:
    """Parse a seek position: a time (ms since 1970), or a message ID for the Admin API. Raises Wrong."""
    text = text.strip()
    if text == "earliest":
        return dict(EARLIEST)
    if text == "latest":
        return dict(LATEST)
    found = _ID.fullmatch(text)
    if found is not None:
        return {"ledgerId": int(found[1]), "entryId": int(found[2])}
    try:
        return instant(text)
    except Wrong:
        expected = "earliest, latest, a time such as -1h, or ledger:entry"
        raise Wrong(f"invalid position '{text}'; expected {expected}") from None
