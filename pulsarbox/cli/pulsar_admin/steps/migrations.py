"""Migration of the metadata store of a cluster."""

from typing import Any

import click

from pulsarbox.cli.common.terminal_text import clean
from pulsarbox.cli.pulsar_admin.session import Session
from pulsarbox.cli.pulsar_admin.table import Command


def start(session: Session, command: Command, values: dict[str, Any]) -> None:
    """Start the migration to a store."""
    click.echo(f"Starting metadata store migration\nTarget: {clean(values['target'])}\n")
    session.ask(command.calls[0], values)
    click.echo("\n✓ Migration started\n\nMonitor progress: pulsarbox admin migration status")
