"""Output of a runner on stderr: on a terminal one updated line per query, elsewhere periodic lines."""

import contextlib
import shutil
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final

from pulsarbox.cleaning import clean
from pulsarbox.spark.pipelines.query_progress import RUNNING, Watched

DRAW_SECONDS: Final = 0.5
LINE_SECONDS: Final = 10.0


class RunnerOutput:
    """Display of the queries' progress."""

    def __init__(self, queries: Sequence[Watched], say: Callable[[str], None] | None = None) -> None:
        """Prepare the display; ``say`` receives lines, one per call; stderr by default."""
        self._queries = queries
        self._say = say
        self._draws = say is None and sys.stderr.isatty()
        self._drawn = 0
        self._next = 0.0
        self._told: dict[str, tuple[str, int | None]] = {}
        self._one = threading.Lock()
        """Protects the terminal, as several threads write lines and the display redraws."""

    def print_line(self, text: str) -> None:
        """Print a separate line."""
        with self._one:
            self._clear()
            self._line(text)

    def show(self) -> None:
        """Print the progress if due."""
        with self._one:
            self._show()

    def _show(self) -> None:
        now = time.monotonic()
        if now < self._next:
            return
        if self._draws:
            self._next = now + DRAW_SECONDS
            self._draw(now)
            return
        is_due = False
        for each in self._queries:
            told = self._told.get(each.step.query)
            if told != (each.state, each.batch):
                is_due = True
                if told is None or told[0] != each.state or each.state != RUNNING or self._next:
                    self._told[each.step.query] = (each.state, each.batch)
                    self._line(each.line(now))
        if is_due:
            self._next = now + LINE_SECONDS

    def end(self) -> None:
        """Print the final progress."""
        with self._one:
            self._clear()
            for each in self._queries:
                self._line(each.line(time.monotonic()))

    def _draw(self, now: float) -> None:
        self._clear()
        width = shutil.get_terminal_size().columns
        lines = [
            (each.line(now) + (f": {clean(each.error)}" if each.error else ""))[: width - 1] for each in self._queries
        ]
        _write("".join(f"{line}\n" for line in lines))
        self._drawn = len(lines)

    def _clear(self) -> None:
        if self._drawn:
            _write(f"\x1b[{self._drawn}A\x1b[J")
            self._drawn = 0

    def _line(self, text: str) -> None:
        if self._say is not None:
            self._say(text)
            return
        _write(f"pulsarbox: {clean(text)}\n")


def _write(text: str) -> None:
    with contextlib.suppress(OSError):  # a closed terminal or pipe does not stop the run
        sys.stderr.write(text)
        sys.stderr.flush()
