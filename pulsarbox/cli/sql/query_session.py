"""A query from its text to its output: connection, tables, limits, and the extra that it requires."""

import gc
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pulsarbox.cli.common.exits import Failed, Misused, Unreachable
from pulsarbox.cli.common.terminal_text import notify
from pulsarbox.cli.connect.target import Target
from pulsarbox.client.errors import NotConnected

if TYPE_CHECKING:
    import pyarrow as pa

    from pulsarbox.cli.sql.database import Resources
    from pulsarbox.cli.sql.result_output import ResultForm
    from pulsarbox.cli.sql.topic_table import TopicCatalog
    from pulsarbox.spark.offload.table_history import OffloadRoot
    from pulsarbox.spark.topic_segments import Reach

ROWS_SHOWN: Final = 1000
_LOCAL_TIME: Final = Path("/etc/localtime")
_TABLES: Final = re.compile(r"\s*show\s+(all\s+)?tables\s*;?\s*", re.IGNORECASE)
_SELDOM: Final = 100_000
"""Garbage collection threshold, in objects: messages have no cycles, but their number would trigger it constantly."""


def execute(service: Callable[[], Target], admin: Callable[[], Target], query: str, given: dict[str, Any]) -> None:
    """Run a query, follow it, or start the shell. Raises Failed and its kinds."""
    check_installed()
    sys.meta_path.insert(0, _HiddenLibraries())
    gc.set_threshold(_SELDOM)
    with connected(service, admin, given) as session:
        if not query.strip():
            if not sys.stdin.isatty():
                raise Misused("no query: expected it as an argument or on stdin")
            from pulsarbox.cli.sql.query_shell import QueryShell

            QueryShell(session).run()
        elif given["follow"]:
            from pulsarbox.cli.sql.following import follow

            follow(session, query)
        else:
            session.run(query)


def check_installed() -> None:
    """Raise Failed if the extra is not installed."""
    from importlib.util import find_spec

    missing = [name for name in ("duckdb", "pyarrow") if find_spec(name) is None]
    if missing:
        raise Failed(f"{' and '.join(missing)} not installed. Install with: pip install 'pulsarbox[sql]'")


class _HiddenLibraries:
    """Finder of modules that hides libraries. DuckDB and Arrow import these if they are installed, but a query needs
    neither, and importing them takes longer than the rest of a short query."""

    names: Final = frozenset({"numpy", "pandas"})

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """Raise ModuleNotFoundError for a hidden library; leave others to the next finder."""
        if name in self.names:
            raise ModuleNotFoundError(f"{name} is hidden from queries", name=name)


class QuerySession:
    """Queries with the same options."""

    def __init__(
        self, catalog: "TopicCatalog", resources: "Resources", output: "ResultForm", limit: int | None
    ) -> None:
        self.catalog = catalog
        self.resources = resources
        self.output = output
        self.limit = limit

    def run(self, query: str) -> None:
        """Run a query and write its result. Raises Failed and its kinds, and the broker's errors."""
        if _TABLES.fullmatch(query):
            self._show_tables()
            return
        from pulsarbox.cli.sql.database import bound, checked, opened
        from pulsarbox.cli.sql.execution import running
        from pulsarbox.cli.sql.query_dataset import ReadProgress
        from pulsarbox.cli.sql.result_output import destination, write

        query = checked(query)
        tables = bound(query, self.catalog.table, self.resources)
        progress = ReadProgress()
        with (
            opened(tables, self.catalog.reach, self.resources, progress) as database,
            running(database, query, progress) as running_query,
            destination(self.output) as out,
        ):
            rows = _Limited(self.limit)
            write(self.output, out, running_query.schema(), rows.of(running_query.batches()))
        if rows.is_cut:
            notify(f"only the first {self.limit:,} rows are shown: --limit 0 prints all")

    def _show_tables(self) -> None:
        import pyarrow as pa

        from pulsarbox.cli.sql.result_output import destination, write

        found = pa.record_batch({"name": pa.array(self.catalog.names(), pa.string())})
        with destination(self.output) as out:
            write(self.output, out, found.schema, [found])


class _Limited:
    """The first rows of a result."""

    def __init__(self, most: int | None) -> None:
        self._left = most
        self.is_cut = False
        """Whether there were more."""

    def of(self, batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        """Yield the batches up to the limit."""
        if not self._left:
            yield from batches
            return
        for batch in batches:
            if batch.num_rows > self._left:
                self.is_cut = True
            if self._left:
                yield batch.slice(0, self._left)
            if self.is_cut:
                return
            self._left -= batch.num_rows


@contextmanager
def connected(
    service: Callable[[], Target], admin: Callable[[], Target], given: dict[str, Any]
) -> Iterator[QuerySession]:
    """Provide a session. Raises Misused for invalid options, and Unreachable."""
    from pulsarbox.cli.sql.database import Resources
    from pulsarbox.cli.sql.result_output import TABLES, form_of

    output = form_of(given["form"], given["file"], given["bytes_form"])
    limit = given["limit"]
    if limit is None and output.form in TABLES and output.file is None and sys.stdout.isatty():
        limit = ROWS_SHOWN
    zone = _zone(given["timezone"])
    spill = Path(tempfile.mkdtemp(prefix="pulsarbox-sql-"))
    root = None if given["root"] is None else _root(given["root"], given["catalog"])
    try:
        with _catalog(service, admin, root, given) as catalog:
            yield QuerySession(catalog, Resources(given["memory"], spill, zone), output, limit)
    finally:
        shutil.rmtree(spill, ignore_errors=True)


def _root(text: str, catalog: str) -> "OffloadRoot":
    """Return the directory or table of offloaded messages. Raises Misused if the directory does not exist."""
    from pulsarbox.spark.lakehouse.table_place import TableError
    from pulsarbox.spark.offload.s3_access import StorageError
    from pulsarbox.spark.offload.table_history import root_of

    try:
        place = root_of(text, catalog)
    except (StorageError, TableError) as error:
        raise Misused(f"--history: {error}") from None
    if isinstance(place, Path) and not place.is_dir():
        raise Misused(f"--history {text}: the directory does not exist")
    return place


@contextmanager
def _catalog(
    service: Callable[[], Target], admin: Callable[[], Target], root: "OffloadRoot | None", given: dict[str, Any]
) -> "Iterator[TopicCatalog]":
    """Provide the tables of a running or stopped box, or of the offloaded files alone."""
    from pulsarbox.cli.sql.topic_table import TopicCatalog

    if given["no_live"]:
        yield TopicCatalog(None, root, notify)
        return
    try:
        target = service()
    except Unreachable:
        path = given["data_dir"]
        if path is None or not _is_stopped(Path(path)):
            raise
        yield from _of_stopped(Path(path), root, skip=given["skip_lost"])
        return
    try:
        yield TopicCatalog(_reach(target, admin(), skip=given["skip_lost"]), root, notify)
    except NotConnected as error:
        raise target.unreachable(str(error)) from error


def _is_stopped(path: Path) -> bool:
    from pulsarbox.cli.process.lock_holder import find

    return path.is_dir() and find(path) is None


def _of_stopped(path: Path, root: "OffloadRoot | None", *, skip: bool) -> "Iterator[TopicCatalog]":
    from pulsarbox.cli.sql.stopped_box import reach_of
    from pulsarbox.cli.sql.topic_table import TopicCatalog

    try:
        yield TopicCatalog(reach_of(path.absolute(), skip=skip), root, notify, is_stopped=True)
    except NotConnected:
        raise Failed(f"the query needs more than the files of {path}: start the box, and run it again") from None


def _reach(service: Target, admin: Target, *, skip: bool) -> "Reach":
    from pulsarbox.cli.pipeline.options import options_of
    from pulsarbox.spark.connect.target import in_place, reach
    from pulsarbox.spark.options import BATCH, OptionError, parse

    options = {"topicsPattern": ".*", "failOnDataLoss": "false" if skip else "true", **options_of(service, admin)}
    try:
        return in_place(reach(parse(options, BATCH)))
    except OptionError as error:
        raise Misused(str(error)) from None


def _zone(name: str) -> str:
    """Return the time zone by name: by default, that of the system. Raises Misused."""
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    found = name or os.environ.get("TZ", "").removeprefix(":") or _system_zone()
    try:
        ZoneInfo(found)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        if name:
            raise Misused(f"--timezone {name}: unknown time zone; expected one like Europe/Berlin or UTC") from None
        return "UTC"
    return found


def _system_zone() -> str:
    path = str(_LOCAL_TIME.resolve())
    _, mark, name = path.partition("/zoneinfo/")
    return name.removeprefix("posix/").removeprefix("right/") if mark else "UTC"
