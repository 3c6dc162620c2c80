"""Command groups that import the module of a command only when it runs."""

import importlib
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import click

from pulsarbox.cli.common.terminal_text import clean

_SENTENCE_MAX: Final = 1000
_NEGATIVE: Final = re.compile(r"-\d")


class LazyCommand(NamedTuple):
    """Target of a command (``package.module:name``), its one-line summary, and its section of the list of commands."""

    target: str
    summary: str
    section: str = "Commands"


def negatives_as_arguments(command: click.Command, words: list[str]) -> list[str]:
    """Return the command line reordered so that ``-1h`` or ``-10`` parse as arguments: options, ``--``, arguments.

    No option begins with a digit.
    """
    if not any(map(_NEGATIVE.match, words)):
        return words
    takes = {name: _values(each) for each in command.params if isinstance(each, click.Option) for name in each.opts}
    options: list[str] = []
    arguments: list[str] = []
    left = list(words)
    while left:
        word = left.pop(0)
        if word == "--":
            arguments += left
            break
        if word == "-" or not word.startswith("-") or _NEGATIVE.match(word):
            arguments.append(word)
            continue
        count, is_optional = takes.get(word, (0, False))
        if is_optional and left and left[0].startswith("-"):
            count = 0
        options += [word, *left[:count]]
        del left[:count]
    return [*options, "--", *arguments]


def _values(option: click.Option) -> tuple[int, bool]:
    """Return how many values an option takes, and whether they are optional."""
    if option.is_flag or option.count:
        return 0, False
    return option.nargs, isinstance(option.flag_value, str | int | float)  # otherwise a sentinel of click


class SuggestingGroup(click.Group):
    """Command group that suggests the nearest name for an unknown command."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if not ctx.resilient_parsing and not name.startswith("-") and self.get_command(ctx, name) is None:
            from pulsarbox.cli.common.foreign_hints import foreign_hint
            from pulsarbox.config.setting import did_you_mean

            hint = (
                foreign_hint(ctx.command_path, args)
                or self._hint_of_groups(ctx, name)
                or did_you_mean(name, self.list_commands(ctx))
            )
            ctx.fail(f"no such command '{clean(name)}'{hint or f'; `{ctx.command_path} --help` lists them'}")
        found, command, rest = super().resolve_command(ctx, args)
        if ctx.resilient_parsing and command is not None:
            from pulsarbox.cli.process.value_completions import complete_values

            complete_values(" ".join([*ctx.command_path.split()[1:], name]), command)
        if command is not None and not isinstance(command, click.Group):
            rest = negatives_as_arguments(command, rest)
        return found, command, rest

    def _hint_of_groups(self, ctx: click.Context, name: str) -> str:
        """Return ``; use `pulsarbox ...``, or the groups, if groups of this one have a command of this name."""
        groups = [
            group
            for group in self.list_commands(ctx)
            if isinstance(found := self.get_command(ctx, group), click.Group) and name in found.list_commands(ctx)
        ]
        if len(groups) > 1:
            return f"; it is a command of: {', '.join(groups)}"
        return f"; use `{ctx.command_path} {groups[0]} {name}`" if groups else ""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands as click does, without truncating their summaries."""
        sections: dict[str, list[tuple[str, str]]] = {section: [] for section in self.sections}
        for name in self.list_commands(ctx):
            sections[self.section(name)].append((name, self.summary(name)))
        width = max((len(name) for rows in sections.values() for name, _ in rows), default=0)
        for section, rows in sections.items():
            with formatter.section(section):
                formatter.write_dl([(f"{name:{width}}", summary) for name, summary in rows])

    @property
    def sections(self) -> Sequence[str]:
        """The sections of the list of commands, in order."""
        return ("Commands",)

    def section(self, name: str) -> str:
        """Return the section of a command."""
        return self.sections[0]

    def summary(self, name: str) -> str:
        """Return the line of a command in the list of commands."""
        return self.commands[name].get_short_help_str(limit=_SENTENCE_MAX)


class LazyGroup(SuggestingGroup):
    """Command group defined by a table. Listing its commands imports none of them."""

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

    @property
    def sections(self) -> Sequence[str]:
        return list(dict.fromkeys(each.section for each in self.lazy_commands.values()))

    def section(self, name: str) -> str:
        return self.lazy_commands[name].section if name in self.lazy_commands else super().section(name)

    def summary(self, name: str) -> str:
        return self.lazy_commands[name].summary if name in self.lazy_commands else super().summary(name)
