"""How long something was throttled during the last minute."""

from collections import deque
from typing import Final

WINDOW_MS: Final = 60_000
SPANS_MAX: Final = 120
"""Maximum spans stored separately; a limit per second, the usual case, has at most one per second."""


class HoldTimes:
    """Spans of throttling within the last minute. Times are non-decreasing milliseconds."""

    __slots__ = ("_since", "_spans")

    def __init__(self) -> None:
        self._spans: deque[tuple[int, int]] = deque()
        self._since: int | None = None

    @property
    def holding(self) -> bool:
        """Whether a span is open."""
        return self._since is not None

    def begin(self, at: int) -> None:
        """Begin a span unless one is open."""
        if self._since is None:
            self._since = at

    def end(self, at: int) -> None:
        """End the open span, if any."""
        if self._since is None:
            return
        if self._spans and self._since <= self._spans[-1][1]:
            self._since = self._spans.pop()[0]
        if at > self._since:
            self._spans.append((self._since, at))
            if len(self._spans) > SPANS_MAX:
                self._join()
        self._since = None
        self._forget(at)

    def last_minute(self, at: int) -> int:
        """Return how many milliseconds of the last minute something was throttled."""
        self._forget(at)
        spans = [*self._spans, (self._since, at)] if self._since is not None else self._spans
        return sum(max(0, end - max(start, at - WINDOW_MS)) for start, end in spans)

    def _join(self) -> None:
        """Merge the two oldest into one span of their total length that ends with the later."""
        first, second = self._spans.popleft(), self._spans.popleft()
        self._spans.appendleft((second[0] - (first[1] - first[0]), second[1]))

    def _forget(self, at: int) -> None:
        while self._spans and self._spans[0][1] <= at - WINDOW_MS:
            self._spans.popleft()
