"""Reference of `pulsarbox admin` in Markdown."""

from collections.abc import Iterator
from typing import Any

import click

from pulsarbox.cli.common.exits import Misused
from pulsarbox.cli.common.terminal_text import clean
from pulsarbox.cli.pulsar_admin import table
from pulsarbox.cli.pulsar_admin.table import Command, Parameter


def generate(command: Command, values: dict[str, Any]) -> None:
    """Print the reference of the given groups, or of all that are listed. Raises Misused for an unknown one."""
    groups = [table.ALIASES.get(name, name) for name in values["modules"] or ()] or list(table.GROUPS)
    for name in groups:
        if name not in table.GROUPS and name not in table.OLD_GROUPS:
            raise Misused(f"unknown group '{clean(name)}'; expected one of {', '.join(table.GROUPS)}")
    for name in dict.fromkeys(groups):
        click.echo("\n".join(_group(name)))


def _group(name: str) -> Iterator[str]:
    yield f"# {name}\n\n{table.GROUPS.get(name) or table.OLD_GROUPS[name]}\n"
    yield f"```shell\n$ pulsarbox admin {name} subcommand\n```\n"
    for row in table.headings(name).values():
        if not row.hidden:
            yield from _command(table.command(name, row))


def _command(command: Command) -> Iterator[str]:
    yield f"## {command.name}\n\n{command.summary}\n\n**Command:**\n"
    words = " ".join(one.name for one in command.parameters if not one.spellings)
    yield f"```shell\n$ pulsarbox admin {command.group} {command.name} {words} options\n```\n".replace("  ", " ")
    rows = [_row(command, one) for one in command.parameters if one.spellings and not one.hidden]
    if rows:
        yield "\n".join(["**Options:**\n", "|Flag|Description|Default|", "|---|---|---|", *rows, ""])


def _row(command: Command, one: Parameter) -> str:
    text = table.option_help(command.group, command.name, one).replace("|", "\\|")
    return f"| `{', '.join(one.spellings)}` | {text} | {one.default or ''} |"
