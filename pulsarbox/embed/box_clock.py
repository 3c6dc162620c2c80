"""The clock of an embedded box, for tests of time-dependent behaviour."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

Ask = Callable[[str, str, object], Any]

_PATH = "/pulsarbox/v1/clock"


class BoxClock:
    """``box.clock``. It can be moved if the box was created with ``clock="virtual"``."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def now(self) -> datetime:
        """Return the box's time in UTC."""
        return _instant(self._ask("GET", _PATH, None)["now"])

    def offset(self) -> timedelta:
        """Return how far the box's clock is ahead of real time."""
        return timedelta(milliseconds=self._ask("GET", _PATH, None)["offset"])

    def advance(self, by: timedelta = timedelta(), **units: float) -> datetime:
        """Move the clock forward, ``advance(days=10)`` or by a timedelta, and return the new time.

        Everything that falls due is done and durable on return. Raises BoxError if the clock is not virtual or would go
        back.
        """
        duration = by + timedelta(**units)
        return self._moved("POST", f"{_PATH}/advance", {"by": round(duration / timedelta(milliseconds=1))})

    def set(self, to: datetime) -> datetime:
        """Move the clock forward to a time, in UTC unless it has a time zone. Raises BoxError as ``advance`` does."""
        aware = to if to.tzinfo else to.replace(tzinfo=UTC)
        return self._moved("PUT", _PATH, {"to": round(aware.timestamp() * 1000)})

    def _moved(self, method: str, path: str, body: object) -> datetime:
        return _instant(self._ask(method, path, body)["now"])


def _instant(wall: int) -> datetime:
    return datetime.fromtimestamp(wall / 1000, UTC)
