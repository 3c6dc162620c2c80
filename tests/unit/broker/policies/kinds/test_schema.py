"""Which schemas clients may register on a topic."""

import json
from typing import Any

import pytest

from pulsarbox.names import parse_topic
from pulsarbox.protocol.PulsarApi_pb2 import Schema
from pulsarbox.protocol.schema.steps import completed
from tests.unit.broker.playbook import TOPIC, Box
from tests.unit.protocol.schema.schemas import avro, field, record

NAMESPACE = "public/default"
KNOWN = Schema(name="k", type=Schema.String, schema_data=b"")
NEW = Schema(name="n", type=Schema.Json, schema_data=b'"string"')
DISABLED = (18, "Schema not found and schema auto updating is disabled.")
ENFORCED = (
    18,
    "Producers cannot connect or send message without a schema to topics with a schema"
    "when SchemaValidationEnforced is enabled",
)


def refusal(reply: Any) -> tuple[int, str] | None:
    return (reply.error, reply.message) if hasattr(reply, "error") else None


@pytest.mark.parametrize("level", ["broker", "namespace"])
def test_clients_that_may_bring_no_schemas(level: str) -> None:
    box = Box(isAllowAutoUpdateSchemaEnabled=level != "broker")
    completed(box.broker.schemas.putting(parse_topic(TOPIC), KNOWN, 0))
    if level == "namespace":
        box.broker.tenants.set_policy(NAMESPACE, "is_allow_auto_update_schema", False, box.now)
    client = box.client()
    assert refusal(client.producer(1, schema=KNOWN)) is None
    assert refusal(client.producer(2, schema=NEW)) == DISABLED
    assert refusal(client.subscribe(topic=TOPIC + "-2", schema=NEW)) == DISABLED
    created = client.request("getOrCreateSchema", topic=TOPIC, schema=NEW)
    assert (created.error_code, created.error_message) == DISABLED
    box.broker.tenants.set_policy(NAMESPACE, "is_allow_auto_update_schema", True, box.now)
    assert refusal(client.producer(2, topic=TOPIC + "-2", schema=NEW)) is None


@pytest.mark.parametrize("level", ["broker", "namespace", "topic"])
def test_producers_that_must_bring_one(level: str) -> None:
    box = Box(isSchemaValidationEnforced=level == "broker")
    if level == "namespace":
        box.broker.tenants.set_policy(NAMESPACE, "schema_validation_enforced", True, box.now)
    elif level == "topic":
        box.broker.policies.set_topic(parse_topic(TOPIC), "schemaValidationEnforced", True, box.now)
    client = box.client()
    assert refusal(client.producer(1)) is None, "the topic has no schema"
    completed(box.broker.schemas.putting(parse_topic(TOPIC), KNOWN, 0))
    assert refusal(client.producer(2)) == ENFORCED
    assert refusal(client.producer(2, schema=KNOWN)) is None
    assert refusal(client.subscribe()) is None


# Successive schemas ---------------------------------------------------------------------------------------------------

FIRST = avro(record("R", field("a")))
WIDER = avro(record("R", field("a"), field("b")))
OTHER = avro(record("R", field("a", "string")))


def incompatible(reply: Any) -> bool:
    refused = refusal(reply)
    assert refused is None or refused[0] == 18
    return refused is not None


@pytest.mark.parametrize("level", ["broker", "namespace", "old words", "topic"])
def test_the_strategy_and_who_sets_it(level: str) -> None:
    box = Box(schemaCompatibilityStrategy="FORWARD" if level == "broker" else "FULL")
    if level == "namespace":
        box.broker.tenants.set_policy(NAMESPACE, "schema_compatibility_strategy", "FORWARD", box.now)
        box.broker.tenants.set_policy(NAMESPACE, "schema_auto_update_compatibility_strategy", "Backward", box.now)
    elif level == "old words":
        box.broker.tenants.set_policy(NAMESPACE, "schema_compatibility_strategy", "UNDEFINED", box.now)
        box.broker.tenants.set_policy(NAMESPACE, "schema_auto_update_compatibility_strategy", "Forward", box.now)
    elif level == "topic":
        box.broker.tenants.set_policy(NAMESPACE, "schema_compatibility_strategy", "BACKWARD", box.now)
        box.broker.policies.set_topic(parse_topic(TOPIC), "schemaCompatibilityStrategy", "FORWARD", box.now)
    client = box.client()
    assert not incompatible(client.producer(1, schema=FIRST))
    assert not incompatible(client.producer(2, schema=WIDER)), "the old one skips what it does not know"
    assert incompatible(client.producer(3, schema=FIRST)) is False, "it is there already"
    assert incompatible(client.producer(4, schema=OTHER))
    assert incompatible(client.producer(4, schema=KNOWN)), "of another type"
    assert incompatible(client.producer(4, schema=Schema(name="", type=Schema.Avro, schema_data=b"?"))), "none at all"
    assert [each.version for each in box.broker.schemas.versions(parse_topic(TOPIC))] == [0, 1]


def test_any_schema_on_a_system_topic() -> None:
    box = Box()
    name = parse_topic("persistent://public/default/__change_events")
    for schema in (FIRST, OTHER):
        completed(box.broker.schemas.bringing(name, schema, 0))
    assert box.broker.schemas.strategy(name) == "ALWAYS_COMPATIBLE"


def test_a_consumer_gives_a_topic_that_nobody_uses_its_schema() -> None:
    box = Box()
    client = box.client()
    auto = Schema(name="", type=Schema.AutoConsume, schema_data=b"")
    assert not incompatible(client.subscribe("any", 1, schema=auto))
    assert not incompatible(client.subscribe("s", 2, schema=FIRST))
    assert box.broker.schemas.get(parse_topic(TOPIC)).schema == FIRST  # type: ignore[union-attr]
    assert incompatible(client.subscribe("t", 3, schema=OTHER))
    assert incompatible(client.subscribe("t", 3, schema=KNOWN))
    assert incompatible(client.subscribe("t", 3, schema=WIDER)), "there is nothing to read b from"
    assert not incompatible(client.subscribe("t", 3, schema=avro(record("R")))), "and it writes nothing"
    assert [each.version for each in box.broker.schemas.versions(parse_topic(TOPIC))] == [0]


@pytest.mark.parametrize("who", ["a producer", "a consumer", "a message", "nobody"])
@pytest.mark.parametrize("domain", ["persistent", "non-persistent"])
def test_a_topic_in_use_has_bytes(who: str, domain: str) -> None:
    """A consumer cannot add a schema to such a topic unless compatibility is ALWAYS_COMPATIBLE."""
    box = Box()
    client, topic = box.client(), f"{domain}://public/default/t"
    if who == "a consumer":
        client.subscribe("s", 1, topic=topic)
    elif who != "nobody":
        client.producer(1, topic=topic)
    if who == "a message":
        client.send(0)
        client.ask("close_producer", producer_id=1, request_id=9)
    in_use = who != "nobody" and (who != "a message" or domain == "persistent")
    reply = client.subscribe("t", 2, topic=topic, schema=FIRST)
    assert incompatible(reply) == in_use
    if in_use:
        assert refusal(reply) == (
            18, "Failed to add schema to an active topic with empty(BYTES) schema: new schema type AVRO",
        )  # fmt: skip
        box.broker.tenants.set_policy(NAMESPACE, "schema_compatibility_strategy", "ALWAYS_COMPATIBLE", box.now)
        assert not incompatible(client.subscribe("t", 2, topic=topic, schema=FIRST))
        assert box.broker.schemas.get(parse_topic(topic)) is None


def test_schemas_are_kept_and_the_same_ones_found_again() -> None:
    box = Box()
    box.client().producer(schema=FIRST)
    box = box.restart()
    spaced = Schema(
        name="s", type=Schema.Avro, schema_data=json.dumps(json.loads(FIRST.schema_data), indent=2).encode()
    )
    completed(box.broker.schemas.putting(parse_topic(TOPIC), spaced, 0))
    assert [each.version for each in box.broker.schemas.versions(parse_topic(TOPIC))] == [0]
