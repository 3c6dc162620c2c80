"""Acknowledgement of messages only once the reader of stdout has read them.

Unread data is lost with its pipe when the reader goes away, so only messages that were read are acknowledged.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import NamedTuple

from pulsarbox.client.message_decoder import ReceivedMessage


class _Written(NamedTuple):
    """Messages written in one call."""

    begin: int
    """Offset of the first message in the output."""
    end: int
    messages: Sequence[ReceivedMessage]
    sizes: Sequence[int]
    """Size of each message in the output, in bytes."""


class Unread:
    """Queue of written, unacknowledged messages."""

    def __init__(self, acknowledge: Callable[[Sequence[ReceivedMessage]], None]) -> None:
        """``acknowledge`` is called with messages that have been read."""
        self._acknowledge = acknowledge
        self._waiting: deque[_Written] = deque()

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(self, begin: int, messages: Sequence[ReceivedMessage], sizes: Sequence[int]) -> None:
        """Append messages that are written at offset ``begin``, with their sizes in bytes."""
        if messages:
            self._waiting.append(_Written(begin, begin + sum(sizes), messages, sizes))

    def release(self, read: int) -> None:
        """Acknowledge the messages within the first ``read`` bytes of output."""
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
