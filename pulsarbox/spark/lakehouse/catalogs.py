"""Catalogs of Iceberg tables: opening them, and creating tables from the columns of a frame."""

import contextlib
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pulsarbox.spark.lakehouse.sink_options import TableOptions
from pulsarbox.spark.lakehouse.table_place import CATALOG_FILE, TableError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table

INSTALL: Final = "pip install 'pulsarbox[iceberg]'"
LOCAL_CATALOG: Final = "pulsarbox"
"""Name of the catalog in ``catalog.db``, as other engines must name it."""
_FILES: Final = "pulsarbox.spark.lakehouse.durable_io.DurableFileIO"
_WAIT_SECONDS: Final = 60
"""Longest wait for SQLite's lock."""
CREATED_WITH: Final = {
    "format-version": "2",
    "commit.manifest-merge.enabled": "true",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "100",
    "write.parquet.compression-codec": "zstd",
}
"""Properties of created tables: a stream commits often, so manifests are merged and old metadata files are deleted."""
_TRANSFORM: Final = re.compile(r"(year|month|day|hour|bucket|truncate)\((?:(\d+) *, *)?([^(),]+)\)")


@contextlib.contextmanager
def opened(options: TableOptions) -> "Iterator[Catalog]":
    """Open the catalog of a table. Raises TableError."""
    try:
        from pyiceberg.catalog import load_catalog
    except ModuleNotFoundError as error:
        raise TableError(f"Iceberg tables require pyiceberg ({error}): {INSTALL}") from None
    name, properties = _described(options)
    try:
        catalog = load_catalog(name, **properties)
    except Exception as error:
        raise TableError(
            f"the catalog of table {options.place} cannot be opened: {type(error).__name__}: {error}"
        ) from error
    try:
        yield catalog
    finally:
        catalog.close()


def _described(options: TableOptions) -> tuple[str, dict[str, str]]:
    place = options.place
    if not place.warehouse:
        if not options.catalog and not options.properties:
            raise TableError(
                f"table {place} has no catalog: name a directory, as in lake/{place}, or set catalog to a name in the "
                "configuration of pyiceberg, or catalog.uri and catalog.warehouse"
            )
        return options.catalog or LOCAL_CATALOG, {"py-io-impl": _FILES, **dict(options.properties)}
    try:
        Path(place.warehouse).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise TableError(f"table {place}: {error.filename} cannot be created: {error.strerror}") from error
    uri = f"sqlite:///{place.warehouse}/{CATALOG_FILE}?timeout={_WAIT_SECONDS}"
    return LOCAL_CATALOG, {"type": "sql", "uri": uri, "warehouse": f"file://{place.warehouse}", "py-io-impl": _FILES}


def table_for(catalog: "Catalog", options: TableOptions, columns: "pa.Schema") -> "Table":
    """Return the table, created if missing, with the columns of a frame. Raises TableError."""
    from pyiceberg.exceptions import NoSuchTableError, TableAlreadyExistsError

    name = options.place.name
    try:
        table = catalog.load_table(name)
    except NoSuchTableError:
        try:
            return _created(catalog, options, columns)
        except TableAlreadyExistsError:
            table = catalog.load_table(name)
    return _fitting(table, options, columns)


def _created(catalog: "Catalog", options: TableOptions, columns: "pa.Schema") -> "Table":
    import pyarrow as pa

    catalog.create_namespace_if_not_exists(options.place.namespace)
    try:
        nullable = pa.schema([field.with_nullable(True) for field in columns])
        with catalog.create_table_transaction(options.place.name, nullable, properties=CREATED_WITH) as made:
            fields = _partitions(options)
            if fields:
                with made.update_spec() as spec:
                    for each in fields:
                        spec.add_field(*each)
    except (TypeError, ValueError, NotImplementedError) as error:
        raise TableError(f"table {options.place} cannot be created with the frame's columns: {error}") from error
    return catalog.load_table(options.place.name)


def _partitions(options: TableOptions) -> list[tuple[str, Any, str]]:
    found = [_partition(options, each) for each in options.partition_by]
    columns = [column for column, _, _ in found]
    for column in columns:
        if columns.count(column) > 1:  # pyiceberg cannot write such tables
            raise TableError(f"table {options.place}: partitionBy names column {column} twice")
    return found


def _partition(options: TableOptions, text: str) -> tuple[str, Any, str]:
    """Return column, transform and name of a partition field. Raises TableError."""
    from pyiceberg.transforms import IdentityTransform, parse_transform

    found = _TRANSFORM.fullmatch(text)
    if found is None and "(" not in text:
        return text, IdentityTransform(), text
    if found is None or (found[1] in ("bucket", "truncate")) != bool(found[2]):
        raise TableError(
            f"table {options.place}: partitionBy {text!r}: expected a column, or year, month, day or hour of one, as "
            "in day(__publishTime), or bucket(16, __key), truncate(3, region)"
        )
    column = found[3].strip()
    width = f"[{found[2]}]" if found[2] else ""
    return column, parse_transform(f"{found[1]}{width}"), f"{column}_{found[1]}"


def _fitting(table: "Table", options: TableOptions, columns: "pa.Schema") -> "Table":
    """Check the columns of a table against those of a frame; add missing ones if ``mergeSchema`` is set."""
    from pyiceberg.io.pyarrow import _check_pyarrow_schema_compatible

    missing = [name for name in columns.names if name not in table.schema().column_names]
    if missing and not options.merge_schema:
        raise TableError(
            f"table {options.place} lacks the columns {', '.join(missing)} of the frame: select other columns, or set "
            "mergeSchema=true to add them"
        )
    try:
        if missing:
            with table.update_schema() as update:
                update.union_by_name(columns)
            table = table.refresh()
        with contextlib.redirect_stdout(io.StringIO()):  # pyiceberg prints its error, a table
            _check_pyarrow_schema_compatible(table.schema(), columns, format_version=table.format_version)
    except (TypeError, ValueError) as error:
        raise TableError(f"table {options.place} does not fit the frame's columns: {_in_words(str(error))}") from error
    return table


def _in_words(error: str) -> str:
    """Return the rows with mismatches of a table printed by pyiceberg; other errors unchanged."""
    rows = [[cell.strip() for cell in line.split("│")] for line in error.splitlines() if "❌" in line]
    return "; ".join(f"{row[2]} (of the table), {row[3]} (of the frame)" for row in rows if len(row) > 3) or error
