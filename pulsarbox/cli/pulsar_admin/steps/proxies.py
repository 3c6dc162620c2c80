"""Statistics of a Pulsar proxy."""

from typing import Any

import click

from pulsarbox.cli.pulsar_admin.printing import gson
from pulsarbox.cli.pulsar_admin.session import Session
from pulsarbox.cli.pulsar_admin.table import Command


def stats(session: Session, command: Command, values: dict[str, Any]) -> None:
    """Print statistics as JSON on one line, or with --indent on several."""
    click.echo(gson(session.ask(command.calls[0], values), "" if values["indent"] else None))
