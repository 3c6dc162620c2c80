"""Output of a result: to stdout or a file, in the format of ``-o``, batch by batch."""

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

import pyarrow as pa

from pulsarbox.cli.common.exits import Failed, Misused
from pulsarbox.cli.common.stdout import cleaned
from pulsarbox.cli.sql.result_table import PAGE, ResultTable
from pulsarbox.cli.sql.result_values import JsonValues, csv_field, unique

FORMS: Final = ("table", "wide", "json", "ndjson", "yaml", "csv", "parquet", "arrow")
TABLES: Final = frozenset({"table", "wide"})
BINARY: Final = frozenset({"parquet", "arrow"})
_BY_SUFFIX: Final = {
    ".json": "json", ".ndjson": "ndjson", ".jsonl": "ndjson", ".yaml": "yaml", ".yml": "yaml", ".csv": "csv",
    ".parquet": "parquet", ".arrow": "arrow", ".arrows": "arrow", ".txt": "table",
}  # fmt: skip
_PLAN: Final = ["explain_key", "explain_value"]
"""Columns of EXPLAIN."""
Batches = Iterable[pa.RecordBatch]
"""Rows. An empty batch flushes the output."""


class ResultForm(NamedTuple):
    """Requested output."""

    form: str
    bytes_form: str
    file: Path | None
    """None for stdout."""


def form_of(form: str | None, file: Path | None, bytes_form: str) -> ResultForm:
    """Return the output: as requested, by the suffix of the file, or a table. Raises Misused."""
    found = form or (_BY_SUFFIX.get(file.suffix.lower()) if file else "table")
    if found is None:
        raise Misused(f"--output-file {file}: set the format with -o, or a suffix such as .csv or .parquet")
    if found in BINARY and file is None and sys.stdout.isatty():
        raise Misused(f"-o {found} is binary: redirect stdout, or name a file with --output-file")
    return ResultForm(found, bytes_form, file)


@contextmanager
def destination(output: ResultForm) -> Iterator[IO[bytes]]:
    """Provide where to write. A file appears when it is complete, and replaces a previous one."""
    if output.file is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    part = output.file.with_name(f".{output.file.name}.part")
    try:
        with part.open("wb") as file:
            yield file
        part.replace(output.file)
    except OSError as error:
        raise Failed(f"cannot write {output.file}: {error.strerror or error}") from error
    finally:
        part.unlink(missing_ok=True)


def write(output: ResultForm, out: IO[bytes], schema: pa.Schema, batches: Batches) -> int:
    """Write a result; return the number of its rows."""
    count = 0

    def counted() -> Iterator[pa.RecordBatch]:
        nonlocal count
        for batch in batches:
            count += batch.num_rows
            yield batch

    writer = {"parquet": _parquet, "arrow": _arrow}.get(output.form)
    if writer is not None:
        writer(out, schema, counted())
        return count
    values = JsonValues(schema, output.bytes_form, for_people=output.form in TABLES)
    _TEXTS[output.form](_Text(out, output.file is None), schema, counted(), values)
    return count


class _Text:
    """Text output; on a terminal, control characters are escaped."""

    def __init__(self, out: IO[bytes], is_stdout: bool) -> None:
        self._out = out
        self._is_terminal = is_stdout and sys.stdout.isatty()

    def write(self, text: str) -> None:
        data = text.encode("utf-8", "backslashreplace")
        self._out.write(cleaned(data) if self._is_terminal else data)

    def write_lines(self, lines: Iterable[str]) -> None:
        """Write lines that are escaped already, and may have colours."""
        self._out.write("".join(f"{line}\n" for line in lines).encode("utf-8", "backslashreplace"))

    def flush(self) -> None:
        self._out.flush()


def _wide(out: _Text, schema: pa.Schema, batches: Batches, values: JsonValues) -> None:
    _table(out, schema, batches, values, sys.maxsize)


def _table(out: _Text, schema: pa.Schema, batches: Batches, values: JsonValues, width: int | None = None) -> None:
    if schema.names == _PLAN:
        for batch in batches:
            out.write_lines(line for row in values.rows(batch) for line in row[_PLAN[1]].splitlines())
        return
    table = ResultTable(unique(schema.names), width)
    page: list[dict[str, Any]] = []
    is_first = True
    for batch in batches:
        page += values.rows(batch)
        if len(page) >= PAGE or not batch.num_rows:
            out.write_lines(table.lines(page))
            out.flush()
            page, is_first = [], False
    if page or is_first:
        out.write_lines(table.lines(page))


def _json(out: _Text, schema: pa.Schema, batches: Batches, values: JsonValues) -> None:
    before = "[\n  "
    for batch in batches:
        for row in values.rows(batch):
            out.write(before + json.dumps(row, indent=2).replace("\n", "\n  "))
            before = ",\n  "
    out.write("[]\n" if before.startswith("[") else "\n]\n")


def _ndjson(out: _Text, schema: pa.Schema, batches: Batches, values: JsonValues) -> None:
    for batch in batches:
        out.write("".join(f"{json.dumps(row, separators=(',', ':'))}\n" for row in values.rows(batch)))
        out.flush()


def _yaml(out: _Text, schema: pa.Schema, batches: Batches, values: JsonValues) -> None:
    from pulsarbox.cli.common.yaml_text import to_yaml

    out.write("---\n")
    is_empty = True
    for batch in batches:
        rows = values.rows(batch)
        if rows:
            is_empty = False
            out.write(to_yaml(rows))
    if is_empty:
        out.write(to_yaml([]))


def _csv(out: _Text, schema: pa.Schema, batches: Batches, values: JsonValues) -> None:
    names = unique(schema.names)
    out.write(",".join(map(csv_field, names)) + "\n")
    for batch in batches:
        lines = (",".join(csv_field(row[name]) for name in names) for row in values.rows(batch))
        out.write("".join(f"{line}\n" for line in lines))
        out.flush()


def _parquet(out: IO[bytes], schema: pa.Schema, batches: Batches) -> None:
    import pyarrow.parquet as pq

    named = _named(schema)
    with pq.ParquetWriter(pa.PythonFile(out, "w"), named, compression="zstd") as writer:
        for batch in batches:
            writer.write_batch(batch.rename_columns(named.names))


def _arrow(out: IO[bytes], schema: pa.Schema, batches: Batches) -> None:
    named = _named(schema)
    with pa.ipc.new_stream(pa.PythonFile(out, "w"), named) as writer:
        for batch in batches:
            writer.write_batch(batch.rename_columns(named.names))


def _named(schema: pa.Schema) -> pa.Schema:
    names = unique(schema.names)
    return pa.schema([schema.field(at).with_name(name) for at, name in enumerate(names)])


_TEXTS: Final[dict[str, Callable[[_Text, pa.Schema, Batches, JsonValues], None]]] = {
    "table": _table,
    "wide": _wide,
    "json": _json,
    "ndjson": _ndjson,
    "yaml": _yaml,
    "csv": _csv,
}
