"""Steps between a broker and the files that declare it, shared by `apply` and `diff`."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from pulsarbox.cli.common.exits import InTheWay, Misused
from pulsarbox.cli.common.progress import CountLine
from pulsarbox.cli.declaration.admin_exchange import exchanged, problems_as

if TYPE_CHECKING:
    from pulsarbox.client.admin import Admin
    from pulsarbox.declaration.declaration import Declaration
    from pulsarbox.declaration.plan import Step
    from pulsarbox.server.initialization.declared_tokens import DeclaredTokens

_FILES: Final = click.option(
    "-f",
    "--file",
    "files",
    metavar="FILE",
    multiple=True,
    required=True,
    help="Declaration in YAML, a directory of *.yaml files, or - for stdin; repeatable.",
)
_PRUNE: Final = click.option(
    "--prune",
    is_flag=True,
    help="Delete undeclared topics, subscriptions and policies in declared namespaces.",
)
_KEY: Final = click.option(
    "--token-key", metavar="FILE", help="Secret key of declared tokens. [default: tokenSecretKey of the configuration]"
)


def declaration_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add -f, --prune and --token-key to a command."""
    return _FILES(_PRUNE(_KEY(command)))


class DeclaredSteps:
    """The steps from a broker to what files declare. Raises Misused for invalid files, InTheWay for conflicts."""

    def __init__(self, admin: "Admin", files: Sequence[str], token_key: str | None, *, prune: bool) -> None:
        self.removals: list[Step] = []
        """The steps of --prune, which are part of ``steps``."""
        self.tokens: DeclaredTokens
        with problems_as(Misused):
            from pulsarbox.server.initialization.declared_files import read_declarations

            declaration = read_declarations(files)
            self.tokens = _tokens(declaration, token_key)
            writing = self.tokens.steps()
        with problems_as(InTheWay):
            planned = self._planned(admin, declaration, prune)
        self.steps: list[Step] = [*planned, *writing, *self.removals]

    def _planned(self, admin: "Admin", declaration: "Declaration", prune: bool) -> "list[Step]":
        from pulsarbox.declaration.planner import planned
        from pulsarbox.declaration.present_state import present_of
        from pulsarbox.declaration.pruning import pruned_steps

        state = exchanged(admin, present_of(declaration, everything=prune), CountLine("reading:", "request"))
        plan = planned(declaration, state)
        if prune:
            self.removals = pruned_steps(declaration, state)
        return plan.steps


def _tokens(declaration: "Declaration", token_key: str | None) -> "DeclaredTokens":
    from pulsarbox.config import Settings
    from pulsarbox.server.initialization.declared_tokens import DeclaredTokens

    settings = Settings()
    if declaration.tokens:
        from pulsarbox.cli.process.setting_options import loaded_or_exit

        config_file: Path | None = click.get_current_context().params.get("config_file")
        settings = loaded_or_exit(config_file, {}).settings
    if token_key is not None:
        settings = replace(settings, tokenSecretKey=token_key)
    return DeclaredTokens(declaration, settings, time.time())
