"""Commands for packages of functions, sinks and sources."""

from pathlib import Path
from typing import Any

import click

from pulsarbox.cli.common.terminal_text import clean
from pulsarbox.cli.pulsar_admin.printing import compact
from pulsarbox.cli.pulsar_admin.session import Session, body_of
from pulsarbox.cli.pulsar_admin.steps.functions import BYTES, JSON
from pulsarbox.cli.pulsar_admin.table import Command
from pulsarbox.client.transport.multipart import Part


def update_metadata(session: Session, command: Command, values: dict[str, Any]) -> None:
    """Replace description, contact and properties of a package."""
    session.ask(command.calls[0], values)
    click.echo(f"The metadata of the package '{clean(str(values['package']))}' updated successfully")


def upload(session: Session, command: Command, values: dict[str, Any]) -> None:
    """Upload the file of a package with its metadata."""
    call = command.calls[0]
    metadata = Part("metadata", compact(body_of(call, values)), JSON)
    session.send_form(call, values, [Part("file", Path(values["path"]), BYTES), metadata])
    _say(values, f"uploaded from path '{clean(values['path'])}'")


def download(session: Session, command: Command, values: dict[str, Any]) -> None:
    """Download the file of a package."""
    session.download(command.calls[0], values, values["path"])
    _say(values, f"downloaded to path '{clean(values['path'])}'")


def delete(session: Session, command: Command, values: dict[str, Any]) -> None:
    """Delete a version of a package."""
    session.ask(command.calls[0], values)
    _say(values, "deleted")


def _say(values: dict[str, Any], what: str) -> None:
    click.echo(f"The package '{clean(str(values['package']))}' {what} successfully")
