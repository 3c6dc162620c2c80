"""``pulsarbox schema``: the schemas of topics."""

import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from pulsarbox.cli.common.confirmation import carry_out, confirm, dry_run_option, yes_option
from pulsarbox.cli.common.exits import Failed, Misused, NotThere
from pulsarbox.cli.common.lazy_group import Group
from pulsarbox.cli.common.output import Found, Output, output_options, show
from pulsarbox.cli.common.terminal_text import clean
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
    """The schema may not follow those of the topic."""


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
def schema() -> None:
    """Show, add, check and delete the schemas of topics.

    A topic keeps every version of its schema. What may follow what says the policy schema-compatibility-strategy of its
    namespace or its own (`pulsarbox topic policy TOPIC schema-compatibility-strategy BACKWARD`).

    \b
    Examples:
      pulsarbox schema show orders
      pulsarbox schema check orders order.avsc
      pulsarbox schema upload orders order.avsc
    """


@schema.command("show")
@click.argument("topic")
@click.option("--version", "number", metavar="N", type=click.IntRange(0), help="This version. [the newest]")
@output_options
@with_admin
def show_schema(topic: str, number: int | None, output: Output, admin: "Admin") -> None:
    """Show a version of the schema of TOPIC: its type, its properties, and its definition.

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
def list_versions(topic: str, output: Output, admin: "Admin") -> None:
    """List the versions of the schema of TOPIC. Fields: version, type, created, size, definition.

    \b
    Examples:
      pulsarbox schema list orders
      pulsarbox schema list orders -o ndjson
    """
    name = topic_named(topic)
    columns = ["version", "type", "created", "size"]
    show(output, lambda: Found(_rows(admin, name), columns, "version"))


def _definition(command: _F) -> _F:
    """Gives a command a file, and what it is; see ``_body``."""
    options = (
        click.argument("file", metavar="[FILE]", required=False),
        click.option("--type", "kind", type=click.Choice(TYPES, case_sensitive=False),
                     help="Type of the schema. [as the file says, else AVRO]"),
        click.option("--message", metavar="NAME",
                     help="The message that is meant, of a file of descriptors (PROTOBUF_NATIVE)."),
        click.option("--property", "properties", metavar="K=V", multiple=True,
                     help="A property of the schema; repeatable."),
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
    """Add a version to the schema of TOPIC, from FILE (- is stdin). The same schema again adds none.

    FILE has a definition in Avro's language (AVRO, JSON, PROTOBUF); a set of descriptors as `protoc --include_imports
    -o FILE` writes it, with --message (PROTOBUF_NATIVE); key and value as a JSON object (KEY_VALUE); or what
    pulsar-admin takes, {"type": ..., "schema": ..., "properties": ...}. Other types need no file.

    \b
    Exit codes:
      2    the schema is none, or an option cannot be used
      4    it may not follow the schemas that the topic has
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
        click.echo(f"would have added it to {clean(short(name))}")
        return
    version = admin.ask("POST", _path(name, "schema"), body)["version"]["version"]
    click.echo(f"{clean(short(name))} has this schema as version {version}")


@schema.command()
@click.argument("topic")
@_definition
@with_admin
def check(topic: str, admin: "Admin", **told: Any) -> None:
    """Say whether the schema in FILE may follow those of TOPIC, and why not. FILE is as for `upload`.

    \b
    Exit codes:
      0    it may
      1    it may not
      2    it is no schema, or an option cannot be used
    \b
    Examples:
      pulsarbox schema check orders order.avsc
    """
    name, body = topic_named(topic), _body(**told)
    strategy = _check(admin, name, body)
    known = admin.ask("POST", _path(name, "version"), body)["version"]
    what = f"it is version {known}" if known >= 0 else f"it may follow those of {clean(short(name))} ({strategy})"
    click.echo(what)


@schema.command()
@click.argument("topic")
@click.option("-f", "--force", is_flag=True, help="Forget the numbers of versions too: they begin with 0 again.")
@yes_option
@dry_run_option
@with_admin
def delete(topic: str, force: bool, yes: bool, dry_run: bool, admin: "Admin") -> None:
    """Delete all versions of the schema of TOPIC. Its messages stay, and are not decoded any more.

    On a terminal the name has to be typed in; elsewhere --yes is needed.

    \b
    Examples:
      pulsarbox schema delete orders
    """
    name = topic_named(topic)
    confirm(f"delete the schema of {short(name)}", [short(name)], yes=yes, dry_run=dry_run)
    do = partial(admin.ask, "DELETE", _path(name, "schema"), force=str(force).lower())
    carry_out([("deleted the schema of", short(name), do)], dry_run=dry_run)


# What is sent ---------------------------------------------------------------------------------------------------------


def _body(file: str | None, kind: str | None, message: str | None, properties: tuple[str, ...]) -> dict[str, Any]:
    """The body of a request. Raises Misused."""
    pairs = dict(_pair(each) for each in properties)
    data = _content(file) if file is not None else b""
    if kind in _WITHOUT_DEFINITION:
        if data.strip():
            raise Misused(f"a schema of type {kind} has no definition: leave the file out")
        return {"type": kind, "schema": "", "properties": pairs}
    if file is None:
        raise Misused(
            "name the file of the definition, - for stdin" if kind else "name a file, or a --type without one"
        )
    if message is not None or kind == "PROTOBUF_NATIVE":
        if message is None:
            raise Misused("--type PROTOBUF_NATIVE needs --message, the full name of the message that is meant")
        return {"type": "PROTOBUF_NATIVE", "schema": _descriptors(data, message), "properties": pairs}
    try:
        text = data.decode()
        told = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Misused(f"{file} is not JSON: {error}") from None
    if kind is None and isinstance(told, dict) and isinstance(told.get("schema"), str) and "type" in told:
        return {**told, "properties": {**(told.get("properties") or {}), **pairs}}
    return {"type": kind or "AVRO", "schema": text, "properties": pairs}


def _content(file: str) -> bytes:
    """Raises Misused."""
    try:
        return sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise Misused(f"{file}: {error.strerror}") from None


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise Misused(f"--property {text!r}: it looks like NAME=VALUE")
    return name, value


def _descriptors(data: bytes, message: str) -> str:
    """A set of descriptors as PROTOBUF_NATIVE has it. Raises Misused."""
    from base64 import b64encode

    from google.protobuf.descriptor_pb2 import FileDescriptorSet
    from google.protobuf.message import DecodeError

    try:
        files = FileDescriptorSet.FromString(data).file
    except DecodeError:
        raise Misused("the file is no set of descriptors: protoc --include_imports -o FILE writes one") from None
    # A message may stand within another: then the outer one is what its file begins with.
    names = {
        ".".join(filter(None, (each.package, made.name))): each.name for each in files for made in each.message_type
    }
    root = next((file for name, file in names.items() if f"{message}.".startswith(f"{name}.")), None)
    if root is None:
        raise Misused(f"there is no message {message!r} among {', '.join(sorted(names)) or 'none'}")
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
    """The strategy by which a schema may be the topic's next. Raises _Incompatible."""
    told = admin.ask("POST", _path(topic, "compatibility"), body)
    if not told["compatibility"]:
        raise _Incompatible(told.get("reason") or f"not by {told['schemaCompatibilityStrategy']}")
    return str(told["schemaCompatibilityStrategy"])


# What is shown --------------------------------------------------------------------------------------------------------


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
    """A definition as JSON where it is some, for whoever reads ours."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _shown(admin: "Admin", topic: TopicName, number: int | None) -> Found:
    from pulsarbox.client.admin import Refused

    try:
        told = admin.ask("GET", _path(topic, "schema") + ("" if number is None else f"/{number}"))
    except Refused as error:
        if error.status != 404:
            raise
        which = "no schema" if number is None else f"no version {number} of a schema: `pulsarbox schema list` has those"
        raise NotThere(f"{short(topic)} has {which}") from None
    row = _row(told)
    lines = [f"version  {row['version']}", f"type     {row['type']}", f"created  {row['created']}"]
    lines += [f"{clean(name)}={clean(value)}" for name, value in row["properties"].items()]
    if told["data"]:
        text = row["definition"]
        shown = text if isinstance(text, str) else json.dumps(text, indent=2, ensure_ascii=False)
        lines += ["", *map(clean, shown.splitlines())]
    return Found([row], name="version", lines=lines)
