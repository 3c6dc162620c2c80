"""Commands for functions, sources and sinks."""

import json
import textwrap
import time
from typing import Any, Final

import click

from pulsarbox.cli.common.exits import Misused, NotThere
from pulsarbox.cli.common.terminal_text import clean, notify
from pulsarbox.cli.pulsar_admin.session import Session, chosen
from pulsarbox.cli.pulsar_admin.table import Command

_WATCH_SECONDS: Final = 1.0
_LINE: Final = 80


def of_component(session: Session, command: Command, values: dict[str, Any]) -> Any:
    """Send the request about a function, source or sink and return the response."""
    return session.ask(chosen(command, values), _named(command, values))


def config(session: Session, command: Command, values: dict[str, Any]) -> None:
    """Print the configuration of a function, source or sink."""
    click.echo(_gson(of_component(session, command, values)))


def of_namespace(session: Session, command: Command, values: dict[str, Any]) -> Any:
    """Return the names in a namespace."""
    return session.ask(command.calls[0], _in_namespace(values))


def names(session: Session, command: Command, values: dict[str, Any]) -> None:
    """Print the names in a namespace as JSON."""
    click.echo(_gson(of_namespace(session, command, values)))


def state(session: Session, command: Command, values: dict[str, Any]) -> None:
    """Print the value of a key; with --watch, again every second."""
    while True:
        try:
            click.echo(_gson(of_component(session, command, values)))
        except NotThere as error:
            if not values["watch"]:
                raise
            notify(error.message)
        if not values["watch"]:
            return
        time.sleep(_WATCH_SECONDS)


def built_in(session: Session, command: Command, values: dict[str, Any]) -> None:
    """Print the built-in functions or connectors, with their descriptions."""
    key = {"sources": "sourceClass", "sinks": "sinkClass"}.get(command.group, "name")
    for one in session.ask(command.calls[0], values) or []:
        if one.get(key):
            click.echo(clean(str(one["name"])))
            for line in textwrap.wrap(str(one.get("description") or ""), _LINE) or [""]:
                click.echo(clean(line))
            click.echo("-" * 40)


def _in_namespace(values: dict[str, Any]) -> dict[str, Any]:
    names = {"tenant": values["tenant"] or "public", "namespace_name": values["namespace_name"] or "default"}
    return values | names


def _named(command: Command, values: dict[str, Any]) -> dict[str, Any]:
    """Return the values with the name of the component, from --fqfn or the other options. Raises Misused."""
    whole, own = values.get("fqfn"), values["name"]
    if whole is None:
        if own is None:
            raise Misused("specify --name" + (" or --fqfn" if command.group == "functions" else ""))
        return _in_namespace(values)
    if any(values[name] is not None for name in ("tenant", "namespace_name", "name")):
        raise Misused("specify either --fqfn, or --tenant, --namespace and --name")
    parts = whole.split("/")
    if len(parts) != 3 or not all(parts):
        raise Misused(f"--fqfn: expected tenant/namespace/name, not {clean(whole)}")
    return values | dict(zip(("tenant", "namespace_name", "name"), parts, strict=True))


def _gson(value: Any) -> str:
    """Format JSON as Gson does, which prints these answers in pulsar-admin: without null values."""
    return clean_lines(json.dumps(_present(value), indent=2, ensure_ascii=False))


def _present(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _present(one) for key, one in value.items() if one is not None}
    return [_present(one) for one in value] if isinstance(value, list) else value


def clean_lines(text: str) -> str:
    """Escape unprintable characters, except the ends of lines."""
    return "\n".join(map(clean, text.split("\n")))
