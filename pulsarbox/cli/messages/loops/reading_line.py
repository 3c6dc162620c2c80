"""Progress of reading messages: a line on stderr, which makes way for messages on the same terminal."""

import time
from typing import Final

from pulsarbox.cli.common.progress import LiveLine, messages
from pulsarbox.cli.common.terminal_text import megabytes

_QUIET_SECONDS: Final = 1.0
"""Time without output after which the line is shown on the terminal of the output."""


class ReadingLine(LiveLine):
    """Count of messages read, and of those that a filter selected."""

    def __init__(self, wanted: bool, *, shares_terminal: bool, is_filtered: bool) -> None:
        """``wanted`` False suppresses the line; ``shares_terminal``: messages are written to the terminal too."""
        super().__init__(wanted)
        self._shares_terminal = shares_terminal
        self._is_filtered = is_filtered
        self._read = self._written = self._size = 0
        self._begin = self._last = time.monotonic()

    def before_output(self) -> None:
        """Clear the line if messages follow it on the terminal."""
        if self._shares_terminal:
            self.clear()
            self._last = time.monotonic()

    def add(self, read: int, written: int, size: int) -> None:
        """Count messages read, and messages and bytes written, and redraw the line if due."""
        self._read += read
        self._written += written
        self._size += size
        if not self._shares_terminal or time.monotonic() - self._last >= _QUIET_SECONDS:
            self.draw(self._text)

    def _text(self) -> str:
        seconds = max(0.001, time.monotonic() - self._begin)
        selected = f", {self._written:,} selected" if self._is_filtered else ""
        size = f", {megabytes(self._size)}" if self._size else ""
        return f"{messages(self._read)} read{selected}{size}, {self._read / seconds:,.0f}/s"
