"""The in-memory database of one query: bound against empty tables, then run over files and live messages.

A query may come from anywhere, so it can read nothing but the topics that it names: the configuration is locked before
it runs, without access to files, the network and extensions. Binding happens in a database without any data.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import duckdb
import pyarrow.dataset as ds

from pulsarbox.cli.common.exits import Failed, Misused
from pulsarbox.cli.sql.column_sql import identifier, literal, sql_type
from pulsarbox.cli.sql.live_dataset import LiveDataset, LivePart
from pulsarbox.cli.sql.query_dataset import ReadProgress
from pulsarbox.cli.sql.query_errors import in_words
from pulsarbox.cli.sql.table_dataset import TableDataset
from pulsarbox.cli.sql.topic_columns import expressions
from pulsarbox.cli.sql.topic_table import TopicTable
from pulsarbox.spark.lakehouse.table_scan import TableScan
from pulsarbox.spark.offload.object_path import system_of
from pulsarbox.spark.schema.arrow_types import arrow_schema
from pulsarbox.spark.schema.column_types import ColumnField
from pulsarbox.spark.topic_segments import Reach

COUNTED: Final = "__entryId"
"""Column that DuckDB reads to count rows."""
_READING: Final = (duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN)
_MISSING: Final = re.compile(r"Table with name (.*) does not exist!", re.DOTALL)
_SCHEMA: Final = re.compile(r'Table with name "?(.*?)"? does not exist because', re.DOTALL)
_GLOB: Final = re.compile(r"[*?\[\]]")
_CLOSED: Final = {
    "python_enable_replacements": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
}
Resolve = Callable[[str], TopicTable]
Tables = Mapping[str, TopicTable]


class Resources(NamedTuple):
    """Limits and settings of a query."""

    memory: str
    """Memory limit, such as ``1GB``."""
    spill: Path
    """Directory for what exceeds it."""
    zone: str
    """Time zone of results and of times without one."""


def checked(query: str) -> str:
    """Return the only statement of a text. Raises Misused unless it is a single query."""
    try:
        found = duckdb.extract_statements(query)
    except duckdb.Error as error:
        raise in_words(error, query, {}) from None
    if len(found) != 1:
        raise Misused("no query" if not found else "expected a single query, without `;` between several")
    if found[0].type not in _READING:
        kind = str(found[0].type).rpartition(".")[2]
        raise Misused(f"{kind} is refused: a query only reads. Expected SELECT, WITH, FROM, VALUES or EXPLAIN")
    return str(found[0].query)


def bound(query: str, resolve: Resolve, resources: Resources) -> dict[str, TopicTable]:
    """Return the tables of a query by name, as written in it. Reads no messages.

    Raises Misused for an invalid query, and the errors of ``resolve``.
    """
    tables: dict[str, TopicTable] = {}
    with _connection(resources) as database:
        _lock(database)
        while True:
            try:
                database.sql(query)
                return tables
            except duckdb.CatalogException as error:
                name = _missing(str(error))
                if name is None or name in tables:
                    raise in_words(_with_place(database, query, error), query, tables) from None
            except duckdb.Error as error:
                raise in_words(_with_place(database, query, error), query, tables) from None
            tables[name] = resolve(name)
            _create_empty(database, name, tables)


def _with_place(database: duckdb.DuckDBPyConnection, query: str, error: duckdb.Error) -> duckdb.Error:
    """Return the error of a query that cannot be bound, with its place, which ``sql`` leaves out."""
    try:
        database.execute(query).fetchall()
    except duckdb.Error as found:
        return found
    return error


def _missing(text: str) -> str | None:
    found = _SCHEMA.search(text)
    if found:
        raise Misused(
            f'no table {found[1]}: quote the name of a topic outside of public/default as "tenant/namespace/topic"'
        )
    found = _MISSING.search(text.partition("\n")[0]) or _MISSING.search(text)
    return found[1] if found else None


def _create_empty(database: duckdb.DuckDBPyConnection, name: str, tables: Tables) -> None:
    columns = ", ".join(
        f"{identifier(field['name'])} {sql_type(field['type'])}" for field in tables[name].columns.fields
    )
    try:
        database.execute(f"CREATE TABLE {identifier(name)} ({columns})").fetchall()
    except duckdb.CatalogException:
        twin = next(each for each in tables if each != name and each.casefold() == name.casefold())
        raise Misused(f"tables {twin} and {name} differ only by case, which SQL ignores: query one of them") from None


@contextmanager
def opened(tables: Tables, reach: Reach | None, resources: Resources, progress: ReadProgress) -> Iterator[Any]:
    """Provide a connection to a locked database with these tables. Raises Failed for unusable paths."""
    with _connection(resources) as database:
        _allow(database, [path for table in tables.values() for path in _paths(table)])
        for number, (name, table) in enumerate(tables.items()):
            fields = _cheapest_first(table.columns.fields)
            parts = [
                _stored(database, f"__files{number}_{columns}", table, fields, columns, progress)
                for columns in table.history.files
            ]
            if table.segments or not parts:
                parts.append(_live(database, f"__live{number}", table, fields, reach, progress))
            _create_view(database, name, table.columns.fields, parts)
        _lock(database)
        yield database


@contextmanager
def _connection(resources: Resources) -> Iterator[duckdb.DuckDBPyConnection]:
    database = duckdb.connect(":memory:", config={**_CLOSED, "temp_directory": str(resources.spill)})
    try:
        _limit_memory(database, resources.memory)
        database.execute(f"SET TimeZone = {literal(resources.zone)}").fetchall()
        yield database
    finally:
        database.close()


def _limit_memory(database: duckdb.DuckDBPyConnection, size: str) -> None:
    try:
        database.execute(f"SET memory_limit = {literal(size)}").fetchall()
    except duckdb.Error:
        raise Misused(f"--memory {size}: expected a size such as 512MB or 2GB") from None


def _allow(database: duckdb.DuckDBPyConnection, paths: Sequence[Path]) -> None:
    wrong = next((path for path in paths if _GLOB.search(str(path))), None)
    if wrong is not None:
        raise Failed(f"{wrong} cannot be read: its path has one of the characters * ? [ ]; move the directory")
    names = ", ".join(literal(str(path)) for path in paths)
    database.execute(f"SET allowed_paths = [{names}]").fetchall()


def _lock(database: duckdb.DuckDBPyConnection) -> None:
    database.execute("SET enable_external_access = false").fetchall()
    database.execute("SET lock_configuration = true").fetchall()


def _paths(table: TopicTable) -> Iterator[Path]:
    for paths in table.history.files.values():
        yield from (path for path in paths if isinstance(path, Path))


def _cheapest_first(fields: Sequence[ColumnField]) -> list[ColumnField]:
    """Return the fields with the one first that DuckDB shall read to count rows: one that needs no value decoded."""
    return sorted(fields, key=lambda field: field["name"] != COUNTED)


def _names(fields: Sequence[ColumnField]) -> str:
    return ", ".join(identifier(field["name"]) for field in fields)


def _create_view(
    database: duckdb.DuckDBPyConnection, name: str, fields: Sequence[ColumnField], parts: Sequence[str]
) -> None:
    rows = " UNION ALL ".join(parts)
    database.execute(f"CREATE VIEW {identifier(name)} AS SELECT {_names(fields)} FROM ({rows})").fetchall()


def _source(
    database: duckdb.DuckDBPyConnection, name: str, table: TopicTable, columns: str, progress: ReadProgress
) -> str:
    """Return the source of the files of one column set. DuckDB reads local files, Arrow those in a bucket, and
    pyiceberg those of a table."""
    paths = table.history.files[columns]
    if isinstance(paths[0], TableScan):
        database.register(name, TableDataset(paths[0], progress))
        return identifier(name)
    if all(isinstance(path, Path) for path in paths):
        return f"read_parquet([{', '.join(literal(str(path)) for path in paths)}])"
    systems = [system_of(path) for path in paths]
    schema = arrow_schema(table.history.schemas[columns]["fields"])
    names = [path for _, path in systems]
    database.register(name, ds.dataset(names, schema, format="parquet", filesystem=systems[0][0]))
    return identifier(name)


def _stored(
    database: duckdb.DuckDBPyConnection,
    name: str,
    table: TopicTable,
    wanted: Sequence[ColumnField],
    columns: str,
    progress: ReadProgress,
) -> str:
    source = _source(database, name, table, columns, progress)
    stored = table.history.schemas[columns]["fields"]
    named = zip(expressions(stored, wanted), wanted, strict=True)
    found = ", ".join(f"{sql} AS {identifier(field['name'])}" for sql, field in named)
    return f"SELECT {found} FROM {source}"


def _live(
    database: duckdb.DuckDBPyConnection,
    name: str,
    table: TopicTable,
    fields: Sequence[ColumnField],
    reach: Reach | None,
    progress: ReadProgress,
) -> str:
    part = LivePart(str(table.topic.base), fields, table.segments, table.schemas, reach or Reach(""), progress)
    database.register(name, LiveDataset(part))
    return f"SELECT {_names(fields)} FROM {identifier(name)}"
