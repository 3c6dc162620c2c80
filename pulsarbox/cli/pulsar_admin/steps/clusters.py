"""Commands for clusters, tenants, brokers, schemas and transactions that need more than one request."""

import base64
import json
from pathlib import Path
from typing import Any, Final

import click

from pulsarbox.cli.common.exits import Misused
from pulsarbox.cli.common.terminal_text import clean
from pulsarbox.cli.pulsar_admin.printing import compact, inline, loads, pretty
from pulsarbox.cli.pulsar_admin.session import Session, chosen
from pulsarbox.cli.pulsar_admin.table import Command
from pulsarbox.names import parse_topic


def listed(session: Session, command: Command, values: dict[str, Any]) -> list[str]:
    """List the clusters, with --current marking that of the broker."""
    clusters, runtime = command.calls
    found: list[str] = session.ask(clusters, values) or []
    if not values["current"]:
        return found
    current = (session.ask(runtime, values) or {}).get("clusterName")
    return [f"{name}(*)" if name == current else name for name in found]


def put(session: Session, command: Command, values: dict[str, Any]) -> None:
    """Create or update a cluster from the options, or from a file of JSON or ``key: value`` lines."""
    call, file = command.calls[0], values["cluster_config_file"]
    if file:
        call = call._replace(body=_config(file))
    session.ask(call, values)


def _config(file: str) -> dict[str, Any]:
    text = _read(file)
    try:
        found = json.loads(text)
    except ValueError:
        found = {}
        for number, line in enumerate(text.splitlines(), 1):
            if not line.strip() or line.lstrip().startswith("#") or line.strip() == "---":
                continue
            key, mark, value = line.partition(":")
            if not mark or line[0].isspace():
                raise Misused(f"{file}:{number}: expected JSON or a line of the form key: value") from None
            value = value.strip().strip("\"'")
            found[key.strip()] = {"true": True, "false": False}.get(value.lower(), value)
    if not isinstance(found, dict):
        raise Misused(f'{file}: invalid cluster: expected an object such as {{"serviceUrl": "http://..."}}')
    return found


def delete(session: Session, command: Command, values: dict[str, Any]) -> None:
    """Delete a cluster; with --all, first its tenants with their namespaces and topics."""
    cluster, tenants, namespaces, *topics, namespace_call, tenant_call = command.calls
    if values["all"]:
        for tenant in session.ask(tenants, values) or []:
            for namespace in session.ask(namespaces, {"tenant": tenant}) or []:
                _empty(session, topics, namespace)
                session.ask(namespace_call, {"namespace": namespace})
            session.ask(tenant_call, {"tenant": tenant})
    session.ask(cluster, values)


def _empty(session: Session, calls: list[Any], namespace: str) -> None:
    partitioned, other_partitioned, delete_partitioned, plain, other_plain, delete_plain = calls
    for lists, remove in (((partitioned, other_partitioned), delete_partitioned), ((plain, other_plain), delete_plain)):
        for call in lists:
            for name in session.ask(call, {"namespace": namespace}) or []:
                session.ask(remove, {"topic": parse_topic(name)})


def create_tenant(session: Session, command: Command, values: dict[str, Any]) -> None:
    """Create a tenant, allowed in all clusters by default."""
    put_call, clusters = command.calls
    allowed = values["allowed_clusters"] or session.ask(clusters, values)
    session.ask(put_call, {**values, "admin_roles": values["admin_roles"] or [], "allowed_clusters": allowed})


def update_tenant(session: Session, command: Command, values: dict[str, Any]) -> None:
    """Update the given fields of a tenant."""
    post, get = command.calls
    roles, clusters = values["admin_roles"], values["allowed_clusters"]
    if roles is None or clusters is None:
        found = session.ask(get, values) or {}
        roles = found.get("adminRoles", []) if roles is None else roles
        clusters = found.get("allowedClusters", []) if clusters is None else clusters
    session.ask(post, {**values, "admin_roles": roles, "allowed_clusters": clusters})


def broker_stats(session: Session, command: Command, values: dict[str, Any]) -> None:
    """Print statistics as JSON on one line, or on several with --indent; metrics one by one."""
    found = session.ask(command.calls[0], values)
    if isinstance(found, str):
        found = loads(found)
    several = command.name == "monitoring-metrics" and isinstance(found, list)
    if values["indent"]:
        for one in found if several else [found]:
            click.echo(json.dumps(one, indent=4) + ("\n" if several else ""))
    else:
        click.echo("".join(map(compact, found)) if several else compact(found))


def schema(session: Session, command: Command, values: dict[str, Any]) -> None:
    """Print the latest schema, one version, or all."""
    if values["version"] is not None and values["all_version"]:
        raise Misused("--version and --all-version cannot be combined")
    found = session.ask(chosen(command, values), values)
    name = values["topic"].local
    if values["all_version"]:
        for one in (found or {}).get("getSchemaResponses", []):
            click.echo(pretty(_whole(one, name)))
    elif not isinstance(found, dict) or values["version"] is not None:
        _print(_schema(found, name) if found else found)
    else:
        _print({"version": found.get("version"), "schemaInfo": _schema(found, name)})


def _print(value: Any) -> None:
    """Print JSON in the format that pulsar-admin uses only for schemas."""
    click.echo(json.dumps(value, indent=2, default=float))


def _schema(found: dict[str, Any], name: str) -> dict[str, Any]:
    """Return a schema with its definition parsed if it is JSON."""
    data = found.get("data", "")
    try:
        definition = json.loads(data) if data else data
    except ValueError:
        definition = data
    return {
        "name": name,
        "schema": definition,
        "type": found.get("type"),
        "timestamp": found.get("timestamp", 0),
        "properties": found.get("properties") or {},
    }


_AS_TEXT: Final = ("AVRO", "JSON", "PROTOBUF", "PROTOBUF_NATIVE")


def _whole(found: dict[str, Any], name: str) -> dict[str, Any]:
    """Return a schema as pulsar-admin prints it with --all-version: its bytes in base64 and its definition."""
    text, kind = str(found.get("data") or ""), found.get("type")
    data = text.encode()
    if kind == "KEY_VALUE":
        pair = loads(text)
        parts = [b"" if pair[each] == "" else compact(pair[each]).encode() for each in ("key", "value")]
        data = b"".join(len(each).to_bytes(4, "big") + each for each in parts)
        text = compact(pair)
    bytes_text = base64.b64encode(data).decode()
    return {
        "name": name,
        "schema": bytes_text,
        "type": kind,
        "timestamp": found.get("timestamp", 0),
        "properties": found.get("properties") or {},
        "schemaDefinition": text if kind in (*_AS_TEXT, "KEY_VALUE") else bytes_text,
    }


def with_schema_file(session: Session, command: Command, values: dict[str, Any]) -> Any:
    """Send a schema from a JSON file: ``{"type": ..., "schema": ..., "properties": {...}}``."""
    file = values["filename"]
    try:
        found = json.loads(_read(file))
    except ValueError as error:
        raise Misused(f"{file} is not valid JSON: {error}") from None
    if not isinstance(found, dict) or "type" not in found:
        raise Misused(f'{file}: expected a schema such as {{"type": "AVRO", "schema": "...", "properties": {{}}}}')
    made = {"type": found["type"], "schema": found.get("schema", ""), "properties": found.get("properties") or {}}
    return session.ask(command.calls[0], {**values, "filename": made})


def coordinators(session: Session, command: Command, values: dict[str, Any]) -> None:
    """Print each coordinator with its broker."""
    for one in session.ask(command.calls[0], values) or []:
        click.echo(f"{inline(one.get('id'))}    {clean(str(one.get('brokerServiceUrl')))}")


def _read(file: str) -> str:
    try:
        return Path(file).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Misused(f"cannot read {file}: {error}") from None
