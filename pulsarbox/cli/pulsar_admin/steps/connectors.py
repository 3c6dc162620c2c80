"""Commands that create and update sinks and sources."""

from typing import Any

from pulsarbox.cli.common.exits import Misused
from pulsarbox.cli.common.terminal_text import clean
from pulsarbox.cli.pulsar_admin.session import Session
from pulsarbox.cli.pulsar_admin.steps.component_config import check_file, configured, is_url
from pulsarbox.cli.pulsar_admin.steps.components import NAMESPACE, TENANT
from pulsarbox.cli.pulsar_admin.steps.functions import BUILT_IN, send
from pulsarbox.cli.pulsar_admin.table import Command


def create(session: Session, command: Command, values: dict[str, Any]) -> None:
    """Create a sink or source from its configuration and archive."""
    config = connector_config(command, values, _type(session, command, values))
    check(config)
    send(session, command, config, _part(command), config["archive"])


def update(session: Session, command: Command, values: dict[str, Any]) -> None:
    """Update the configuration of a sink or source, and its archive if given."""
    config = _placed(connector_config(command, values, _type(session, command, values)))
    send(session, command, config, _part(command), config.get("archive"), bool(values["update_auth_data"]))


def connector_config(command: Command, values: dict[str, Any], archive: str | None) -> dict[str, Any]:
    """Return the configuration of a sink or source. ``archive`` stands for its type. Raises Misused."""
    config = configured(command, values)
    if config.get("negativeAckRedeliveryDelayMs", 1) <= 0:
        del config["negativeAckRedeliveryDelayMs"]
    if archive is not None:
        config["archive"] = archive
    if command.group == "sinks":
        config.setdefault("sourceSubscriptionPosition", "Latest")
    if not config.get("name"):
        raise Misused("specify --name")
    return config


def check(config: dict[str, Any]) -> None:
    """Add the defaults of a new connector. Raises Misused without an archive, or if it does not exist."""
    archive = config.get("archive")
    if not archive:
        raise Misused("specify --archive, or the type of a built-in connector")
    if not is_url(archive) and not archive.startswith(BUILT_IN):
        check_file("--archive", archive)
    batch = config.get("batchSourceConfig")
    if batch is not None and not batch.get("discoveryTriggererClassName"):
        raise Misused("--batch-source-config: discoveryTriggererClassName is missing")
    _placed(config).setdefault("parallelism", 1)


def given_type(command: Command, values: dict[str, Any]) -> str | None:
    """Return the type of a built-in connector, from the option or the file; None without one. Raises Misused."""
    kind = command.group.removesuffix("s")
    found = values[f"{kind}_type"] or configured(command, values).get(f"{kind}Type")
    if found and values["archive"]:
        raise Misused(f"--archive and --{kind}-type cannot be combined")
    return found or None


def _type(session: Session, command: Command, values: dict[str, Any]) -> str | None:
    """Return the archive of a built-in connector. Raises Misused if the worker does not have it."""
    found = given_type(command, values)
    if found is None:
        return None
    names = [str(one.get("name")) for one in session.ask(command.calls[1], values) or []]
    if found not in names:
        kind = command.group.removesuffix("s")
        raise Misused(f"unknown {kind} type '{clean(found)}'; the worker has {', '.join(map(clean, names)) or 'none'}")
    return BUILT_IN + found


def _placed(config: dict[str, Any]) -> dict[str, Any]:
    config.setdefault("tenant", TENANT)
    config.setdefault("namespace", NAMESPACE)
    return config


def _part(command: Command) -> str:
    return f"{command.group.removesuffix('s')}Config"
