"""``pulsarbox schema``: topic schemas."""

import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from pulsarbox.cli.common.confirmation import carry_out, confirm, dry_run_option, yes_option
from pulsarbox.cli.common.exits import Failed, Misused, NotThere
from pulsarbox.cli.common.lazy_group import SuggestingGroup
from pulsarbox.cli.common.output import OutputOptions, TableOutput, output_options, show
from pulsarbox.cli.common.table_cells import readable
from pulsarbox.cli.common.terminal_text import clean
from pulsarbox.cli.common.value_types import BoundedInteger
from pulsarbox.cli.connect.admin_client import short, topic_named, with_admin
from pulsarbox.names import TopicName

if TYPE_CHECKING:
    from pulsarbox.client.admin import Admin

TYPES: Final = (
    *("AVRO", "JSON", "PROTOBUF", "PROTOBUF_NATIVE", "KEY_VALUE", "STRING", "BOOLEAN", "INT8", "INT16", "INT32"),
    *("INT64", "FLOAT", "DOUBLE", "DATE", "TIME", "TIMESTAMP", "INSTANT", "LOCAL_DATE", "LOCAL_TIME"),
    "LOCAL_DATE_TIME",
)
_WITHOUT_DEFINITION: Final = TYPES[5:]


_F = TypeVar("_F", bound=Callable[..., Any])


class _Incompatible(Failed):
    """The schema is incompatible with the existing versions."""


@click.group(cls=SuggestingGroup, context_settings={"help_option_names": ["-h", "--help"]})
def schema() -> None:
    """Show, upload, check and delete topic schemas.

    A topic keeps every version of its schema. The policy schema-compatibility-strategy of the topic or its namespace
    governs new versions (`pulsarbox topic policy TOPIC schema-compatibility-strategy BACKWARD`).

    \b
    Examples:
      pulsarbox schema show orders
      pulsarbox schema check orders order.avsc
      pulsarbox schema upload orders order.avsc
    """


@schema.command("show")
@click.argument("topic")
@click.option("--version", "number", metavar="N", type=BoundedInteger(0), help="Schema version. [default: latest]")
@output_options
@with_admin
def show_schema(topic: str, number: int | None, output: OutputOptions, admin: "Admin") -> None:
    """Show a schema version of TOPIC: type, properties and definition.

    \b
    Examples:
      pulsarbox schema show orders
      pulsarbox schema show orders --version 0 -o json
    """
    name = topic_named(topic)
    show(output, partial(_shown, admin, name, number))


@schema.command("list")
@click.argument("topic")
@output_options
@with_admin
def list_versions(topic: str, output: OutputOptions, admin: "Admin") -> None:
    """List the schema versions of TOPIC. Fields: version, type, created, size (bytes), properties, definition.

    \b
    Examples:
      pulsarbox schema list orders
      pulsarbox schema list orders -o ndjson
    """
    name = topic_named(topic)
    columns = ["version", "type", "created", "size"]
    fields = [*columns, "properties", "definition"]
    sized = readable(sizes=("size",))
    show(
        output,
        lambda: TableOutput(
            _rows(admin, name),
            columns,
            "version",
            shown=sized,
            wide=["properties"],
            fields=fields,
            empty=f"{short(name)} has no schema",
        ),
    )


def _definition(command: _F) -> _F:
    """Add FILE and its options to a command; see ``_body``."""
    options = (
        click.argument("file", metavar="[FILE]", required=False),
        click.option("--type", "kind", type=click.Choice(TYPES, case_sensitive=False),
                     help="Schema type. [default: as in FILE, else AVRO]"),
        click.option("--message", metavar="NAME",
                     help="Full message name in the descriptor set (PROTOBUF_NATIVE)."),
        click.option("--property", "properties", metavar="K=V", multiple=True,
                     help="Schema property; repeatable."),
    )  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


@schema.command()
@click.argument("topic")
@_definition
@dry_run_option
@with_admin
def upload(topic: str, dry_run: bool, admin: "Admin", **told: Any) -> None:
    """Upload a schema version for TOPIC from FILE (- for stdin). An identical schema adds no version.

    FILE is an Avro definition (AVRO, JSON, PROTOBUF); a descriptor set written by `protoc --include_imports -o FILE`,
    with --message (PROTOBUF_NATIVE); a JSON object of key and value (KEY_VALUE); or the format of pulsar-admin,
    {"type": ..., "schema": ..., "properties": ...}. Primitive types need no file.

    \b
    Exit codes:
      2    the schema or an option is invalid
      4    incompatible with the existing versions
    \b
    Examples:
      pulsarbox schema upload orders order.avsc
      pulsarbox schema upload orders order.json --type JSON
      pulsarbox schema upload sensors sensors.desc --type PROTOBUF_NATIVE --message demo.Sensor
      pulsarbox schema upload names --type STRING
    """
    name, body = topic_named(topic), _body(**told)
    if dry_run:
        _check(admin, name, body)
        click.echo(f"would have uploaded the schema to {clean(short(name))}")
        return
    version = admin.ask("POST", _path(name, "schema"), body)["version"]["version"]
    click.echo(f"schema version {version} of {clean(short(name))}")


@schema.command()
@click.argument("topic")
@_definition
@with_admin
def check(topic: str, admin: "Admin", **told: Any) -> None:
    """Check whether the schema in FILE is compatible with those of TOPIC. FILE as for `upload`.

    \b
    Exit codes:
      0    compatible
      1    incompatible
      2    the schema or an option is invalid
    \b
    Examples:
      pulsarbox schema check orders order.avsc
    """
    name, body = topic_named(topic), _body(**told)
    strategy = _check(admin, name, body)
    known = admin.ask("POST", _path(name, "version"), body)["version"]
    what = f"compatible: it is version {known}" if known >= 0 else f"compatible with {clean(short(name))} ({strategy})"
    click.echo(what)


@schema.command()
@click.argument("topic")
@click.option("-f", "--force", is_flag=True, help="Restart version numbers at 0.")
@yes_option
@dry_run_option
@with_admin
def delete(topic: str, force: bool, yes: bool, dry_run: bool, admin: "Admin") -> None:
    """Delete all schema versions of TOPIC. Stored messages stay, but can no longer be decoded.

    Prompts for the name on a terminal; otherwise requires --yes.

    \b
    Examples:
      pulsarbox schema delete orders
    """
    name = topic_named(topic)
    confirm(f"delete the schema of {short(name)}", [short(name)], yes=yes, dry_run=dry_run)
    do = partial(admin.ask, "DELETE", _path(name, "schema"), force=str(force).lower())
    carry_out([("deleted the schema of", short(name), do)], dry_run=dry_run)


# Requests -------------------------------------------------------------------------------------------------------------


def _body(file: str | None, kind: str | None, message: str | None, properties: tuple[str, ...]) -> dict[str, Any]:
    """Return the request body. Raises Misused."""
    pairs = dict(_pair(each) for each in properties)
    data = _content(file) if file is not None else b""
    if kind in _WITHOUT_DEFINITION:
        if data.strip():
            raise Misused(f"schemas of type {kind} have no definition: omit FILE")
        return {"type": kind, "schema": "", "properties": pairs}
    if file is None:
        raise Misused(
            "specify the definition file, or - for stdin" if kind else "specify FILE, or a --type that needs none"
        )
    if message is not None or kind == "PROTOBUF_NATIVE":
        if message is None:
            raise Misused("--type PROTOBUF_NATIVE requires --message, the full message name")
        return {"type": "PROTOBUF_NATIVE", "schema": _descriptors(data, message), "properties": pairs}
    try:
        text = data.decode()
        told = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Misused(f"{file} is not valid JSON: {error}") from None
    if kind is None and isinstance(told, dict) and isinstance(told.get("schema"), str) and "type" in told:
        return {**told, "properties": {**(told.get("properties") or {}), **pairs}}
    return {"type": kind or "AVRO", "schema": text, "properties": pairs}


def _content(file: str) -> bytes:
    """Read a file, or stdin for ``-``. Raises Misused."""
    try:
        return sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise Misused(f"{file}: {error.strerror}") from None


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise Misused(f"--property: expected NAME=VALUE, not {text!r}")
    return name, value


def _descriptors(data: bytes, message: str) -> str:
    """Return a descriptor set as a PROTOBUF_NATIVE schema definition. Raises Misused."""
    from base64 import b64encode

    from google.protobuf.descriptor_pb2 import FileDescriptorSet
    from google.protobuf.message import DecodeError

    try:
        files = FileDescriptorSet.FromString(data).file
    except DecodeError:
        raise Misused("FILE is not a descriptor set; create one with protoc --include_imports -o FILE") from None
    # A nested message is found by its outermost message.
    names = {
        ".".join(filter(None, (each.package, made.name))): each.name for each in files for made in each.message_type
    }
    root = next((file for name, file in names.items() if f"{message}.".startswith(f"{name}.")), None)
    if root is None:
        raise Misused(f"unknown message {message!r}; expected one of {', '.join(sorted(names)) or 'none'}")
    told = {
        "fileDescriptorSet": b64encode(data).decode(),
        "rootMessageTypeName": message,
        "rootFileDescriptorName": root,
    }
    return json.dumps(told)


def _path(topic: TopicName, what: str) -> str:
    from pulsarbox.client.admin import quoted

    return f"/schemas/{quoted(topic.tenant, topic.namespace_local, topic.local)}/{what}"


def _check(admin: "Admin", topic: TopicName, body: dict[str, Any]) -> str:
    """Return the strategy that accepts the schema as the next version. Raises _Incompatible."""
    told = admin.ask("POST", _path(topic, "compatibility"), body)
    if not told["compatibility"]:
        raise _Incompatible(told.get("reason") or f"not compatible under {told['schemaCompatibilityStrategy']}")
    return str(told["schemaCompatibilityStrategy"])


# Output ---------------------------------------------------------------------------------------------------------------


def _rows(admin: "Admin", topic: TopicName) -> list[dict[str, Any]]:
    return [_row(each) for each in admin.ask("GET", _path(topic, "schemas"))["getSchemaResponses"]]


def _row(told: dict[str, Any]) -> dict[str, Any]:
    from datetime import UTC, datetime

    created = datetime.fromtimestamp(told["timestamp"] / 1000, UTC).isoformat(timespec="milliseconds")
    return {
        "version": told["version"],
        "type": told["type"],
        "created": created.replace("+00:00", "Z"),
        "size": len(told["data"].encode()),
        "properties": told["properties"],
        "definition": _read(told["data"]),
    }


def _read(text: str) -> Any:
    """Return a definition parsed as JSON, or unchanged if it is not JSON."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _shown(admin: "Admin", topic: TopicName, number: int | None) -> TableOutput:
    from pulsarbox.client.admin import AdminRefused

    try:
        told = admin.ask("GET", _path(topic, "schema") + ("" if number is None else f"/{number}"))
    except AdminRefused as error:
        if error.status != 404:
            raise
        which = (
            "no schema" if number is None else f"no schema version {number}; `pulsarbox schema list` lists the versions"
        )
        raise NotThere(f"{short(topic)} has {which}") from None
    row = _row(told)
    lines = [f"version  {row['version']}", f"type     {row['type']}", f"created  {row['created']}"]
    lines += [f"{clean(name)}={clean(value)}" for name, value in row["properties"].items()]
    if told["data"]:
        text = row["definition"]
        shown = text if isinstance(text, str) else json.dumps(text, indent=2, ensure_ascii=False)
        lines += ["", *map(clean, shown.splitlines())]
    return TableOutput([row], name="version", lines=lines)
