"""Schemas over HTTP: format of definitions, and invalid ones."""

import asyncio
import json
from typing import Any

import pytest

from pulsarbox.config import Settings
from pulsarbox.names import parse_topic
from pulsarbox.protocol.PulsarApi_pb2 import Schema
from pulsarbox.protocol.schema.steps import completed
from tests.tools.campaigns import short
from tests.unit.protocol.schema.schemas import field, record
from tests.unit.protocol.schema.worst import text, union_of_records
from tests.unit.server.http.harness import Got, HttpBox, until

S = "/schemas/public/default/s"
RECORD = '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "string"}]}'
COMPACT = '{"type":"record","name":"R","fields":[{"name":"a","type":"string"}]}'
WIDER = '{"type":"record","name":"R","fields":[{"name":"a","type":"string"},{"name":"b","type":"int","default":0}]}'
OTHER = '{"type":"record","name":"R","fields":[{"name":"a","type":"long"}]}'


async def test_the_life_of_a_schema(box: HttpBox) -> None:
    assert (await box.get(f"{S}/schemas")).value == {"getSchemaResponses": []}
    first = {"type": "AVRO", "schema": RECORD, "properties": {"k": "v"}}
    second = {"type": "AVRO", "schema": WIDER}
    for body, version in ((first, 0), (second, 1), (first, 0), ({"type": "AVRO", "schema": COMPACT}, 0)):
        got = await box.post(f"{S}/schema", body)
        assert (got.status, got.value) == (200, {"version": {"version": version}})
    shown = [
        {"version": 0, "type": "AVRO", "timestamp": 1_700_000_000_000, "data": RECORD, "properties": {"k": "v"}},
        {"version": 1, "type": "AVRO", "timestamp": 1_700_000_000_000, "data": WIDER, "properties": {}},
    ]
    assert (await box.get(f"{S}/schema")).value == shown[1]
    assert (await box.get(f"{S}/schema/0")).value == shown[0]
    assert (await box.get(f"{S}-partition-3/schema/1")).value == shown[1]
    assert (await box.get(f"{S}/schemas")).value == {"getSchemaResponses": shown}
    assert (await box.delete(f"{S}/schema")).value == {"version": 2}
    assert (await box.get(f"{S}/schemas")).value == {"getSchemaResponses": []}
    assert (await box.delete(f"{S}/schema?force=true")).value == {"version": -1}


@pytest.mark.parametrize("path", ["s/schema", "s/schema/0", "s/schema/-1", f"s/schema/{2**70}"])
async def test_missing(box: HttpBox, path: str) -> None:
    for namespace in ("default", "nope"):
        got = await box.get(f"/schemas/public/{namespace}/{path}")
        assert (got.status, got.reason) == (404, "Schema not found")


@pytest.mark.parametrize("path", short(["schema", "compatibility", "version"], 1))
@pytest.mark.settings(Settings(schemaCompatibilityStrategy="BACKWARD"))
async def test_schemas_that_are_expensive_to_compare(box: HttpBox, path: str) -> None:
    """Definitions are processed in slices, with other requests served in between."""
    unlike = [record(f"U{i}", field("b"), field("c")) for i in range(180)]
    old, new = (union_of_records(180, "x", names=names) for names in "RS")
    new["fields"][0]["type"] = unlike + new["fields"][0]["type"]
    name = parse_topic("s")
    schema = Schema(name="s", type=Schema.Avro, schema_data=text(old))
    completed(box.broker.schemas.putting(name, schema, 1))

    shell, slices = box.shell, 0
    answers: list[Got] = []

    async def ask() -> None:
        answers.append(await box.post(f"{S}/{path}", {"type": "AVRO", "schema": text(new).decode()}))

    asking = asyncio.gather(ask())
    await until(lambda: shell.broker.next_timer().monotonic is not None)
    assert (await box.get("/tenants")).status == 200 and not answers
    while not answers:
        due = shell.broker.next_timer().monotonic
        if due is not None and shell.core.time < due < shell.core.time + 1:
            shell.core.time, slices = due, slices + 1
            shell.kick()
        await asyncio.sleep(0)
    await asking
    (got,) = answers
    told = {"schema": {"version": {"version": 1}}, "version": {"version": -1}}
    assert got.value == told.get(path, {"compatibility": True, "schemaCompatibilityStrategy": "BACKWARD"})
    assert got.status in (200, 202) and slices > (2 if path == "version" else 100)


def types(text: str) -> dict[str, str]:
    """Key and value are sent as JSON if they have a definition."""
    return {f"{part}.schema.type": "JSON" if told else "STRING" for part, told in json.loads(text).items()}


@pytest.mark.parametrize(
    ("text", "data"),
    [
        (f'{{"key":{COMPACT},"value":{COMPACT}}}', b"\0\0\0D" + COMPACT.encode() + b"\0\0\0D" + COMPACT.encode()),
        (f'{{"key":"","value":{COMPACT}}}', b"\0\0\0\0\0\0\0D" + COMPACT.encode()),
        ('{"key":"","value":""}', bytes(8)),
    ],
)
async def test_a_key_value_definition_is_two(box: HttpBox, text: str, data: bytes) -> None:
    body = {"type": "KEY_VALUE", "schema": json.dumps(json.loads(text)), "properties": types(text)}
    assert (await box.post(f"{S}/schema", body)).status == 200
    stored = box.broker.schemas.get(parse_topic("s"))
    assert stored is not None and stored.schema.schema_data == data
    assert (await box.get(f"{S}/schema")).value["data"] == text


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"\xff\xff\xff\xff\0\0\0\2{}", '{"key":"","value":{}}'),
        (b"\0\0\0\1x\0\0\0\0", '{"key":"x","value":""}'),
    ],
)
async def test_key_value_definitions_of_clients(box: HttpBox, data: bytes, text: str) -> None:
    schema = Schema(name="s", schema_data=data, type=Schema.Type.KeyValue)
    completed(box.broker.schemas.putting(parse_topic("s"), schema, 1))
    assert (await box.get(f"{S}/schema")).value["data"] == text


@pytest.mark.parametrize(
    ("given", "shown"), [("STRING", "STRING"), ("BYTES", "NONE"), ("INT32", "INT32"), ("LOCAL_DATE_TIME",) * 2]
)
async def test_types_without_a_definition(box: HttpBox, given: str, shown: str) -> None:
    body = {"type": given, "schema": "", "properties": {"a": "b"}}
    assert (await box.post(f"{S}/schema", body)).status == 200
    got = (await box.get(f"{S}/schema")).value
    assert (got["type"], got["data"], got["properties"]) == (shown, "", {"a": "b"})


@pytest.mark.parametrize(
    ("body", "status", "reason"),
    [
        (None, 400, "The body must be a schema"),
        (b"{bad", 400, "The body is not JSON"),
        ({}, 400, "type and schema must be strings, not null and null"),
        ({"type": "STRING", "schema": "", "properties": [1]}, 400, "Properties of a schema must be a JSON object"),
        ({"type": "NOPE", "schema": ""}, 422, "Unknown schema type 'NOPE'"),
        ({"type": "AUTO_CONSUME", "schema": ""}, 422, "Schema AUTO_CONSUME is a client-side schema type"),
        ({"type": "AVRO", "schema": "not avro"}, 422, "Invalid schema definition data for AVRO schema"),
        ({"type": "JSON", "schema": '{"type":"object"}'}, 422, "Invalid schema definition data for JSON schema"),
        ({"type": "INT32", "schema": "junk"}, 422, "Invalid schema definition data for INT32 schema"),
        ({"type": "KEY_VALUE", "schema": "{}"}, 422, "Invalid schema definition data for KEY_VALUE schema"),
        (
            {"type": "KEY_VALUE", "schema": '{"key":"a","value":""}', "properties": {"key.schema.type": "INT32"}},
            422,
            "Invalid schema definition data for INT32 schema: it must be empty",
        ),
    ],
)
async def test_what_is_no_schema(box: HttpBox, body: Any, status: int, reason: str) -> None:
    got = await box.post(f"{S}/schema", body)
    assert got.status == status
    assert got.reason.startswith(reason)
    assert (await box.get(f"{S}/schemas")).value == {"getSchemaResponses": []}


async def test_places_that_have_none(box: HttpBox) -> None:
    got = await box.post("/schemas/public/nope/s/schema", {"type": "STRING", "schema": ""})
    assert (got.status, got.reason) == (404, "Namespace does not exist")
    got = await box.post("/schemas/public/nope/s/version", {"type": "STRING", "schema": ""})
    assert (got.status, got.value) == (200, {"version": -1})
    assert (await box.get(f"{S}/schema/x")).status == 400
    assert (await box.get("/schemas/public/default/a%2Fb/schema")).status == 412


async def test_what_may_follow(box: HttpBox) -> None:
    async def ask(what: str, text: str) -> tuple[int, Any]:
        got = await box.post(f"{S}/{what}", {"type": "AVRO", "schema": text})
        return got.status, got.value

    full = {"compatibility": True, "schemaCompatibilityStrategy": "FULL"}
    assert await ask("compatibility", RECORD) == (202, full), "the first may be anything"
    assert await ask("schema", RECORD) == (200, {"version": {"version": 0}})
    assert await ask("compatibility", WIDER) == (202, full)
    status, told = await ask("compatibility", OTHER)
    assert (status, told["compatibility"], told["schemaCompatibilityStrategy"]) == (202, False, "FULL")
    assert "reader type: long not compatible with writer type: string" in told["reason"]
    status, told = await ask("schema", OTHER)
    assert status == 409 and "strategy FULL" in told["reason"]
    assert (await ask("compatibility", "?"))[0] == 422
    assert await ask("version", COMPACT) == (200, {"version": 0})
    assert await ask("version", OTHER) == (200, {"version": -1})
    assert (await box.put("/persistent/public/default/s", None)).status == 204
    got = await box.put("/persistent/public/default/s/schemaCompatibilityStrategy", "ALWAYS_COMPATIBLE")
    assert got.status == 204
    always = {"compatibility": True, "schemaCompatibilityStrategy": "ALWAYS_COMPATIBLE"}
    assert await ask("compatibility", OTHER) == (202, always)
    assert await ask("schema", OTHER) == (200, {"version": {"version": 1}})
    places = [{"ledgerId": -1, "entryId": -1, "version": version} for version in (0, 1)]
    assert (await box.get(f"{S}/metadata")).value == {"info": places[1], "index": places}
    nothing = await box.get(f"{S}2/metadata")
    assert (nothing.status, nothing.text, "Content-Type" in nothing.headers) == (200, "", False)
    assert (await box.delete("/schemas/none/n/s/schema")).status == 404
