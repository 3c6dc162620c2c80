"""Error codes tell a client whether to retry: the code of each error, and the result in C++ clients."""

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from pulsarbox import errors
from pulsarbox.broker.topic.topic import PersistentTopic
from pulsarbox.errors import PulsarBoxError
from pulsarbox.names import parse_topic
from pulsarbox.protocol.features import client_error_code
from pulsarbox.protocol.PulsarApi_pb2 import CommandSubscribe, KeySharedMeta, KeySharedMode, Schema
from pulsarbox.protocol.PulsarApi_pb2 import ServerError as Code
from tests.unit.broker.playbook import TOPIC, Box, Client

FLEETING = "non-persistent://public/default/n"
SPACE = "public/default"
CPP = "Pulsar-CPP-v4.2.0"

RETRIED = frozenset(
    {"UnknownError", "MetadataError", "PersistenceError", "ServiceNotReady", "SubscriptionNotFound"}
    | {"ConsumerNotFound", "UnsupportedVersionError", "InvalidTopicName", "TransactionCoordinatorNotFound"}
    | {"InvalidTxnStatus", "TransactionConflict", "TransactionNotFound"}
)
"""Codes on which the C++ client retries opening and lookup until its operation times out (lib/ResultUtils.h).

ProducerFenced is final for producers despite being in this list.
"""


class Refusal(NamedTuple):
    """A client action and the error code in the response."""

    does: Callable[[Box, Client], Any]
    code: str
    settings: dict[str, Any] = {}  # noqa: RUF012 - never mutated


def policy(name: str, value: Any) -> Callable[[Box], None]:
    def set_it(box: Box) -> None:
        box.broker.tenants.set_policy(SPACE, name, value, box.now)
        box.turn()

    return set_it


def after(prepared: Callable[[Box], None], does: Callable[[Box, Client], Any]) -> Callable[[Box, Client], Any]:
    def both(box: Box, client: Client) -> Any:
        prepared(box)
        return does(box, client)

    return both


def partitioned(box: Box) -> None:
    box.broker.topics.create_partitioned(parse_topic(TOPIC), 2, box.now)
    box.turn()


def terminated(box: Box) -> None:
    box.client().producer()
    topic = box.broker.topics.find(parse_topic(TOPIC), box.now)
    assert isinstance(topic, PersistentTopic)
    topic.termination.begin(lambda *_: None, lambda *_: None, box.now)
    box.turn()


def with_schema(kind: int, data: bytes = b"") -> Any:
    return Schema(name="s", type=kind, schema_data=data)  # type: ignore[arg-type]


def sticky(*ranges: tuple[int, int]) -> dict[str, Any]:
    meta = KeySharedMeta(keySharedMode=KeySharedMode.STICKY)
    for start, end in ranges:
        meta.hashRanges.add(start=start, end=end)
    return {"subType": CommandSubscribe.Key_Shared, "keySharedMeta": meta}


def beside(first: dict[str, Any], second: dict[str, Any]) -> Callable[[Box, Client], Any]:
    def both(box: Box, client: Client) -> Any:
        box.client().subscribe(**first)
        return client.subscribe(**second)

    return both


def producers(first: dict[str, Any], second: dict[str, Any]) -> Callable[[Box, Client], Any]:
    def both(box: Box, client: Client) -> Any:
        box.client().producer(**first)
        return client.producer(**second)

    return both


SHARED: dict[str, Any] = {"subType": CommandSubscribe.Shared}
REFUSALS: dict[str, Refusal] = {
    # Names, tenants, namespaces, topics
    "no name": Refusal(lambda box, client: client.producer(topic="a/b"), "InvalidTopicName"),
    "no name to consume from": Refusal(lambda box, client: client.subscribe(topic="foo://a/b/c"), "InvalidTopicName"),
    "no name to look up": Refusal(lambda box, client: client.request("lookupTopic", topic=""), "InvalidTopicName"),
    "no name to ask of": Refusal(lambda box, client: client.request("partitionMetadata", topic=""), "InvalidTopicName"),
    "no namespace to list": Refusal(
        lambda box, client: client.request("getTopicsOfNamespace", namespace="x"), "InvalidTopicName"
    ),
    "missing tenant": Refusal(lambda box, client: client.producer(topic="nobody/x/t"), "TopicNotFound"),
    "missing namespace": Refusal(lambda box, client: client.subscribe(topic="public/x/t"), "TopicNotFound"),
    "missing namespace to look up": Refusal(
        lambda box, client: client.request("lookupTopic", topic="public/x/t"), "TopicNotFound"
    ),
    "missing namespace to ask of": Refusal(
        lambda box, client: client.request("partitionMetadata", topic="public/x/t"), "TopicNotFound"
    ),
    "unknown listener": Refusal(
        lambda box, client: client.request("lookupTopic", topic=TOPIC, advertised_listener_name="x"), "ServiceNotReady"
    ),
    "no topic is made": Refusal(
        lambda box, client: client.producer(), "TopicNotFound", {"allowAutoTopicCreation": False}
    ),
    "no topic is made to consume from": Refusal(
        lambda box, client: client.subscribe(), "TopicNotFound", {"allowAutoTopicCreation": False}
    ),
    "no topic is made for who asks": Refusal(
        lambda box, client: client.request("partitionMetadata", topic=TOPIC),
        "TopicNotFound",
        {"allowAutoTopicCreation": False},
    ),
    "a topic that must be there": Refusal(
        lambda box, client: client.subscribe(force_topic_creation=False), "TopicNotFound"
    ),
    "a partitioned topic": Refusal(after(partitioned, lambda box, client: client.producer()), "NotAllowedError"),
    "one partition too many": Refusal(
        after(partitioned, lambda box, client: client.subscribe(topic=f"{TOPIC}-partition-2")), "TopicNotFound"
    ),
    "a partition of nothing": Refusal(
        lambda box, client: client.producer(topic=f"{TOPIC}-partition-2"), "NotAllowedError"
    ),
    "a system topic": Refusal(lambda box, client: client.producer(topic="__change_events"), "NotAllowedError"),
    "topics that are not kept": Refusal(
        lambda box, client: client.producer(topic=FLEETING), "NotAllowedError", {"enableNonPersistentTopics": False}
    ),
    "a topic too many": Refusal(
        after(policy("max_topics_per_namespace", 1), lambda box, client: [client.producer(1), client.producer(2, "u")]),
        "NotAllowedError",
    ),
    "a topic that has ended": Refusal(after(terminated, lambda box, client: client.producer()), "TopicTerminatedError"),
    # Producers
    "a name that is taken": Refusal(
        producers({"producer_name": "a"}, {"producer_name": "a"}),
        "ProducerBusy",
        {"connectionLivenessCheckTimeoutMillis": 0},
    ),
    "one producer too many": Refusal(producers({}, {}), "ProducerBusy", {"maxProducersPerTopic": 1}),
    "alone beside another": Refusal(producers({}, {"producer_access_mode": 1}), "ProducerFenced"),
    "beside one who is alone": Refusal(producers({"producer_access_mode": 1}, {}), "ProducerBusy"),
    "not encrypted": Refusal(
        lambda box, client: client.producer(), "NotAllowedError", {"encryptionRequireOnProducer": True}
    ),
    "a schema that is none": Refusal(
        lambda box, client: client.producer(schema=with_schema(Schema.Json, b"?")), "IncompatibleSchema"
    ),
    "a schema that does not fit": Refusal(
        producers({"schema": with_schema(Schema.String)}, {"schema": with_schema(Schema.Int32)}), "IncompatibleSchema"
    ),
    "a subscription that is not made": Refusal(
        lambda box, client: client.producer(initial_subscription_name="s"),
        "NotAllowedError",
        {"allowAutoSubscriptionCreation": False},
    ),
    # Consumers
    "no subscription's name": Refusal(lambda box, client: client.subscribe(""), "ProducerBusy"),
    "a name that is kept": Refusal(lambda box, client: client.subscribe("pulsar.dedup"), "ProducerBusy"),
    "no subscription is made": Refusal(
        lambda box, client: client.subscribe(), "SubscriptionNotFound", {"allowAutoSubscriptionCreation": False}
    ),
    "exclusive, and taken": Refusal(beside({}, {}), "ConsumerBusy"),
    "of another type": Refusal(beside({}, SHARED), "ConsumerBusy"),
    "not durable beside durable": Refusal(beside({}, {"durable": False}), "NotAllowedError"),
    "compacted and shared": Refusal(
        lambda box, client: client.subscribe(read_compacted=True, **SHARED), "NotAllowedError"
    ),
    "compacted and not kept": Refusal(
        lambda box, client: client.subscribe(topic=FLEETING, read_compacted=True), "NotAllowedError"
    ),
    "a type that is off": Refusal(
        lambda box, client: client.subscribe(**SHARED), "NotAllowedError", {"subscriptionTypesEnabled": "Exclusive"}
    ),
    "ranges that overlap": Refusal(beside(sticky((0, 9)), sticky((5, 19))), "ConsumerAssignError"),
    "no ranges": Refusal(lambda box, client: client.subscribe(**sticky()), "ConsumerAssignError"),
    "one consumer too many": Refusal(beside(SHARED, SHARED), "ConsumerBusy", {"maxConsumersPerTopic": 1}),
    "one consumer too many of a subscription": Refusal(
        beside(SHARED, SHARED), "ConsumerBusy", {"maxConsumersPerSubscription": 1}
    ),
    "one subscription too many": Refusal(
        lambda box, client: [client.subscribe("a", 1), client.subscribe("b", 2)],
        "NotAllowedError",
        {"maxSubscriptionsPerTopic": 1},
    ),
}
ASKED_ONCE: dict[str, Refusal] = {
    # Clients do not retry these requests, whatever the error.
    "seek of nobody": Refusal(
        lambda box, client: client.request("seek", consumer_id=9, message_publish_time=1), "MetadataError"
    ),
    "last message of nobody": Refusal(
        lambda box, client: client.request("getLastMessageId", consumer_id=9), "MetadataError"
    ),
    "nobody unsubscribes": Refusal(lambda box, client: client.request("unsubscribe", consumer_id=9), "MetadataError"),
    "one of several unsubscribes": Refusal(
        lambda box, client: [
            box.client().subscribe(**SHARED),
            client.subscribe(**SHARED),
            client.request("unsubscribe", consumer_id=1),
        ],
        "MetadataError",
    ),
    "seek to nowhere": Refusal(
        lambda box, client: [client.subscribe(), client.request("seek", consumer_id=1)], "MetadataError"
    ),
    "the last of what is not kept": Refusal(
        lambda box, client: [client.subscribe(topic=FLEETING), client.request("getLastMessageId", consumer_id=1)],
        "NotAllowedError",
    ),
    "a schema that is not there": Refusal(
        lambda box, client: client.request("getSchema", topic=TOPIC), "TopicNotFound"
    ),
    "a watch of what is no pattern": Refusal(
        lambda box, client: client.request("watchTopicList", watcher_id=1, namespace=SPACE, topics_pattern="("),
        "NotAllowedError",
    ),
}


def refused(refusal: Refusal, version: str) -> int:
    """Return the error code sent to a client with this version string."""
    box = Box(**refusal.settings)
    client = box.client(connect=False)
    client.ask("connect", client_version=version, protocol_version=21)
    client.take("connected")
    told = refusal.does(box, client)
    told = told[-1] if isinstance(told, list) else told
    code = getattr(told, "error_code", None) or getattr(told, "error", None)
    assert code is not None, told
    return int(code)


@pytest.mark.parametrize("name", [*REFUSALS, *ASKED_ONCE])
def test_the_code_of_each_refusal(name: str) -> None:
    refusal = (REFUSALS | ASKED_ONCE)[name]
    assert Code.Name(refused(refusal, "Pulsar-Java-v4.2.4")) == refusal.code


# C++ clients detect an unknown listener by the text after ServiceNotReady, as sent by Pulsar.
@pytest.mark.parametrize("name", [name for name in REFUSALS if name != "unknown listener"])
def test_no_refusal_that_stands_is_told_a_cpp_client_with_a_code_that_it_tries_again_after(name: str) -> None:
    assert Code.Name(refused(REFUSALS[name], CPP)) not in RETRIED


def kinds(of: type[PulsarBoxError] = PulsarBoxError) -> list[type[PulsarBoxError]]:
    return [of, *(kind for each in of.__subclasses__() for kind in kinds(each))]


def test_what_may_pass_is_told_everybody_alike() -> None:
    for kind in kinds(errors.PulsarBoxError):
        assert client_error_code(kind.server_error, kind.in_vain, "Pulsar-Java-v4.2.4") == kind.server_error
        expected = Code.NotAllowedError if kind.in_vain else kind.server_error
        assert client_error_code(kind.server_error, kind.in_vain, CPP) == expected
    passing = (errors.ServiceNotReady, errors.PersistenceError, errors.ProducerHeld, errors.PulsarBoxError)
    assert not any(kind.in_vain for kind in passing)
