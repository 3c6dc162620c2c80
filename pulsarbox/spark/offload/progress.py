"""Progress of offloads and verifications, in bytes as the box stores them or as files have. Pure."""

from typing import Protocol

from pulsarbox.spark.topic_segments import TopicSegment


class OffloadProgress(Protocol):
    """Receiver of progress. One thread calls it."""

    def topic(self, number: int, of: int) -> None:
        """Note that topic ``number``, counted from 1, of a round begins."""

    def begin(self, verb: str, topic: str, total: int) -> None:
        """Begin work on ``total`` bytes of a topic or partition. ``verb``: a participle, such as "offloading"."""

    def add(self, size: float, messages: int = 0) -> None:
        """Count bytes, and the messages in them."""

    def end(self) -> None:
        """End the work, complete or not."""

    def finished(self, text: str) -> None:
        """Report a complete ledger, snapshot or file in one line."""


class Unreported:
    """Receiver that ignores progress."""

    def topic(self, number: int, of: int) -> None:
        """Ignore it."""

    def begin(self, verb: str, topic: str, total: int) -> None:
        """Ignore it."""

    def add(self, size: float, messages: int = 0) -> None:
        """Ignore it."""

    def end(self) -> None:
        """Ignore it."""

    def finished(self, text: str) -> None:
        """Ignore it."""


class LedgerProgress:
    """Progress of reading one ledger: the bytes that correspond to the rows read, and all its bytes at the end."""

    def __init__(self, progress: OffloadProgress, segment: TopicSegment) -> None:
        self._progress = progress
        self._left = float(segment.bytes)
        self._each = segment.bytes / max(segment.messages, 1)

    def add(self, rows: int) -> None:
        """Count rows."""
        size = min(self._left, rows * self._each)
        self._left -= size
        self._progress.add(size, rows)

    def end(self) -> None:
        """Count the remaining bytes: of chunks, lost entries, and differences between messages."""
        self._progress.add(self._left)
        self._left = 0
