"""Progress on stderr, shown only on a terminal: one line, redrawn at intervals.

Every command that may take more than a second reports through one of these classes. Without a terminal they are silent.
"""

import contextlib
import os
import sys
import time
from collections.abc import Callable
from typing import Final

from pulsarbox.cli.common.terminal_text import clean, counted, megabytes, notify

_EVERY_SECONDS: Final = 0.2
_COLUMNS: Final = 80
_WIDTH: Final = 24
"""Characters of a bar."""
_WIDTH_MIN: Final = 4
"""Characters below which a bar is left out."""
_PARTS: Final = " ▏▎▍▌▋▊▉█"
"""A character of a bar, filled in eighths."""


class LiveLine:
    """A line on the terminal that is drawn at most five times a second, and cleared before other output."""

    def __init__(self, wanted: bool = True) -> None:
        """``wanted`` False suppresses the line."""
        self.is_shown = wanted and sys.stderr is not None and sys.stderr.isatty()
        self._drawn = False
        self._next = time.monotonic() + _EVERY_SECONDS

    def draw(self, text: Callable[[], str]) -> None:
        """Draw the line if due, shortened to the width of the terminal."""
        if not self.is_shown or (now := time.monotonic()) < self._next:
            return
        self._next = now + _EVERY_SECONDS
        line = clean(text())[: max(_columns() - 1, 1)]
        self._drawn = True  # before it is written: Ctrl-C may come right after
        sys.stderr.write(f"\r\x1b[K{line}")
        sys.stderr.flush()

    def clear(self) -> None:
        """Clear the line before other output."""
        if self._drawn:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self._drawn = False

    def notify(self, text: str) -> None:
        """Clear the line and print a diagnostic."""
        self.clear()
        notify(text)


def _columns() -> int:
    """Return the width of the terminal, which may be unknown, or only that of stderr."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        return os.get_terminal_size(sys.stderr.fileno()).columns or _COLUMNS
    return _COLUMNS


class ProgressBar(LiveLine):
    """Part of a known amount of work: a bar, percent, rate and remaining time; without a total, amount and rate."""

    def __init__(
        self, verb: str, unit: Callable[[float], str] = lambda count: f"{count:,.0f}", wanted: bool = True
    ) -> None:
        """``verb`` is the participle to show, such as "restoring"; ``unit`` formats an amount; numbers by default."""
        super().__init__(wanted)
        self._verb = verb
        self._unit = unit
        self._begin = time.monotonic()
        self._from: float | None = None

    def update(self, done: float, total: float = 0, detail: str = "") -> None:
        """Set the amount done so far, of ``total`` (0: unknown), and redraw the line if due."""
        if self._from is None:
            self._from = done
        self.draw(lambda: self._text(done, total, detail))

    def _text(self, done: float, total: float, detail: str) -> str:
        seconds = max(0.001, time.monotonic() - self._begin)
        rate = max(0.0, done - (self._from or 0)) / seconds
        parts = [self._unit(done) if not total else f"{self._unit(min(done, total))} of {self._unit(total)}"]
        if rate:
            parts.append(f"{self._unit(rate)}/s")
        if total and rate and done < total:
            parts.append(f"{span((total - done) / rate)} left")
        amounts = ", ".join(parts)
        text = barred(self._verb, done / total, amounts) if total else f"{self._verb} {amounts}"
        return f"{text}, {detail}" if detail else text


def sized(size: float) -> str:
    """Format an amount of bytes."""
    return megabytes(int(size))


def barred(before: str, share: float, after: str) -> str:
    """Return a bar between two texts, shortened where they would not fit the terminal, down to the percentage."""
    room = _columns() - 1 - len(f"{before} [] 100 % {after}".strip())
    drawn = bar(share, min(_WIDTH, room)) if room >= _WIDTH_MIN else f"{_percent(share)} %"
    return f"{before} {drawn} {after}".strip()


def bar(share: float, width: int = _WIDTH) -> str:
    """Return a bar filled to ``share`` (0 to 1), and the percentage, which is 100 only at the end."""
    eighths = int(min(max(share, 0.0), 1.0) * width * 8)
    full, part = divmod(eighths, 8)
    cells = "█" * full + (_PARTS[part] if full < width else "")
    return f"[{cells:<{width}}] {_percent(share):3} %"


def _percent(share: float) -> int:
    return int(min(max(share, 0.0), 1.0) * 100)


def span(seconds: float) -> str:
    """Format a remaining time in its two largest units."""
    total = int(seconds)
    if total < 60:
        return f"{total} s"
    if total < 3600:
        return f"{total // 60} min {total % 60} s"
    return f"{total // 3600:,} h {total % 3600 // 60} min"


class ProgressLine(LiveLine):
    """Count of messages and bytes; a bar if ``share`` returns which part of the input is read."""

    def __init__(self, verb: str, wanted: bool, share: Callable[[], float | None] = lambda: None) -> None:
        """``verb`` is the participle to show, such as "stored"; ``wanted`` False suppresses the line."""
        super().__init__(wanted)
        self.messages = 0
        self.size = 0
        self._verb = verb
        self._share = share
        self._begin = time.monotonic()

    def add(self, messages: int, size: int) -> None:
        """Count messages and bytes, and redraw the line if due."""
        self.messages += messages
        self.size += size
        self.draw(self._text)

    def _text(self) -> str:
        seconds = max(0.001, time.monotonic() - self._begin)
        size = f", {megabytes(self.size)}" if self.size else ""
        text = f"{messages(self.messages)} {self._verb}{size}, {self.messages / seconds:,.0f}/s"
        share = self._share()
        if share is None:
            return text
        left = f", {span(seconds * (1 - share) / share)} left" if 0 < share < 1 else ""
        return barred("", share, f"{text}{left}")


class CountLine(LiveLine):
    """Number of finished pieces of work."""

    def __init__(self, verb: str, noun: str, total: int = 0) -> None:
        """``noun`` is in the singular; ``total`` 0: unknown."""
        super().__init__()
        self.count = 0
        self._verb, self._noun, self._total = verb, noun, total

    def add(self) -> None:
        """Count one, and redraw the line if due."""
        self.count += 1
        self.draw(self._text)

    def _text(self) -> str:
        if not self._total:
            return f"{self._verb} {counted(self.count, self._noun)}"
        return barred(self._verb, self.count / self._total, f"{self.count:,} of {counted(self._total, self._noun)}")


def messages(count: int) -> str:
    """Return ``1 message``, ``1,000 messages``."""
    return counted(count, "message")
