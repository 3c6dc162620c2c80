"""Execution of a query in a thread, so that the main thread shows progress and handles Ctrl-C."""

import queue
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import duckdb
import pyarrow as pa

from pulsarbox.cli.common.exits import Failed
from pulsarbox.cli.common.progress import LiveLine, barred, span
from pulsarbox.cli.sql.query_dataset import ReadProgress
from pulsarbox.cli.sql.query_errors import in_words
from pulsarbox.cli.sql.topic_table import lost_messages
from pulsarbox.errors import PulsarBoxError
from pulsarbox.spark.topic_segments import DataLost

BATCH_ROWS: Final = 8192
_AHEAD: Final = 4
"""Batches of results held while the output is slow."""
_SHOWN_AFTER: Final = 1.0
"""Seconds after which progress is shown."""
_EVERY: Final = 0.2
_END: Final = object()


class QueryRun:
    """A running query: its columns, and its rows batch by batch."""

    def __init__(self, database: duckdb.DuckDBPyConnection, query: str, progress: ReadProgress) -> None:
        self._database = database
        self._query = query
        self._progress = progress
        self._results: queue.Queue[Any] = queue.Queue(_AHEAD)
        self._is_over = threading.Event()
        self._line = _Line(database, progress)
        self._thread = threading.Thread(target=self._run, name="query", daemon=True)
        self._thread.start()

    def schema(self) -> pa.Schema:
        """Return the columns of the result. Raises as ``batches``."""
        found = self._next()
        assert isinstance(found, pa.Schema)
        return found

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows. Raises DataLost, the broker's errors, Failed, and KeyboardInterrupt."""
        while (found := self._next()) is not _END:
            yield found

    def close(self) -> None:
        """End the query, finished or not, and wait for its thread."""
        self._is_over.set()
        while self._thread.is_alive():
            self._database.interrupt()
            _drain(self._results)
            self._thread.join(0.05)
        self._line.clear()

    def _next(self) -> Any:
        while True:
            try:
                found = self._results.get(timeout=_EVERY)
            except queue.Empty:
                self._line.draw()
                continue
            self._line.clear()
            if isinstance(found, BaseException):
                raise found
            return found

    def _run(self) -> None:
        try:
            reader = self._database.sql(self._query).to_arrow_reader(BATCH_ROWS)
            self._put(reader.schema)
            for batch in reader:
                self._put(batch)
            self._put(_END)
        except _Over:
            pass
        except BaseException as error:
            self._fail(error)

    def _put(self, found: Any) -> None:
        while not self._is_over.is_set():
            try:
                self._results.put(found, timeout=_EVERY)
                return
            except queue.Full:
                continue
        raise _Over

    def _fail(self, error: BaseException) -> None:
        found = self._progress.error or error
        if isinstance(found, DataLost):
            found = lost_messages(found)
        if not isinstance(found, PulsarBoxError | Failed):
            found = _said(found, error, self._query)
        try:
            self._put(found)
        except _Over:
            pass


class _Over(Exception):
    """The result is no longer needed."""


def _said(found: BaseException, error: BaseException, query: str) -> Failed:
    if isinstance(found, duckdb.Error):
        return in_words(found, query, {})
    if isinstance(found, OSError):
        return Failed(f"cannot read the messages: {found}")
    return Failed(f"the query failed: {type(found).__name__}: {found}" if found is not error else str(error))


def _drain(results: "queue.Queue[Any]") -> None:
    try:
        while True:
            results.get_nowait()
    except queue.Empty:
        pass


class _Line:
    """Progress on stderr, on a terminal, of a query that takes longer than a second."""

    def __init__(self, database: duckdb.DuckDBPyConnection, progress: ReadProgress) -> None:
        self._database = database
        self._progress = progress
        self._begin = time.monotonic()
        self._line = LiveLine()

    def draw(self) -> None:
        seconds = time.monotonic() - self._begin
        if seconds >= _SHOWN_AFTER:
            self._line.draw(lambda: self._text(seconds))

    def _text(self, seconds: float) -> str:
        rows = self._progress.rows
        read = f"{rows:,} live messages read, {rows / seconds:,.0f}/s, in {span(seconds)}"
        share = self._database.query_progress() / 100  # negative: unknown
        return barred("querying", share, read) if share >= 0 else f"querying: {read}"

    def clear(self) -> None:
        self._line.clear()


@contextmanager
def running(database: duckdb.DuckDBPyConnection, query: str, progress: ReadProgress) -> Iterator[QueryRun]:
    """Run a query, which is ended at the end of the block."""
    run = QueryRun(database, query, progress)
    try:
        yield run
    finally:
        run.close()
