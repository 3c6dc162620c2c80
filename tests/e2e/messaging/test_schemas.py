"""Schemas of official clients, `pulsarbox schema`, and decoding by the commands."""

import json
from pathlib import Path
from typing import Any

import pulsar
import pytest
from click.testing import CliRunner, Result
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from pulsar.schema import AvroSchema, Integer, JsonSchema, Long, Record, String, StringSchema

from pulsarbox.cli.main import main
from tests.e2e.clients import EARLIEST, admin_path, receive
from tests.e2e.commands import envelopes, run
from tests.e2e.conftest import Running
from tests.unit.protocol.schema.schemas import record


class Order(Record):  # type: ignore[misc]  # the client has no types
    id = Long()
    item = String()


class Wider(Record):  # type: ignore[misc]
    id = Long()
    item = String()
    amount = Integer(default=1, required_default=True)


class Other(Record):  # type: ignore[misc]
    id = String()


for made in (Wider, Other):
    made.__name__ = "Order"  # other versions of one record


@pytest.mark.parametrize("kind", [AvroSchema, JsonSchema])
def test_versions_of_a_record(box: Running, client: Any, topic: str, kind: Any) -> None:
    """Old and new producers are connected at once. Readers resolve the schema with which each message was written."""
    consumer = client.subscribe(topic, "s", schema=kind(Wider), initial_position=EARLIEST)
    client.create_producer(topic, schema=kind(Order)).send(Order(id=1, item="pen"))
    client.create_producer(topic, schema=kind(Wider)).send(Wider(id=2, item="ink", amount=3))
    old, new = receive(consumer), receive(consumer)
    assert (old.value().item, new.value().item, new.value().amount) == ("pen", "ink", 3)
    assert old.schema_version() != new.schema_version()
    for other in (kind(Other), StringSchema()):
        with pytest.raises(pulsar.IncompatibleSchema):
            client.create_producer(topic, schema=other)
        with pytest.raises(pulsar.IncompatibleSchema):
            client.subscribe(topic, "t", schema=other)
    told = [
        (each["version"], each["type"])
        for each in envelopes(run("schema", "list", topic, "-o", "ndjson", "--admin-url", box.web_url).stdout)
    ]
    assert told == [
        (0, kind(Order).schema_info().schema_type().name),
        (1, kind(Order).schema_info().schema_type().name),
    ]


def test_messages_are_decoded(box: Running, client: Any, topic: str) -> None:
    client.create_producer(topic, schema=AvroSchema(Order)).send(Order(id=7, item="pën"), partition_key="k")
    client.create_producer(topic).send(b"\0plain")
    at = ("--url", box.url)
    text = '{"id":7,"item":"pën"}'
    assert run("consume", topic, "--until", "end", "--decode", *at).stdout == f"{text}\n\0plain\n".encode()
    assert (
        run("consume", topic, "--until", "end", "--decode", "-f", "%k=%v{json .item}\n", "-n", "1", *at).stdout
        == "k=pën\n".encode()
    )
    assert text.encode() in run("peek", topic, *at).stdout, "a table decodes by itself"
    assert text.encode() not in run("peek", topic, "--no-decode", *at).stdout
    first, second = envelopes(run("peek", topic, "-o", "ndjson", "--decode", *at).stdout)
    assert first["value"] == {"id": 7, "item": "pën"} and "value" not in second
    (only,) = envelopes(run("peek", topic, "-o", "ndjson", "--decode", "--filter", "json.id == 7", *at).stdout)
    assert (only["id"], only.get("payload"), only.get("payload_b64")) == (
        first["id"],
        first.get("payload"),
        first.get("payload_b64"),
    )
    run("schema", "delete", topic, "--yes", "--admin-url", box.web_url)
    gone = run("peek", topic, *at)
    assert text.encode() not in gone.stdout and b"cannot decode" in gone.stderr


def test_schemas_on_the_command_line(box: Running, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    at = ("--admin-url", box.web_url)
    box.admin("PUT", admin_path(topic))
    number, more = {"name": "id", "type": "long"}, {"name": "n", "type": "int", "default": 0}
    wider = record("Order", number, more)
    files = {
        "order.avsc": record("Order", number),
        "wider.avsc": wider,
        "other.avsc": record("Order", {"name": "id", "type": "string"}),
        "payload.json": {"type": "AVRO", "schema": json.dumps({**wider, "doc": "?", "x": 1}), "properties": {"a": "b"}},
    }
    for name, told in files.items():
        (tmp_path / name).write_text(json.dumps(told))

    def schema(*words: str, code: int = 0) -> Result:
        done = CliRunner().invoke(main, ["schema", *words, *at])
        assert done.exit_code == code, done.output
        return done

    assert "has no schema" in schema("show", topic, code=3).stderr
    assert "compatible with" in schema("check", topic, "order.avsc").stdout
    assert "would have uploaded the schema" in schema("upload", topic, "order.avsc", "--dry-run").stdout
    assert "version 0" in schema("upload", topic, "order.avsc", "--property", "by=me").stdout
    assert "compatible: it is version 0" in schema("check", topic, "order.avsc").stdout
    assert "version 1" in schema("upload", topic, "wider.avsc").stdout
    assert "reader type: string not compatible" in schema("check", topic, "other.avsc", code=1).stderr
    assert "reader type: string not compatible" in schema("upload", topic, "other.avsc", code=4).stderr
    assert "compatible with" in schema("check", topic, "payload.json").stdout
    shown = schema("show", topic, "--version", "0").stdout
    assert all(part in shown for part in ("version  0", "type     AVRO", "by=me", '"name": "Order"'))
    assert json.loads(schema("show", topic, "-o", "json").stdout)["definition"] == wider
    assert "has no schema version 9" in schema("show", topic, "--version", "9", code=3).stderr
    (tmp_path / "broken").write_text("{")
    assert "is not valid JSON" in schema("upload", topic, "broken", code=2).stderr
    assert "have no definition" in schema("upload", topic, "broken", "--type", "STRING", code=2).stderr
    assert "specify FILE" in schema("upload", topic, code=2).stderr
    assert "expected NAME=VALUE" in schema("upload", topic, "order.avsc", "--property", "x", code=2).stderr
    (tmp_path / "no.avsc").write_text('{"type":"record"}')
    assert "not an Avro definition" in schema("upload", topic, "no.avsc", code=2).stderr
    assert "deleted the schema" in schema("delete", topic, "--yes").stdout
    assert schema("list", topic, "-o", "ndjson").stdout == ""


def test_messages_of_protobuf(box: Running, client: Any, topic: str, tmp_path: Path) -> None:
    file = FileDescriptorProto(name="demo.proto", package="demo")
    file.message_type.add(name="Sensor").field.add(name="value", number=1, type=5, label=1)
    (tmp_path / "demo.desc").write_bytes(FileDescriptorSet(file=[file]).SerializeToString())
    words = ("schema", "upload", topic, "demo.desc", "--message")
    at = ("--admin-url", box.web_url)
    assert b"version 0" in run(*words, "demo.Sensor", *at, folder=tmp_path).stdout
    assert (
        b"unknown message 'demo.Other'; expected one of demo.Sensor"
        in run(*words, "demo.Other", *at, folder=tmp_path, code=2).stderr
    )
    told = json.loads(box.admin("GET", f"schemas/{topic.removeprefix('persistent://')}/schema"))
    assert told["type"] == "PROTOBUF_NATIVE"
    run(
        "produce",
        topic,
        "-i",
        "ndjson",
        "--preserve",
        "--url",
        box.url,
        stdin=json.dumps({"payload": "\b\5", "schema": "AAAAAAAAAAA="}).encode() + b"\n",
    )
    assert run("consume", topic, "--until", "end", "--decode", "--url", box.url).stdout == b'{"value":5}\n'
