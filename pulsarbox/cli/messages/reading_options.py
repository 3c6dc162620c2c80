"""Options of the commands that read messages. Imports no client code before one of them runs."""

from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

FORMS: Final = ("lines", "raw", "hex", "ndjson", "table")
COLORS: Final = ("auto", "always", "never")
END_SECONDS: Final = 10.0
"""Default timeout without messages before a requested end counts as not reached."""

_F = TypeVar("_F", bound=Callable[..., Any])


def form_options(default: str) -> Callable[[_F], _F]:
    """Add the output and filter options to a command."""
    options = (
        click.option("-o", "--output", type=click.Choice(FORMS), default=default, show_default=True,
                     help="Output format: payloads (one per line, raw, hex), JSON envelopes, or a table."),
        click.option("-f", "--format", "line_format", metavar="FMT",
                     help="Output format string, such as '%t %i %k %v\\n'; see docs/cli.md."),
        click.option("--filter", "expression", metavar="E",
                     help="Select matching messages, such as 'key == \"a\" and json.total > 5'."),
        click.option("--decode/--no-decode", default=None,
                     help="Decode payloads to JSON by their schema. [default: only in tables]"),
        click.option("--color", type=click.Choice(COLORS), default="auto", show_default=True,
                     help="Highlight keys, properties and JSON, as lines, table or ndjson; auto: on a terminal, unless"
                     " NO_COLOR is set."),
        click.option("--no-progress", is_flag=True, help="Do not show progress."),
    )  # fmt: skip

    def add(command: _F) -> _F:
        for option in reversed(options):
            command = option(command)
        return command

    return add
