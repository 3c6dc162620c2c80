"""Output of commands that read: rows or one document, in the format of ``-o``, once or repeatedly with ``--watch``.

Tables need no library: importing rich takes longer than a request.
"""

import functools
import io
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

import click

from pulsarbox.cli.common.terminal_text import clean, notify
from pulsarbox.cli.common.text_table import fitted, head_of, terminal_width
from pulsarbox.cli.common.value_types import Seconds

Row = dict[str, Any]

FORMS: Final = ("table", "wide", "json", "ndjson", "yaml", "csv", "name")
_T = TypeVar("_T", bound=Callable[..., Any])


class TableOutput(NamedTuple):
    """Result of a command: rows, or one document."""

    rows: list[Row]
    """Fields besides ``columns`` and ``wide`` appear only in the other formats."""
    columns: Sequence[str] = ()
    name: str = "name"
    """Field printed by ``-o name``."""
    lines: list[str] | None = None
    """Text of a single document in the table format; None for a list."""
    titles: Mapping[str, str] = {}
    """Column titles that differ from the words of the field name in capitals."""
    hidden: Sequence[str] = ()
    """Titles of the columns that do not fit in ``lines``."""
    document: Any = None
    """JSON and YAML form, if it is neither the list of the rows nor the only row."""
    shown: Callable[[Row], Row] | None = None
    """Converts a row for the table, such as times and sizes."""
    cut: Mapping[str, int] = {}
    """Columns whose texts are shortened in a table that is wider than the terminal, with the fewest characters that
    stay. Paths keep their end, names both ends."""
    least: Sequence[str] = ()
    """Columns that a narrow terminal hides first, in this order; the others follow from the right."""
    wide: Sequence[str] = ()
    """Further columns of ``-o wide``."""
    fields: Sequence[str] = ()
    """Documented fields, which --filter knows and CSV has even if no row has them."""
    elsewhere: Mapping[str, str] = {}
    """Fields that another option adds, with that option, for errors of --filter."""
    empty: str = "no rows"
    """Note about a table without rows on a terminal, which says what to do next where that is known."""


class OutputOptions(NamedTuple):
    """Output options of a command."""

    form: str
    watch: float | None
    wanted: Callable[[Row], bool] | None

    @property
    def is_table(self) -> bool:
        """Whether the output is a table for people."""
        return self.form in ("table", "wide")

    @property
    def width(self) -> int | None:
        """Maximum width of a table: that of the terminal, None for no limit."""
        return terminal_width() if self.form == "table" else None


def output_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add -o, --watch and --filter to a command, passed to it as ``output``."""

    @functools.wraps(command)
    def called(*args: Any, form: str, watch: float | None, filter_text: str | None, **kwargs: Any) -> Any:
        return command(*args, output=OutputOptions(form, watch, _wanted(filter_text)), **kwargs)

    filtering = click.option(
        "--filter",
        "filter_text",
        metavar="EXPRESSION",
        help='Show only matching rows: `backlog > 0 and startswith(topic, "a")`. Field names as in -o json.',
    )
    watching = click.option(
        "--watch",
        metavar="[DURATION]",
        type=Seconds(0.1),
        is_flag=False,
        flag_value=2,
        help="Repeat at this interval (default 2s) until Ctrl-C. Timestamped ndjson if stdout is not a terminal.",
    )
    return _forms(watching(filtering(called)))


_forms: Final = click.option(
    "-o",
    "--output",
    "form",
    type=click.Choice(FORMS),
    default="table",
    show_default=True,
    help="Output format. A table fits the terminal; wide has all its columns. The others have all fields, with stable"
    " names.",
)


def form_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add only -o to a command, passed to it as ``output``."""

    @functools.wraps(command)
    def called(*args: Any, form: str, **kwargs: Any) -> Any:
        return command(*args, output=OutputOptions(form, None, None), **kwargs)

    return _forms(called)


def show(output: OutputOptions, look: Callable[[], TableOutput]) -> None:
    """Print the result of ``look``, repeatedly with --watch."""
    if output.watch is None:
        _print(_filtered(look(), output), output.form, notify)
        return
    from pulsarbox.cli.common.terminal import rest

    terminal = _is_terminal()
    form = "ndjson" if output.form == "table" and not terminal else output.form
    noted: set[str] = set()

    def note(text: str) -> None:
        if text not in noted:
            noted.add(text)
            notify(text)

    try:
        while True:
            found = _filtered(look(), output)
            if terminal:
                click.clear()
            elif form == "ndjson":
                at = time.time_ns() // 1_000_000
                found = found._replace(rows=[{"time": at, **row} for row in found.rows])
            _print(found, "json line" if form == "json" and not terminal else form, note)
            sys.stdout.flush()
            rest(output.watch)
    except KeyboardInterrupt:
        notify("stopped watching")


def _is_terminal() -> bool:
    return sys.stdout.isatty()


def _wanted(text: str | None) -> Callable[[Row], bool] | None:
    if text is None:
        return None
    from pulsarbox.cli.common.time_arguments import wall_now
    from pulsarbox.expressions import Language

    def named(name: str) -> Callable[[Row], Any]:
        return lambda row: _field(row, [name])

    def member(name: str, path: list[str]) -> Callable[[Row], Any]:
        return lambda row: _field(row, [name, *path])

    try:
        return Language(named, member, "the fields of -o json").parse(text, wall_now())
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--filter") from None


class _Unknown(Exception):
    """The filter names a field that the row does not have."""


def _field(row: Row, path: list[str]) -> Any:
    if path[0] not in row:
        raise _Unknown(path[0])
    from pulsarbox.expressions import inside

    return inside(row, path)


def _filtered(found: TableOutput, output: OutputOptions) -> TableOutput:
    if output.wanted is None:
        return found
    names = _names(found)
    absent = dict.fromkeys(names)
    try:
        rows = [row for row in found.rows if output.wanted({**absent, **row})]
    except _Unknown as error:
        from pulsarbox.config.setting import did_you_mean

        option = found.elsewhere.get(str(error))
        if option:
            raise click.BadParameter(f"field '{error}' requires {option}", param_hint="--filter") from None
        hint = did_you_mean(str(error), names)
        hint = hint or f"; expected one of {', '.join(names)}"
        raise click.BadParameter(f"unknown field '{error}'{hint}", param_hint="--filter") from None
    return found._replace(rows=rows, empty="no row matches --filter" if found.rows else found.empty)


def _names(found: TableOutput) -> dict[str, None]:
    """Return the fields of all rows, and the documented ones."""
    return dict.fromkeys([*(name for row in found.rows for name in row), *found.fields])


def _print(found: TableOutput, form: str, note: Callable[[str], None]) -> None:
    rows = found.rows
    whole: Any = rows if found.lines is None else (rows[0] if rows else None)
    if found.document is not None:
        whole = found.document
    if form == "json":
        click.echo(json.dumps(whole, indent=2))
    elif form == "json line":
        click.echo(json.dumps(whole))
    elif form == "ndjson":
        for row in rows:
            click.echo(json.dumps(row, separators=(",", ":")))
    elif form == "yaml":
        from pulsarbox.cli.common.yaml_text import to_yaml

        click.echo(f"---\n{to_yaml(whole)}", nl=False)
    elif form == "csv":
        _print_csv(rows, list(_names(found) or found.columns))
    elif form == "name":
        for row in rows:
            click.echo(clean(str(row[found.name])))
    elif found.lines is not None:
        for line in found.lines if rows else []:
            click.echo(line)
        _note_hidden(found.hidden, note)
    else:
        _print_table(found, note, wide=form == "wide")


def _print_table(found: TableOutput, note: Callable[[str], None], *, wide: bool) -> None:
    columns, width = ([*found.columns, *found.wide], None) if wide else (found.columns, terminal_width())
    rows = found.rows if found.shown is None else [found.shown(row) for row in found.rows]
    lines, hidden = fitted(columns, rows, found.titles, found.cut, width, found.least)
    for line in lines:
        click.echo(line)
    if rows:
        _note_hidden([head_of(name, found.titles) for name in hidden], note)
    elif _is_terminal():
        note(found.empty)


def _note_hidden(titles: Sequence[str], note: Callable[[str], None]) -> None:
    if titles:
        note(f"{', '.join(titles)} did not fit: -o wide shows all columns")


def _print_csv(rows: Sequence[Row], names: Sequence[str]) -> None:
    """Print all fields, with a header. Lists and objects are JSON."""
    import csv

    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    if names:
        writer.writerow(names)
    writer.writerows([_csv_cell(row.get(name)) for name in names] for row in rows)
    click.echo(lines.getvalue(), nl=False)


def _csv_cell(value: Any) -> str:
    if value is None:
        return ""
    return clean(value) if isinstance(value, str) else json.dumps(value)
