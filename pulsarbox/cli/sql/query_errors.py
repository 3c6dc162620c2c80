"""DuckDB's errors in plain words, with the position in the query."""

import re
import sys
from collections.abc import Mapping
from typing import Final

import click
import duckdb

from pulsarbox.cli.common.exits import Failed, Misused
from pulsarbox.cli.common.terminal_text import clean
from pulsarbox.cli.connect.admin_client import did_you_mean
from pulsarbox.cli.sql.topic_table import TopicTable

_KIND: Final = re.compile(r"^[A-Z][A-Za-z ]* Error: ")
_PLACE: Final = re.compile(r"\n\s*LINE (\d+): (.*)\n( *)(\^+)\s*$")
_COLUMN: Final = re.compile(r'Referenced column "(.*?)" not found in FROM clause')
_OF_INPUT: Final = (duckdb.ParserException, duckdb.BinderException, duckdb.CatalogException, duckdb.SyntaxException)


class QueryError(Misused):
    """The query is invalid. The message has several lines if the position is known."""

    def show(self, file: object = None) -> None:
        """Print the lines on stderr."""
        for line in f"pulsarbox: {self.message}".split("\n"):
            click.echo(clean(line), file=sys.stderr)


def in_words(error: duckdb.Error, query: str, tables: Mapping[str, TopicTable]) -> Failed:
    """Return the exit for an error of DuckDB: a usage error if the query is invalid."""
    text = _KIND.sub("", str(error).strip())
    place = _PLACE.search(text)
    said = (text[: place.start()] if place else text).strip()
    column = _COLUMN.search(said)
    if column:
        said = f"no column {column[1]}{_hint(column[1], tables)}"
    elif isinstance(error, duckdb.PermissionException) or "disabled by configuration" in said:
        said = f"{said.partition(chr(10))[0]}: a query can read topics only, no files, URLs or extensions"
    elif isinstance(error, duckdb.OutOfMemoryException):
        return Failed(f"{said.partition(chr(10))[0]}: raise --memory, or free disk space in the temporary directory")
    if place:
        said += _position(query, *place.groups())
    if isinstance(error, _OF_INPUT) or place:
        return QueryError(said)
    return (
        Misused(said.partition("\n")[0])
        if isinstance(error, duckdb.PermissionException)
        else Failed(said.partition("\n")[0])
    )


def _position(query: str, number: str, shown: str, spaces: str, marks: str) -> str:
    """Return the position, the line and a mark below the error. DuckDB shortens long lines, with dots at the ends."""
    indent = max(0, len(spaces) - len(f"LINE {number}: "))
    core = shown.removeprefix("...").removesuffix("...")
    lines = query.splitlines()
    whole = lines[int(number) - 1] if int(number) <= len(lines) else ""
    at = whole.find(core) + indent - (3 if shown.startswith("...") else 0)
    where = f"line {number}, column {at + 1}" if core in whole and at >= 0 else f"line {number}"
    return f" ({where})\n  {shown}\n  {' ' * indent}{marks}"


def _hint(name: str, tables: Mapping[str, TopicTable]) -> str:
    known = {field["name"]: None for table in tables.values() for field in table.columns.fields}
    return did_you_mean(name, known) or (f"; columns: {', '.join(known)}" if known else "")
