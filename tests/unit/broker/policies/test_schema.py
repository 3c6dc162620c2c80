"""What schemas clients may bring, as far as it does not take comparing them."""

from typing import Any

import pytest

from pulsarbox.names import parse_topic
from pulsarbox.protocol.PulsarApi_pb2 import Schema
from tests.unit.broker.playbook import TOPIC, Box

NAMESPACE = "public/default"
KNOWN = Schema(name="k", type=Schema.String, schema_data=b"")
NEW = Schema(name="n", type=Schema.Json, schema_data=b"{}")
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
    box.broker.schemas.put(parse_topic(TOPIC), KNOWN, 0)
    if level == "namespace":
        box.broker.tenants.set_policy(NAMESPACE, "is_allow_auto_update_schema", False, box.now)
    client = box.client()
    assert refusal(client.producer(1, schema=KNOWN)) is None
    assert refusal(client.producer(2, schema=NEW)) == DISABLED
    assert refusal(client.subscribe(schema=NEW)) == DISABLED
    created = client.request("getOrCreateSchema", topic=TOPIC, schema=NEW)
    assert (created.error_code, created.error_message) == DISABLED
    box.broker.tenants.set_policy(NAMESPACE, "is_allow_auto_update_schema", True, box.now)
    assert refusal(client.producer(2, schema=NEW)) is None


@pytest.mark.parametrize("level", ["broker", "namespace", "topic"])
def test_producers_that_must_bring_one(level: str) -> None:
    box = Box(isSchemaValidationEnforced=level == "broker")
    if level == "namespace":
        box.broker.tenants.set_policy(NAMESPACE, "schema_validation_enforced", True, box.now)
    elif level == "topic":
        box.broker.core.policies.set_topic(parse_topic(TOPIC), "schemaValidationEnforced", True, box.now)
    client = box.client()
    assert refusal(client.producer(1)) is None, "the topic has no schema"
    box.broker.schemas.put(parse_topic(TOPIC), KNOWN, 0)
    assert refusal(client.producer(2)) == ENFORCED
    assert refusal(client.producer(2, schema=KNOWN)) is None
    assert refusal(client.subscribe()) is None
