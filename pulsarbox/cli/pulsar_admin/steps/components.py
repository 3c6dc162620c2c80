"""Commands that functions, sinks and sources share."""

from typing import Any, Final

import click

from pulsarbox.cli.common.exits import Misused
from pulsarbox.cli.common.terminal_text import clean
from pulsarbox.cli.pulsar_admin.session import Session, chosen
from pulsarbox.cli.pulsar_admin.table import Command

TENANT: Final = "public"
NAMESPACE: Final = "default"
_WIDTH: Final = 80
"""Characters of a line of a description, as in pulsar-admin."""


def named(session: Session, command: Command, values: dict[str, Any]) -> Any:
    """Send the request about a component, or about one instance of it."""
    made = whole_name(values)
    number = values.get("instance_id")
    if number is not None and not (number.isascii() and number.isdigit()):
        raise Misused(f"--instance-id: '{clean(number)}' is not a number")
    return session.ask(chosen(command, made), made)


def listed(session: Session, command: Command, values: dict[str, Any]) -> Any:
    """List the components of a namespace, by default public/default."""
    return session.ask(command.calls[0], _placed(values))


def available(session: Session, command: Command, values: dict[str, Any]) -> None:
    """Print the built-in components of the group with their descriptions."""
    field = {"sinks": "sinkClass", "sources": "sourceClass"}.get(command.group, "name")
    for one in session.ask(command.calls[0], values) or []:
        if one.get(field):
            click.echo(clean(str(one.get("name"))))
            click.echo("\n".join(map(clean, wrapped(str(one.get("description"))).split("\n"))))
            click.echo("-" * 40)


def whole_name(values: dict[str, Any]) -> dict[str, Any]:
    """Return the values with tenant, namespace and name, from --fqfn or the options. Raises Misused."""
    whole = values.get("fqfn")
    if whole is None:
        if values["name"] is None:
            raise Misused("specify --name" + (" or --fqfn" if "fqfn" in values else ""))
        return _placed(values)
    if any(values[name] is not None for name in ("tenant", "namespace", "name")):
        raise Misused("specify either --fqfn, or --tenant, --namespace and --name")
    return values | split_name(whole)


def split_name(whole: str) -> dict[str, str]:
    """Split the value of --fqfn. Raises Misused."""
    words = whole.split("/")
    if len(words) != 3 or not all(words):
        raise Misused(f"--fqfn: expected tenant/namespace/name, not '{clean(whole)}'")
    return dict(zip(("tenant", "namespace", "name"), words, strict=True))


def _placed(values: dict[str, Any]) -> dict[str, Any]:
    return {**values, "tenant": values["tenant"] or TENANT, "namespace": values["namespace"] or NAMESPACE}


def wrapped(text: str) -> str:
    """Break lines at the last space within 80 characters, or at the first one behind a longer word."""
    lines = []
    while len(text := text.lstrip(" ")) > _WIDTH:
        at = text.rfind(" ", 0, _WIDTH + 1)
        if at < 0 and (at := text.find(" ", _WIDTH)) < 0:
            break
        lines.append(text[:at])
        text = text[at + 1 :]
    return "\n".join([*lines, text])
