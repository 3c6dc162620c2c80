"""Publishing over HTTP: stored messages, partitions, schemas, and errors."""

import asyncio
import json
from base64 import b64encode
from typing import Any

import pytest

from pulsarbox.broker.topic.topic import PersistentTopic
from pulsarbox.config import Settings
from pulsarbox.names import parse_topic
from pulsarbox.plugins.hashing.java_string import JavaString
from pulsarbox.protocol.metadata import key_values, parse_entry
from pulsarbox.protocol.PulsarApi_pb2 import MessageMetadata, Schema
from pulsarbox.storage.record import Entry, Position
from tests.unit.broker.core_driver import START
from tests.unit.server.http.harness import Got, HttpBox, running_box, until

PATH = "/topics/persistent/public/default/t"


async def made(box: HttpBox, partitions: int = 0, **properties: str) -> None:
    name = "/persistent/public/default/t"
    if partitions and properties:
        await box.ask("PUT", f"/admin/v2{name}/partitions", {"partitions": partitions, "properties": properties},
                      headers={"Content-Type": "application/vnd.partitioned-topic-metadata+json"})  # fmt: skip
    else:
        await box.put(f"{name}/partitions" if partitions else name, partitions or None)


async def sent(box: HttpBox, *messages: dict[str, Any] | str, path: str = PATH, **body: Any) -> Got:
    listed = [{"payload": each} if isinstance(each, str) else each for each in messages]
    return await box.ask("POST", path, {"messages": listed} | body)


def stored(box: HttpBox) -> list[tuple[MessageMetadata, bytes]]:
    topic = box.broker.topics.find(parse_topic("t"), box.shell.now())
    assert isinstance(topic, PersistentTopic)
    found: list[Entry] = []
    last = topic.ledger.last_confirmed
    if last.entry_id >= 0:
        first = Position(last.ledger_id, 0)
        topic.reader.read_run(first, last.entry_id, 1 << 20, lambda entries, error, now: found.extend(entries))
        box.shell.kick()
    return [(parse_entry(each.body).metadata, each.body[parse_entry(each.body).body_offset :]) for each in found]


def parts_of(got: Got) -> list[int]:
    return [int(each["messageId"].split(":")[2]) for each in got.value["messagePublishResults"]]


async def test_a_message_with_all_it_can_have(box: HttpBox) -> None:
    await made(box)
    message = {
        "payload": "grün", "key": "k", "properties": {"a": "b"}, "eventTime": "7", "sequenceId": 3,
        "deliverAfterMs": 1000, "replicationClusters": ["x"], "disableReplication": True,
    }  # fmt: skip
    got = await sent(box, message, producerName="me")
    assert got.status == 200
    (ack,) = got.value["messagePublishResults"]
    assert (ack["messageId"].split(":")[1:], ack["errorCode"], got.value["schemaVersion"]) == (["0", "-1"], 0, 0)
    ((metadata, body),) = stored(box)
    assert body == "grün".encode()
    assert (metadata.producer_name, metadata.partition_key, metadata.event_time) == ("me", "k", 7)
    assert (metadata.sequence_id, metadata.publish_time, metadata.deliver_at_time) == (3, START, START + 1000)
    assert (key_values(metadata.properties), list(metadata.replicate_to)) == ({"a": "b"}, ["__local__"])
    assert metadata.schema_version == bytes(8)
    schema = box.broker.schemas.get(parse_topic("t"))
    assert schema is not None
    assert schema.schema.type == Schema.String  # the schema that Pulsar stores if the body has none
    assert key_values(schema.schema.properties) == {"__charset": "UTF-8"}
    assert (await sent(box)).value == {"messagePublishResults": [], "schemaVersion": 0}


async def test_partitions_are_chosen_by_the_key_and_in_turn(box: HttpBox) -> None:
    await made(box, 3)
    keys = ["é", "k1", "k2", "é", ""]
    got = await sent(box, *({"payload": "", "key": key} for key in keys))
    assert parts_of(got) == [JavaString().hash32(key.encode()) % 3 for key in keys]
    turns = [parts_of(await sent(box, "a", "b")) for _ in range(2)]
    assert turns == [[2, 0], [1, 2]]  # the turns continue after the five keyed messages
    got = await sent(box, "a", "b", path=f"{PATH}/partitions/1")
    assert parts_of(got) == [1, 1]
    assert (await sent(box, "a", path=f"{PATH}/partitions/3")).status == 404
    got = await sent(box, "a", path="/topics/persistent/public/default/t-partition-2")
    assert parts_of(got) == [2]


@pytest.mark.parametrize("own", [True, False])
async def test_partitions_are_chosen_by_the_router_that_is_named(own: bool) -> None:
    how = {"routing": "property", "routingHashing": "murmur3", "routingOptions": "property=region"}
    async with running_box(Settings() if own else Settings(**how)) as box:
        await made(box, 16, **(how if own else {}))
        messages = [{"payload": "", "properties": {"region": f"r{i % 4}"}, "key": str(i)} for i in range(8)]
        found = parts_of(await sent(box, *messages))
        assert found[:4] == found[4:]
        assert len(set(found)) == 4


@pytest.mark.settings(Settings(routing="least-backlog"))
async def test_what_waits_decides_where_it_is_asked_for(box: HttpBox) -> None:
    await made(box, 2)
    await box.put("/persistent/public/default/t-partition-0/subscription/s")
    await sent(box, *["x"] * 5, path=f"{PATH}/partitions/0")
    assert set(parts_of(await sent(box, "a", "b"))) == {1}


async def test_schemas_that_the_body_brings_or_names(box: HttpBox) -> None:
    await made(box)
    definition = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "string"}]}
    data = b64encode(json.dumps(definition).encode()).decode()
    value = json.dumps({"type": "AVRO", "schema": data})
    assert (await sent(box, '{"a": "xy"}', valueSchema=value)).value["schemaVersion"] == 0
    got = await sent(box, '{"a": "z"}', '{"a": 1}', schemaVersion=0)
    good, bad = got.value["messagePublishResults"]
    assert (good["errorCode"], bad["errorCode"], "messageId" in bad) == (0, 2, False)
    assert [body for _, body in stored(box)] == [b"\4xy", b"\2z"]
    assert (await sent(box, "a", schemaVersion=7)).status == 404
    refused = await sent(box, "a")  # an AVRO schema cannot be followed by STRING
    assert refused.status == 409, refused.text


async def test_a_key_with_a_schema_of_its_own(box: HttpBox) -> None:
    await made(box)
    schemas = {"keySchema": json.dumps({"type": "INT32"}), "valueSchema": json.dumps({"type": "INT64"})}
    assert (await sent(box, {"payload": "2", "key": "1"}, **schemas)).status == 200
    ((metadata, body),) = stored(box)
    assert (metadata.partition_key, metadata.partition_key_b64_encoded) == (b64encode(b"\0\0\0\1").decode(), True)
    assert body == bytes([0, 0, 0, 0, 0, 0, 0, 2])


async def test_a_topic_that_keeps_nothing(box: HttpBox) -> None:
    await box.put("/non-persistent/public/default/t")
    got = await sent(box, "a", path="/topics/non-persistent/public/default/t")
    assert (got.status, got.value["messagePublishResults"][0]["errorCode"]) == (200, 0)


async def test_it_says_what_was_not_stored(box: HttpBox) -> None:
    await made(box)
    big = "x" * 2000
    await box.post("/persistent/public/default/t/maxMessageSize", 1000)
    got = await sent(box, "a", big, "b")
    codes = [each["errorCode"] for each in got.value["messagePublishResults"]]
    assert codes == [0, 2, 0]
    assert "Exceed maximum message size" in got.value["messagePublishResults"][1]["errorMsg"]
    await box.post("/persistent/public/default/t/terminate")
    (ack,) = (await sent(box, "a")).value["messagePublishResults"]
    assert "terminated" in ack["errorMsg"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (None, 400),
        ({"messages": ["a"]}, 400),
        ({"messages": [{"payload": "a"}], "schemaVersion": "x"}, 400),
        ({"messages": [{"payload": "a"}], "valueSchema": "{"}, 400),
        ({"messages": [{"payload": "a"}], "valueSchema": '{"type": "WHAT"}'}, 400),
        ({"messages": [{"payload": "a"}], "valueSchema": '{"type": "PROTOBUF_NATIVE", "schema": ""}'}, 422),
        ({"messages": [{"payload": "a"}], "producerName": 1}, 400),
    ],
)
async def test_bodies_that_cannot_be_used(box: HttpBox, body: Any, status: int) -> None:
    await made(box)
    got = await box.ask("POST", PATH, body)
    assert got.status == status, got.text
    assert stored(box) == []


@pytest.mark.parametrize(
    "message",
    [
        {},
        {"payload": 1},
        {"payload": "a", "key": 1},
        {"payload": "a", "sequenceId": -1},
        {"payload": "a", "eventTime": "x"},
    ],
)
async def test_messages_that_cannot_be_used(box: HttpBox, message: Any) -> None:
    await made(box)
    got = await sent(box, message, "b")
    first, second = got.value["messagePublishResults"]
    assert (first["errorCode"], second["errorCode"]) == (2, 0)


async def test_it_is_answered_once_it_is_durable(box: HttpBox) -> None:
    await made(box)
    await sent(box, "a")
    box.shell.held = True
    commits = box.broker.commits
    async with asyncio.TaskGroup() as group:
        asked = group.create_task(sent(box, "b"))
        await until(lambda: commits.open.receipts)
        assert not asked.done()
        box.shell.held = False
        box.shell.kick()
    assert asked.result().value["messagePublishResults"][0]["errorCode"] == 0


async def test_a_topic_that_is_not_there(box: HttpBox) -> None:
    assert (await sent(box, "a")).status == 404
    assert (await sent(box, "a", path="/topics/persistent/public/nowhere/t")).status == 404
