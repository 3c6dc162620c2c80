"""Warnings about slow commits: rate-limited, with the size of the batch and the number of suppressed warnings."""

import logging
import time
from collections.abc import Callable

from pulsarbox.server.process.log_setup import Sparing, and_more
from pulsarbox.storage.journal import Batch

log = logging.getLogger(__name__)


class WatchedCommit:
    """Commits a batch and warns if it took longer than ``slow_ms``; 0 disables the warning. Called in one thread."""

    def __init__(
        self,
        commit: Callable[[Batch], None],
        slow_ms: int,
        clock: Callable[[], float] = time.monotonic,
        slow: Callable[[float, int, int], None] | None = None,
    ) -> None:
        """``slow`` is called for each slow commit: milliseconds, records, bytes."""
        self._slow = slow
        self._commit = commit
        self._slow_ms = slow_ms
        self._clock = clock
        self._rate_limited = Sparing(clock=clock)
        self._longest = 0.0
        """Longest commit among the suppressed warnings, in milliseconds."""

    def __call__(self, batch: Batch) -> None:
        """See Engine.commit."""
        begin = self._clock()
        try:
            self._commit(batch)
        finally:
            took = (self._clock() - begin) * 1000
            if self._slow_ms and took > self._slow_ms:
                self._log(batch, took)

    def _log(self, batch: Batch, took: float) -> None:
        if self._slow is not None:
            self._slow(took, len(batch.covered), batch.size)
        left_out = self._rate_limited.due()
        if left_out is None:
            self._longest = max(self._longest, took)
            return
        records, size, longest = len(batch.covered), batch.size, self._longest
        self._longest = 0.0
        more = and_more(left_out)
        if more:
            more = f"{more[:-1]}, the longest {longest:.0f} ms)"
        log.warning(
            "a commit took %.0f ms, for %d records of %.1f KiB: receipts wait for it; the disk is slow or busy%s",
            took, records, size / 1024, more,
            extra={"fields": {"commit_ms": round(took), "records": records, "bytes": size, "left_out": left_out}},
        )  # fmt: skip
