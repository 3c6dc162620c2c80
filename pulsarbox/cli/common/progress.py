"""One line on stderr that says how far it is, where stderr is a terminal."""

import sys
import time
from typing import Final

from pulsarbox.cli.common.terminal_text import megabytes, say

_EVERY_SECONDS: Final = 0.2


class Progress:
    """Counts messages and bytes, and shows them now and then."""

    def __init__(self, verb: str, wanted: bool) -> None:
        """``verb``: what happens to the messages, such as "stored". ``wanted``: False shows nothing."""
        self.messages = 0
        self.size = 0
        self._verb = verb
        self._shown = wanted and sys.stderr.isatty()
        self._drawn = False
        self._begin = time.monotonic()
        self._next = self._begin + _EVERY_SECONDS

    def add(self, messages: int, size: int) -> None:
        """So many more."""
        self.messages += messages
        self.size += size
        if self._shown and (now := time.monotonic()) >= self._next:
            self._next = now + _EVERY_SECONDS
            self._draw(now)

    def _draw(self, now: float) -> None:
        seconds = max(0.001, now - self._begin)
        rate = self.messages / seconds
        text = f"{self.messages:,} messages {self._verb}, {megabytes(self.size)}, {rate:,.0f}/s"
        sys.stderr.write(f"\r\x1b[K{text}")
        sys.stderr.flush()
        self._drawn = True

    def say(self, text: str) -> None:
        """Talk, in between."""
        self.clear()
        say(text)

    def clear(self) -> None:
        """Take the line away, before anything else is said."""
        if self._drawn:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self._drawn = False


def messages(count: int) -> str:
    """``1 message``, ``1,000 messages``."""
    return f"{count:,} message{'' if count == 1 else 's'}"
