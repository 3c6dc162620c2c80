"""Output formats: every command that prints rows has all of them."""

from collections.abc import Iterator

import click

from pulsarbox.cli.common.output import FORMS
from pulsarbox.cli.main import main

DOCUMENT = ("table", "json", "yaml")
"""Formats of a single document."""
MESSAGES = ("lines", "raw", "hex", "ndjson", "table")
OTHERS = {
    "consume": MESSAGES, "peek": MESSAGES, "tap": MESSAGES, "dlq show": MESSAGES,
    "sql": ("table", "wide", "json", "ndjson", "yaml", "csv", "parquet", "arrow"),
    "storage check": ("text", "json"), "storage stat": ("text", "json"),
    "top": ("table", "json", "svg"),
}  # fmt: skip
"""Commands with formats of their own: messages, files, screens, and reports of several tables."""
DOCUMENTS = {
    "backup create", "backup remove", "backup verify", "clock advance", "clock set", "clock show", "config show",
    "plugins bench", "plugins doctor", "plugins info", "plugins test", "restore", "status", "token create",
    "token show", "token validate", "version",
}  # fmt: skip


def outputs(group: click.Group = main, path: str = "") -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield each command with its formats, () without -o. pulsar-admin has its own output."""
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        words = f"{path} {name}".strip()
        if isinstance(command, click.Group) and name != "admin":
            yield from outputs(command, words)
        elif command is not None and name != "admin":
            yield words, forms_of(command)


def forms_of(command: click.Command) -> tuple[str, ...]:
    for parameter in command.params:
        if "--output" in parameter.opts and isinstance(parameter.type, click.Choice):
            return tuple(parameter.type.choices)
    return ()


ALL = dict(outputs())


def test_commands_that_print_rows_have_every_format() -> None:
    known = {name: OTHERS.get(name, DOCUMENT if name in DOCUMENTS else FORMS) for name, forms in ALL.items() if forms}
    assert {name: forms for name, forms in ALL.items() if forms} == known


def test_lists_have_formats() -> None:
    lists = [name for name in ALL if name.split()[-1] in ("list", "groups", "holes", "members", "under-replicated")]
    assert len(lists) > 15
    assert [name for name in lists if ALL[name] != FORMS] == []


def test_the_exceptions_exist() -> None:
    assert (DOCUMENTS | set(OTHERS)) - set(ALL) == set()
