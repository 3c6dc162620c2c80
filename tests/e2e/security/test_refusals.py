"""The official client reports permanent errors of a box at once, each with its own exception.

A retry would end in Timeout after half a minute, so the exception proves that the client did not retry.
"""

import json
from collections.abc import Callable
from typing import Any

import pulsar
import pytest
from pulsar.schema import JsonSchema, Record, String

from tests.e2e.clients import connect
from tests.e2e.conftest import Running

SHARED = pulsar.ConsumerType.Shared


class Reading(Record):  # type: ignore[misc]  # the client has no types
    """Reading of a device."""

    device = String()


def policy(box: Running, space: str, name: str, value: Any) -> None:
    box.admin("POST", f"namespaces/{space}/{name}", json.dumps(value))


POLICIES: list[tuple[str, Any, Callable[[Any, str], Any], type[Exception]]] = [
    (
        "autoSubscriptionCreation",
        {"allowAutoSubscriptionCreation": False},
        lambda client, topic: client.subscribe(topic, "s"),
        pulsar.NotAllowedError,
    ),
    (
        "autoTopicCreation",
        {"allowAutoTopicCreation": False},
        lambda client, topic: client.create_producer(topic),
        pulsar.TopicNotFound,
    ),
    (
        "autoTopicCreation",
        {"allowAutoTopicCreation": False},
        lambda client, topic: client.subscribe(topic, "s"),
        pulsar.TopicNotFound,
    ),
    ("encryptionRequired", True, lambda client, topic: client.create_producer(topic), pulsar.NotAllowedError),
    (
        "subscriptionTypesEnabled",
        ["Exclusive"],
        lambda client, topic: client.subscribe(topic, "s", SHARED),
        pulsar.NotAllowedError,
    ),
    (
        "maxProducersPerTopic",
        1,
        lambda client, topic: [client.create_producer(topic), client.create_producer(topic)],
        pulsar.ProducerBusy,
    ),
    (
        "maxConsumersPerTopic",
        1,
        lambda client, topic: [client.subscribe(topic, "a", SHARED), client.subscribe(topic, "b", SHARED)],
        pulsar.ConsumerBusy,
    ),
    (
        "maxTopicsPerNamespace",
        1,
        lambda client, topic: [client.create_producer(topic), client.create_producer(topic + "-2")],
        pulsar.NotAllowedError,
    ),
]


@pytest.mark.parametrize("case", POLICIES, ids=lambda case: f"{case[0]}-{case[3].__name__}")
def test_what_a_policy_refuses(
    box: Running, client: Any, space: str, case: tuple[str, Any, Callable[[Any, str], Any], type[Exception]]
) -> None:
    name, value, act, expected = case
    policy(box, space, name, value)
    with pytest.raises(expected):
        act(client, f"persistent://{space}/t")


ACTS: list[tuple[Callable[[Any, str], Any], type[Exception]]] = [
    (lambda client, topic: client.create_producer("persistent://nobody/x/t"), pulsar.TopicNotFound),
    (lambda client, topic: client.subscribe("persistent://public/nowhere/t", "s"), pulsar.TopicNotFound),
    (lambda client, topic: client.create_producer(f"{topic}-partition-3"), pulsar.NotAllowedError),
    (lambda client, topic: client.create_producer("__change_events"), pulsar.TopicNotFound),
    (
        lambda client, topic: [client.subscribe(topic, "s"), client.subscribe(topic, "s")],
        pulsar.ConsumerBusy,
    ),
    (
        lambda client, topic: [client.subscribe(topic, "s"), client.subscribe(topic, "s", SHARED)],
        pulsar.ConsumerBusy,
    ),
    (
        lambda client, topic: [
            client.create_producer(topic, producer_name="a"),
            client.create_producer(topic, producer_name="b", access_mode=pulsar.ProducerAccessMode.Exclusive),
        ],
        pulsar.ProducerFenced,
    ),
    (
        lambda client, topic: [
            client.create_producer(topic, schema=JsonSchema(Reading)),
            client.create_producer(topic, schema=pulsar.schema.StringSchema()),
        ],
        pulsar.IncompatibleSchema,
    ),
]


@pytest.mark.parametrize("case", ACTS, ids=lambda case: case[1].__name__)
def test_what_is_refused_anywhere(
    client: Any, topic: str, case: tuple[Callable[[Any, str], Any], type[Exception]]
) -> None:
    act, expected = case
    with pytest.raises(expected):
        act(client, topic)


def test_a_topic_that_has_ended(box: Running, client: Any, topic: str) -> None:
    path = topic.replace("://", "/")
    box.admin("PUT", path)
    box.admin("POST", f"{path}/terminate")
    with pytest.raises(pulsar.TopicTerminated):
        client.create_producer(topic)


def test_one_partition_too_many(box: Running, client: Any, topic: str) -> None:
    box.admin("PUT", f"{topic.replace('://', '/')}/partitions", "2")
    with pytest.raises(pulsar.TopicNotFound):
        client.subscribe(f"{topic}-partition-2", "s")


def test_a_listener_that_the_box_does_not_have(box: Running, topic: str) -> None:
    client = connect(box.url, listener_name="test")  # the only name for which C++ clients do not retry
    with pytest.raises(pulsar.ConnectError):
        client.create_producer(topic)
    client.close()
