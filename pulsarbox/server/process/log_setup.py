"""Logging of the daemon: text or JSON lines, on stderr or in a rotated file; never a line per message."""

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
"""Interval of rate-limited log lines, each with the number of suppressed ones."""


class TextFormatter(logging.Formatter):
    """Time, level, logger, message. Client input is escaped: it can neither start a line nor send terminal commands."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(name)s: %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        """See logging.Formatter."""
        record.message = "".join(one if one.isprintable() else _escaped(one) for one in record.message)
        return super().formatMessage(record)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode()


class JsonFormatter(logging.Formatter):
    """One JSON object per line: time, level, logger, message, and the record's ``fields``."""

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
    """Writes to stderr, which is a log file: rotates it, and reopens it after external rotation."""

    def __init__(self, file: LogFile) -> None:
        super().__init__(sys.stderr)
        self._file = file

    def emit(self, record: logging.LogRecord) -> None:
        """See logging.Handler."""
        self._file.rotate_if_due()
        super().emit(record)


class Sparing:
    """Rate limit of one kind of log line, counting the suppressed ones."""

    def __init__(self, seconds: float = SPARING_SECONDS, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._next = float("-inf")
        self._left_out = 0

    def due(self) -> int | None:
        """Return None to suppress a line, otherwise the number suppressed since the last one."""
        now = self._clock()
        if now < self._next:
            self._left_out += 1
            return None
        self._next = now + self._seconds
        left_out, self._left_out = self._left_out, 0
        return left_out


def and_more(left_out: int) -> str:
    """Return the suffix of a line for suppressed ones."""
    return f" (and {left_out} more since the last such line)" if left_out else ""


def log_file_of(settings: Settings, path: Path) -> LogFile:
    """Return the file behind stdout and stderr, with the limits of the settings."""
    return LogFile(path, settings.logFileMaxMbytes << 20, settings.logFileBackupCount)


def set_up(settings: Settings, path: Path | None = None) -> None:
    """Configure logging to stderr as in the settings; ``path`` is the file behind it, if any."""
    handler: logging.Handler = logging.StreamHandler(sys.stderr)
    if path is not None:
        handler = FileHandler(log_file_of(settings, path))
    handler.setFormatter(JsonFormatter() if settings.logFormat == "json" else TextFormatter())
    logging.basicConfig(level=settings.logLevel.upper(), handlers=[handler], force=True)
