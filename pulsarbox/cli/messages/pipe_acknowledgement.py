"""Messages that are written to stdout and wait for their acknowledgement until somebody has read them.

What stands in a pipe when its reader goes away is lost with the pipe, so only what was read counts as taken.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import NamedTuple

from pulsarbox.client.message_decoder import Message


class _Written(NamedTuple):
    """Messages that are written one after another."""

    begin: int
    """Bytes of output before the first."""
    end: int
    messages: Sequence[Message]
    sizes: Sequence[int]
    """Bytes of output of each."""


class Unread:
    """Messages in the order in which they are written."""

    def __init__(self, acknowledge: Callable[[Sequence[Message]], None]) -> None:
        """``acknowledge`` is called with messages once they are read."""
        self._acknowledge = acknowledge
        self._waiting: deque[_Written] = deque()

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(self, begin: int, messages: Sequence[Message], sizes: Sequence[int]) -> None:
        """These are written next, each with so many bytes, behind ``begin`` bytes of output."""
        if messages:
            self._waiting.append(_Written(begin, begin + sum(sizes), messages, sizes))

    def release(self, read: int) -> None:
        """Acknowledge what lies within the first ``read`` bytes of output."""
        waiting = self._waiting
        while waiting and waiting[0].end <= read:
            self._acknowledge(waiting.popleft().messages)
        if not waiting or waiting[0].begin >= read:
            return
        begin, end, messages, sizes = waiting[0]
        count = bisect_right(list(accumulate(sizes)), read - begin)
        if count:
            self._acknowledge(messages[:count])
            waiting[0] = _Written(begin + sum(sizes[:count]), end, messages[count:], sizes[count:])
