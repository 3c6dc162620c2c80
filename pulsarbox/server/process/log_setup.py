"""Logging of the daemon: lines for people, or JSON; on stderr or in a file that is cut; never a line a message."""

import json
import logging
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pulsarbox.config import Settings
from pulsarbox.server.process.log_file import LogFile

SPARING_SECONDS = 10.0
"""What may happen many times a second is told once in this time, with how many were left out."""


class TextFormatter(logging.Formatter):
    """Time, level, logger, message. What a client sent cannot begin a line of its own, or command a terminal."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(name)s: %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        """See logging.Formatter."""
        record.message = "".join(one if one.isprintable() else _escaped(one) for one in record.message)
        return super().formatMessage(record)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode()


class JsonFormatter(logging.Formatter):
    """One JSON object a line: time, level, logger, message, and the ``fields`` that a line has beside its words."""

    def format(self, record: logging.LogRecord) -> str:
        """See logging.Formatter."""
        line: dict[str, Any] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= getattr(record, "fields", {})
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line)


class FileHandler(logging.StreamHandler[Any]):
    """Writes to stderr, which is a log file: cuts it, and follows it when somebody else has."""

    def __init__(self, file: LogFile) -> None:
        super().__init__(sys.stderr)
        self._file = file

    def emit(self, record: logging.LogRecord) -> None:
        """See logging.Handler."""
        self._file.look()
        super().emit(record)


class Sparing:
    """Says when the next line about something may be written, and how many were left out before it."""

    def __init__(self, seconds: float = SPARING_SECONDS, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._next = float("-inf")
        self._left_out = 0

    def due(self) -> int | None:
        """None where the line is to be left out; else how many were since the last one."""
        now = self._clock()
        if now < self._next:
            self._left_out += 1
            return None
        self._next = now + self._seconds
        left_out, self._left_out = self._left_out, 0
        return left_out


def and_more(left_out: int) -> str:
    """The end of a line for those that were left out."""
    return f" (and {left_out} more since the last such line)" if left_out else ""


def log_file_of(settings: Settings, path: Path) -> LogFile:
    """The file that stdout and stderr are, with the limits of the settings."""
    return LogFile(path, settings.logFileMaxMbytes << 20, settings.logFileBackupCount)


def set_up(settings: Settings, path: Path | None = None) -> None:
    """Log as the settings say to stderr; ``path``: the file that it is, if one."""
    handler: logging.Handler = logging.StreamHandler(sys.stderr)
    if path is not None:
        handler = FileHandler(log_file_of(settings, path))
    handler.setFormatter(JsonFormatter() if settings.logFormat == "json" else TextFormatter())
    logging.basicConfig(level=settings.logLevel.upper(), handlers=[handler], force=True)
