"""``pulsarbox config``: show effective settings, check or create a configuration file."""

import os
import sys
from pathlib import Path
from typing import Any, Final

import click

from pulsarbox.cli.common.exits import EXIT_CONFLICT, ended_by_reader
from pulsarbox.cli.common.lazy_group import SuggestingGroup
from pulsarbox.cli.common.output import OutputOptions, TableOutput, form_option
from pulsarbox.cli.common.output import show as show_rows
from pulsarbox.cli.common.terminal_text import clean, coloured, counted, notify
from pulsarbox.cli.process.setting_options import DEFAULT_FILE, loaded_or_exit, overrides, settings_options

EXIT_PROBLEMS: Final = 1
EXIT_NOT_OPENED: Final = 2

_DEL: Final = "\x7f"  # the only character that JSON leaves unescaped and TOML rejects


@click.group(cls=SuggestingGroup)
def config() -> None:
    """Show settings; create or check a configuration file.

    \b
    Examples:
      pulsarbox config show --origin
      pulsarbox config init
      pulsarbox config check pulsarbox.toml
    """


@config.command()
@settings_options
@click.option("--origin", is_flag=True, help="Show the origin of each value.")
@form_option
@ended_by_reader
def show(config_file: Path | None, origin: bool, output: OutputOptions, **options: Any) -> None:
    """Show the effective settings of `pulsarbox start` with the same options.

    Prints a valid configuration file. With --origin, each line ends in a comment: default, file and line, environment
    variable, or command line. The other formats have the name, value and origin of each setting. Secrets are shown as
    "..."; paths to secrets are shown. Exits with 2 if the configuration is invalid.

    \b
    Examples:
      pulsarbox config show
      pulsarbox config show --origin --port 7000 | grep -v default
      pulsarbox config show -o json | jq .maxMessageSize.value
    """
    loaded = loaded_or_exit(config_file, overrides(options))
    from pulsarbox.config import settings_table
    from pulsarbox.config.document import toml_value

    values = {row.name: row.written(row.shown(getattr(loaded.settings, row.name))) for row in settings_table()}
    if output.form != "table":
        document = {name: {"value": value, "origin": loaded.origins[name]} for name, value in values.items()}
        rows = [{"name": name, **each} for name, each in document.items()]
        columns = ("name", "value", "origin")
        show_rows(output, lambda: TableOutput(rows, columns, document=document, shown=_as_in_a_file))
        return
    table = ""
    for row in settings_table():
        if row.table != table:
            click.echo(f"{chr(10) if table else ''}[{row.table}]")
            table = row.table
        line = f"{row.name} = {toml_value(values[row.name]).replace(_DEL, chr(92) + 'u007f')}"
        from_where = coloured(f"  # {clean(loaded.origins[row.name])}", dim=True) if origin else ""
        click.echo(line + from_where)


def _as_in_a_file(row: dict[str, Any]) -> dict[str, Any]:
    from pulsarbox.config.document import toml_value

    return row | {"value": toml_value(row["value"])}


@config.command()
@click.argument("file", type=click.Path(path_type=Path))
@ended_by_reader
def check(file: Path) -> None:
    """Check a configuration FILE and list all errors.

    Prints one error per line, with its line number and the nearest valid name. Ignores environment variables and
    options. Keys of a Pulsar broker.conf without effect are warnings. Exit codes: 0 for success, 1 for errors, 2 if
    FILE cannot be read.

    \b
    Examples:
      pulsarbox config check pulsarbox.toml
      pulsarbox config check /etc/pulsar/broker.conf
    """
    from pulsarbox.config import ConfigError
    from pulsarbox.config.load import problems_of

    try:
        problems, warnings = problems_of(file)
        if not problems:
            problems = _that_show_later(file)
    except ConfigError as error:
        notify(str(error))
        sys.exit(EXIT_NOT_OPENED)
    for problem in problems:
        click.echo(f"{coloured('ERROR', fg='red', bold=True)} {clean(problem)}")
    for warning in warnings:
        click.echo(f"{coloured('WARNING', fg='yellow')} {clean(warning)}")
    notify(f"{file}: {counted(len(problems), 'error')}, {counted(len(warnings), 'warning')}")
    if problems:
        sys.exit(EXIT_PROBLEMS)


def _that_show_later(file: Path) -> tuple[str, ...]:
    """Return the errors that a start would find in the files named by the settings."""
    from pulsarbox.config import ConfigError, load
    from pulsarbox.server.security.configured import authentication_of

    loaded = load(file)
    try:
        authentication_of(loaded.settings)
    except ConfigError as error:
        return (str(ConfigError(loaded.origins[error.key], error.key, error.problem)),)
    return ()


@config.command()
@click.argument("path", type=click.Path(path_type=Path, allow_dash=True), default=DEFAULT_FILE)
@click.option("-f", "--force", is_flag=True, help="Overwrite an existing file.")
@ended_by_reader
def init(path: Path, force: bool) -> None:
    """Create a configuration file with every setting, its description and default.

    PATH defaults to pulsarbox.toml; `-` is stdout. Without --force, an existing file is kept (exit code 4).

    \b
    Examples:
      pulsarbox config init
      pulsarbox config init /etc/pulsarbox.toml --force
      pulsarbox config init - | less
    """
    from pulsarbox.config.document import as_toml

    if str(path) == "-":
        click.echo(as_toml(), nl=False)
        return
    try:
        # O_EXCL also protects a file that is created concurrently.
        flags = os.O_WRONLY | os.O_CREAT | (os.O_TRUNC if force else os.O_EXCL)
        with os.fdopen(os.open(path, flags, 0o644), "w", encoding="utf-8") as file:
            file.write(as_toml())
    except FileExistsError:
        notify(f"{path} already exists: name another file, or use --force to overwrite it")
        sys.exit(EXIT_CONFLICT)
    except OSError as error:
        notify(f"{path} cannot be written: {error.strerror}: name another file")
        sys.exit(EXIT_PROBLEMS)
    notify(f"{path} lists every setting with its default; edit it, then run `pulsarbox config check {path}`")
