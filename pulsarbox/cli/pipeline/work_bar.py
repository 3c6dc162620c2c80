"""Progress of pipeline commands on stderr: a bar on a terminal, otherwise lines."""

import threading
import time

from pulsarbox.cli.common.progress import LiveLine, ProgressBar, barred, messages, sized, span
from pulsarbox.cli.common.terminal_text import notify
from pulsarbox.cli.connect.admin_client import short


class OffloadBar:
    """Progress of an offload or verification, as ``pulsarbox.spark.offload.progress`` reports it."""

    def __init__(self, is_wanted: bool = True, keep_lines: bool = False) -> None:
        """``is_wanted`` False suppresses bar and lines. ``keep_lines``: print the lines on a terminal too."""
        self._is_wanted = is_wanted
        self._keep_lines = keep_lines
        self._bar = self._new("")
        self._topic = self._which = ""
        self._total = 0
        self._done = 0.0
        self._messages = 0

    def _new(self, verb: str) -> ProgressBar:
        return ProgressBar(verb, sized, self._is_wanted)

    def topic(self, number: int, of: int) -> None:
        """Show which topic of a round is being processed, if there are several."""
        self._which = f" ({number:,} of {of:,})" if of > 1 else ""

    def begin(self, verb: str, topic: str, total: int) -> None:
        """Begin a bar over ``total`` bytes."""
        self.end()
        self._bar, self._topic = self._new(verb), short(topic)
        self._total, self._done, self._messages = total, 0.0, 0
        self.add(0)

    def add(self, size: float, messages: int = 0) -> None:
        """Count bytes and messages, and redraw the bar if due."""
        self._done += size
        self._messages += messages
        self._bar.update(self._done, self._total, self._detail())

    def _detail(self) -> str:
        counted = f"{messages(self._messages)}, " if self._messages else ""
        return f"{counted}{self._topic}{self._which}"

    def end(self) -> None:
        """Clear the bar."""
        self._bar.clear()

    def finished(self, text: str) -> None:
        """Print a line, unless the bar replaces it."""
        if self._is_wanted and (self._keep_lines or not self._bar.is_shown):
            self.notify(text)

    def notify(self, text: str) -> None:
        """Print a diagnostic."""
        self.end()
        notify(text)


class SparkBar:
    """Progress of a Spark command: its tasks, or the rows of a job. Threads may share it."""

    def __init__(self, verb: str, is_wanted: bool = True) -> None:
        """``verb``: a participle, such as "exporting". ``is_wanted`` False suppresses bar and progress lines."""
        self._is_wanted = is_wanted
        self._verb = verb
        self._lock = threading.Lock()
        self._rows = ProgressBar("publishing", lambda count: f"{count:,.0f} rows", is_wanted)
        self._line = LiveLine(is_wanted)
        self._is_publishing = False
        self._tasks = 0
        self._begin = 0.0

    def tasks(self, done: int, total: int) -> bool:
        """Show the completed tasks of the active stages; return True to suppress lines with the same numbers."""
        with self._lock:
            if not self._is_publishing:
                if total != self._tasks:  # other stages
                    self._tasks, self._begin = total, time.monotonic()
                self._line.draw(lambda: tasks_text(self._verb, done, total, time.monotonic() - self._begin))
        return self._line.is_shown or not self._is_wanted

    def rows(self, done: int, total: int) -> None:
        """Show the published rows of a job, from then on in place of tasks."""
        with self._lock:
            self._is_publishing = True
            self._line.clear()
            self._rows.update(done, total)
        if not self._rows.is_shown:
            notify(f"{done:,} of {messages(total)} published")

    def notify(self, text: str) -> None:
        """Print a diagnostic."""
        with self._lock:
            self._line.clear()
            self._rows.notify(text)

    def close(self) -> None:
        """Clear the bar."""
        with self._lock:
            self._line.clear()
            self._rows.clear()


def tasks_text(verb: str, done: int, total: int, seconds: float) -> str:
    """Return a bar of ``total`` Spark tasks, of which ``done`` were completed in ``seconds``."""
    left = f", {span(seconds * (total - done) / done)} left" if 0 < done < total else ""
    return barred(verb, done / total, f"{done:,} of {total:,} tasks{left}")
