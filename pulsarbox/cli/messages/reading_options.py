"""The options of the commands that read messages. Nothing of the client is imported before one of them runs."""

from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

FORMS: Final = ("lines", "raw", "hex", "ndjson", "table")
END_SECONDS: Final = 10.0
"""Of silence, after which an end that was asked for is not reached any more."""

_F = TypeVar("_F", bound=Callable[..., Any])


def form_options(default: str) -> Callable[[_F], _F]:
    """The options that say how messages are written and which."""
    options = (
        click.option("-o", "--output", type=click.Choice(FORMS), default=default, show_default=True,
                     help="Payloads (one a line, raw, hex), envelopes, or a table for the eye."),
        click.option("-f", "--format", "line_format", metavar="FMT",
                     help="Write each message as FMT says, such as '%t %i %k %v\\n': see docs/cli.md."),
        click.option("--filter", "expression", metavar="E",
                     help="Only messages for which E holds, such as 'key == \"a\" and json.total > 5'."),
        click.option("--decode/--no-decode", default=None,
                     help="Payloads as their topic's schema says, as JSON. [in tables]"),
        click.option("--no-progress", is_flag=True, help="No line that says how far it is."),
    )  # fmt: skip

    def add(command: _F) -> _F:
        for option in reversed(options):
            command = option(command)
        return command

    return add
