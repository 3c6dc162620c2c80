"""Options that the commands of `dlq` share."""

from collections.abc import Callable
from typing import Any

import click

from pulsarbox.cli.process import completions


def subscription_option(meaning: str) -> Callable[[Any], Any]:
    """Add -s, the subscription whose backlog the command processes; ``meaning`` is its help text."""
    return click.option("-s", "--subscription", metavar="SUB", shell_complete=completions.subscriptions, help=meaning)
