"""The clock of a box that is embedded, for tests that cannot wait."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

Ask = Callable[[str, str, object], Any]

_PATH = "/pulsarbox/v1/clock"


class BoxClock:
    """``box.clock``. It can be moved where the box was made with ``clock="virtual"``."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def now(self) -> datetime:
        """What time it is for the box, in UTC."""
        return _instant(self._ask("GET", _PATH, None)["now"])

    def offset(self) -> timedelta:
        """How far it is ahead of the real time."""
        return timedelta(milliseconds=self._ask("GET", _PATH, None)["offset"])

    def advance(self, by: timedelta = timedelta(), **units: float) -> datetime:
        """Move it forward, ``advance(days=10)`` or by a timedelta; the time it is then.

        What falls due by it is done and durable on return. Raises BoxError where the clock is not virtual, or would
        go back.
        """
        duration = by + timedelta(**units)
        return self._moved("POST", f"{_PATH}/advance", {"by": round(duration / timedelta(milliseconds=1))})

    def set(self, to: datetime) -> datetime:
        """Move it forward to an instant, UTC where it has no zone. Raises BoxError as ``advance`` does."""
        aware = to if to.tzinfo else to.replace(tzinfo=UTC)
        return self._moved("PUT", _PATH, {"to": round(aware.timestamp() * 1000)})

    def _moved(self, method: str, path: str, body: object) -> datetime:
        return _instant(self._ask(method, path, body)["now"])


def _instant(wall: int) -> datetime:
    return datetime.fromtimestamp(wall / 1000, UTC)
