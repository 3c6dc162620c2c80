"""Progress line on stderr, shown only on a terminal."""

import sys
import time
from typing import Final

from pulsarbox.cli.common.terminal_text import megabytes, notify

_EVERY_SECONDS: Final = 0.2


class ProgressLine:
    """Count of messages and bytes, redrawn at intervals."""

    def __init__(self, verb: str, wanted: bool) -> None:
        """``verb`` is the participle to show, such as "stored"; ``wanted`` False suppresses the line."""
        self.messages = 0
        self.size = 0
        self._verb = verb
        self._shown = wanted and sys.stderr.isatty()
        self._drawn = False
        self._begin = time.monotonic()
        self._next = self._begin + _EVERY_SECONDS

    def add(self, messages: int, size: int) -> None:
        """Count messages and bytes, and redraw the line if due."""
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

    def notify(self, text: str) -> None:
        """Clear the line and print a diagnostic."""
        self.clear()
        notify(text)

    def clear(self) -> None:
        """Clear the line before other output."""
        if self._drawn:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self._drawn = False


class CountLine:
    """Number of finished pieces of work, redrawn at intervals."""

    def __init__(self, verb: str, noun: str, total: int = 0) -> None:
        """``total`` 0: unknown."""
        self.count = 0
        self._text = f"{verb} {{:,}}{f' of {total:,}' if total else ''} {noun}"
        self._shown = sys.stderr.isatty()
        self._drawn = False
        self._next = time.monotonic() + _EVERY_SECONDS

    def add(self) -> None:
        """Count one, and redraw the line if due."""
        self.count += 1
        if self._shown and (now := time.monotonic()) >= self._next:
            self._next = now + _EVERY_SECONDS
            sys.stderr.write(f"\r\x1b[K{self._text.format(self.count)}")
            sys.stderr.flush()
            self._drawn = True

    def clear(self) -> None:
        """Clear the line before other output."""
        if self._drawn:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self._drawn = False


def messages(count: int) -> str:
    """Return ``1 message``, ``1,000 messages``."""
    return f"{count:,} message{'' if count == 1 else 's'}"
