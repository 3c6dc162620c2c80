"""Commands for packages, which are named ``type://tenant/namespace/name@version``."""

import re
import secrets
from pathlib import Path
from typing import Any, Final

import click

from pulsarbox.cli.common.exits import Failed, Misused
from pulsarbox.cli.common.terminal_text import clean
from pulsarbox.cli.pulsar_admin.printing import compact
from pulsarbox.cli.pulsar_admin.session import Session, body_of
from pulsarbox.cli.pulsar_admin.table import Command

_NAME: Final = re.compile(
    r"(?P<type>\w+)://(?P<tenant>[^/@]+)/(?P<namespace_name>[^/@]+)/(?P<name>[^/@]+)(@(?P<version>[^@]*))?"
)


def of_package(session: Session, command: Command, values: dict[str, Any]) -> Any:
    """Send the request about a package and return the response."""
    return session.ask(command.calls[0], _named(values))


def update_metadata(session: Session, command: Command, values: dict[str, Any]) -> None:
    """Replace the metadata of a package."""
    of_package(session, command, values)
    click.echo(f"The metadata of the package '{clean(values['package_name'])}' updated successfully")


def upload(session: Session, command: Command, values: dict[str, Any]) -> None:
    """Upload a file."""
    call, named = command.calls[0], _named(values)
    boundary = secrets.token_hex(16)
    body = _form(boundary, compact(body_of(call, values)).encode(), _content(values["path"]))
    session.send(call, named, body, f"multipart/form-data; boundary={boundary}")
    name, path = clean(values["package_name"]), clean(values["path"])
    click.echo(f"The package '{name}' uploaded from path '{path}' successfully")


def download(session: Session, command: Command, values: dict[str, Any]) -> None:
    """Download a package to a file."""
    reply = session.reply(command.calls[0], _named(values))
    try:
        Path(values["path"]).write_bytes(reply.body)
    except OSError as error:
        raise Failed(f"cannot write {clean(values['path'])}: {error.strerror or error}") from None
    name, path = clean(values["package_name"]), clean(values["path"])
    click.echo(f"The package '{name}' downloaded to path '{path}' successfully")


def delete(session: Session, command: Command, values: dict[str, Any]) -> None:
    """Delete a version of a package."""
    of_package(session, command, values)
    click.echo(f"The package '{clean(values['package_name'])}' deleted successfully")


def _named(values: dict[str, Any]) -> dict[str, Any]:
    """Return the values with the parts of the name; the default version is latest. Raises Misused."""
    found = _NAME.fullmatch(values["package_name"])
    if found is None:
        raise Misused(
            f"invalid package name {clean(values['package_name'])}: expected type://tenant/namespace/name@version"
        )
    parts = found.groupdict()
    return values | parts | {"version": parts["version"] or "latest"}


def _content(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise Misused(f"cannot read {clean(path)}: {error.strerror or error}") from None


def _form(boundary: str, metadata: bytes, content: bytes) -> bytes:
    """Return a form with the metadata as JSON and the file."""
    heading = f'--{boundary}\r\nContent-Disposition: form-data; name="{{}}"{{}}\r\nContent-Type: {{}}\r\n\r\n'
    return b"".join(
        (
            heading.format("metadata", "", "application/json").encode(),
            metadata,
            b"\r\n",
            heading.format("file", '; filename="package"', "application/octet-stream").encode(),
            content,
            f"\r\n--{boundary}--\r\n".encode(),
        )
    )
