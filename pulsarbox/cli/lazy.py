"""Groups of commands that import a command's module only when that command runs."""

import importlib
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import click

from pulsarbox.cli.text import clean

_SENTENCE_MAX: Final = 1000


class LazyCommand(NamedTuple):
    """Where a command is (``package.module:name``), and its one line in the list of commands."""

    target: str
    summary: str


class Group(click.Group):
    """A group that knows what an unknown command was meant to be."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if not ctx.resilient_parsing and not name.startswith("-") and self.get_command(ctx, name) is None:
            from pulsarbox.config.setting import did_you_mean

            hint = did_you_mean(name, self.list_commands(ctx))
            ctx.fail(f"no such command '{clean(name)}'{hint or f'; `{ctx.command_path} --help` lists them'}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Click's own, but that the first sentence of a command is not cut off where the line is full."""
        rows = [(name, self.summary(name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def summary(self, name: str) -> str:
        """What the list of commands says of one."""
        return self.commands[name].get_short_help_str(limit=_SENTENCE_MAX)


class LazyGroup(Group):
    """A group whose commands are rows of a table. Listing them imports none of them."""

    def __init__(self, *args: Any, lazy_commands: Mapping[str, LazyCommand], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.lazy_commands = lazy_commands

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *self.lazy_commands})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.lazy_commands:
            return super().get_command(ctx, cmd_name)
        module_name, _, attribute = self.lazy_commands[cmd_name].target.partition(":")
        command = getattr(importlib.import_module(module_name), attribute)
        assert isinstance(command, click.Command), f"{self.lazy_commands[cmd_name].target} is not a command"
        return command

    def summary(self, name: str) -> str:
        return self.lazy_commands[name].summary if name in self.lazy_commands else super().summary(name)
