"""Options that select a broker and authenticate with it: the same for all commands, so help explains them once."""

from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from collections.abc import Sequence

    ClickRecord = tuple[str, str]

_USUAL: Final = ("--url", "--admin-url", "--data-dir", "--token-file")
"""The options that help names in each command."""


class ConnectionOption(click.Option):
    """Option of a connection. The first of a command stands for all of them in its help."""

    def get_help_record(self, ctx: click.Context) -> "ClickRecord | None":
        found = connection_options(ctx.command)
        if found[0] is not self:
            return None
        names = [option.opts[0] for option in found]
        usual = ", ".join(name for name in _USUAL if name in names)
        return "Connection", f"{usual} and others: `pulsarbox context --help`."

    def explained(self, ctx: click.Context) -> "ClickRecord":
        """Return the name and the help of this option."""
        record = super().get_help_record(ctx)
        assert record is not None, f"{self.name} is hidden"
        return record


def connection_options(command: click.Command) -> "Sequence[ConnectionOption]":
    """Return the connection options of a command."""
    return [option for option in command.params if isinstance(option, ConnectionOption)]
