"""When messages of a consumer are redelivered: a fixed time after they were added."""

from collections.abc import Hashable
from typing import Final, Generic, TypeVar

DUE_IN_TURN: Final = 1000
"""Keys that are taken in one turn of the loop."""
_Key = TypeVar("_Key", bound=Hashable)


class RedeliverySchedule(Generic[_Key]):
    """Keys that are due a fixed time after they were added, oldest first. At most ``most``: more makes some due."""

    def __init__(self, seconds: float, most: int = 100_000) -> None:
        self._seconds = seconds
        self._most = most
        self._at: dict[_Key, float] = {}

    def __len__(self) -> int:
        return len(self._at)

    def add(self, key: _Key, now: float) -> None:
        """Schedule a key; one that is already scheduled starts over. ``now`` is monotonic, in seconds."""
        self._at.pop(key, None)
        self._at[key] = now + self._seconds

    def discard(self, key: _Key) -> None:
        """Remove a key."""
        self._at.pop(key, None)

    def clear(self) -> None:
        """Remove all keys."""
        self._at.clear()

    def take_due(self, now: float) -> list[_Key]:
        """Remove and return the keys that are due, at most ``DUE_IN_TURN``: ``next_due`` is then in the past."""
        found: list[_Key] = []
        for key, at in self._at.items():
            if len(found) == DUE_IN_TURN:
                break
            if at > now and len(self._at) - len(found) <= self._most:
                break
            found.append(key)
        for key in found:
            del self._at[key]
        return found

    @property
    def next_due(self) -> float | None:
        """When the first key is due; None without keys."""
        return next(iter(self._at.values()), None)
