"""Policies at each supported level (topic, namespace, broker), as seen by the official client.

One probe checks the effect of a policy, which is set in three ways. The clock is virtual, so days pass at once.
"""

import json
import shutil
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import pulsar
import pytest

from pulsarbox import PulsarBox
from tests.e2e.clients import EARLIEST, connect, is_quiet, read_to_end, take, until
from tests.e2e.limits.test_throttling import ask, fill

SHARED: Final = pulsar.ConsumerType.Shared
HOUR: Final = 3600
LARGEST: Final = 200_000
FIXED: Final[dict[str, Any]] = {
    "maxUnackedMessagesPerConsumer": 7,
    "maxUnackedMessagesPerSubscription": 13,
    "maxMessageSize": LARGEST,
}
"""The broker's own values that cannot be changed at runtime."""


class Place(NamedTuple):
    """Unused topic in a namespace of its own."""

    box: PulsarBox
    client: Any
    namespace: str
    topic: str

    def admin(self, method: str, path: str, body: Any = None) -> Any:
        return ask(self.box, method, path, None if body is None else json.dumps(body))

    @property
    def path(self) -> str:
        return self.topic.replace("://", "/")

    @property
    def stats(self) -> Any:
        return self.admin("GET", f"{self.path}/stats")


class Row(NamedTuple):
    """Policy, its value, and the expected effect."""

    name: str
    value: Any
    probe: Callable[[Place], None]
    namespace: str = ""
    """Path below the namespace; empty if namespaces lack the policy."""
    topic: str = ""
    broker: dict[str, Any] | None = None
    """Settings with the same meaning."""
    verb: str = "POST"


@pytest.fixture(scope="module")
def levels() -> Iterator[PulsarBox]:
    with PulsarBox(clock="virtual", brokerUnloadIdleTopicsAfterSeconds=0, **FIXED) as box:
        yield box


@pytest.fixture
def place(levels: PulsarBox) -> Iterator[Place]:
    namespace = f"public/levels-{uuid.uuid4().hex[:8]}"
    ask(levels, "PUT", f"namespaces/{namespace}")
    client = connect(levels.service_url, operation_timeout_seconds=20)
    yield Place(levels, client, namespace, f"persistent://{namespace}/t")
    client.close()


def producer(place: Place, **options: Any) -> Any:
    return place.client.create_producer(place.topic, **{"batching_enabled": False, **options})


def subscribe(place: Place, name: str = "s", kind: Any = pulsar.ConsumerType.Exclusive) -> Any:
    return place.client.subscribe(place.topic, name, kind, initial_position=EARLIEST)


@contextmanager
def hasty(place: Place) -> Iterator[Any]:
    """Return a client with short timeouts for operations that it retries."""
    client = connect(place.box.service_url, operation_timeout_seconds=1)
    yield client
    client.close()


def connections(place: Place) -> int:
    """Return the number of connections made to the box."""
    found = place.admin("GET", "broker-stats/metrics")
    return sum(each["metrics"].get("brk_connection_created_total_count", 0) for each in found)


@contextmanager
def refused(place: Place, payload: bytes, **options: Any) -> Iterator[None]:
    """Check that a message is rejected: its client resends it over one connection after another."""
    client, results = connect(place.box.service_url), []
    sender = client.create_producer(place.topic, batching_enabled=False)
    before = connections(place)
    sender.send_async(payload, lambda result, message_id: results.append(result), **options)
    until(lambda: connections(place) > before + 1)
    yield
    client.close()
    until(lambda: bool(results))
    assert results != [pulsar.Result.Ok]


# Effects of each policy


def one_producer(place: Place) -> None:
    first = producer(place)
    with pytest.raises(pulsar.ProducerBusy):
        producer(place)
    first.close()
    producer(place).send(b"x")


def one_consumer(place: Place) -> None:
    first = subscribe(place)
    with pytest.raises(pulsar.ConsumerBusy):
        subscribe(place, "another")
    first.close()
    subscribe(place, "another")


def one_consumer_of_a_subscription(place: Place) -> None:
    first = subscribe(place, kind=SHARED)
    subscribe(place, "another", SHARED)
    with pytest.raises(pulsar.ConsumerBusy):
        subscribe(place, kind=SHARED)
    first.close()
    subscribe(place, kind=SHARED)


def one_subscription(place: Place) -> None:
    subscribe(place, kind=SHARED)
    subscribe(place, kind=SHARED)
    with pytest.raises(pulsar.NotAllowedError):
        subscribe(place, "another")


def one_topic(place: Place) -> None:
    producer(place).send(b"x")
    with pytest.raises(pulsar.NotAllowedError):
        place.client.create_producer(f"{place.topic}-2")


def held_by_one(count: int) -> Callable[[Place], None]:
    """A consumer receives the given number of messages, and more once half of them are acknowledged."""

    def probe(place: Place) -> None:
        fill(place.client, place.topic, 40)
        consumer = subscribe(place, kind=SHARED)
        held = [consumer.receive(timeout_millis=20_000) for _ in range(count)]
        assert is_quiet(consumer)
        for message in held[: count // 2 + 1]:
            consumer.acknowledge(message)
        consumer.receive(timeout_millis=20_000)

    return probe


def held_by_all(count: int) -> Callable[[Place], None]:
    """All consumers of a subscription together receive the given number, but for the last entry of each."""

    def probe(place: Place) -> None:
        consumers = [subscribe(place, kind=SHARED) for _ in range(4)]
        sender = producer(place)
        for number in range(40):
            sender.send(b"%d" % number)
        found: dict[str, Any] = place.stats["subscriptions"]["s"]
        assert found["blockedSubscriptionOnUnackedMsgs"]
        assert count <= found["unackedMessages"] < count + len(consumers)
        for consumer in consumers:
            consumer.close()
        assert len(take(subscribe(place, kind=SHARED), 40)) == 40

    return probe


def a_minute_to_live(place: Place) -> None:
    subscribe(place).close()
    sender = producer(place)
    sender.send(b"old")
    place.box.clock.advance(seconds=40)
    sender.send(b"young")
    place.box.clock.advance(seconds=30)
    until(lambda: bool(place.stats["subscriptions"]["s"]["msgBacklog"] == 1))
    assert take(subscribe(place), 1) == [b"young"]


def ten_minutes_retained(place: Place) -> None:
    fill(place.client, place.topic, 3)
    consumer = subscribe(place)
    assert len(take(consumer, 3)) == 3
    place.box.clock.advance(minutes=9)
    reader = place.client.create_reader(place.topic, pulsar.MessageId.earliest)
    assert [reader.read_next(timeout_millis=20_000).data() for _ in range(3)] == [b"0", b"1", b"2"]
    place.box.clock.advance(minutes=120)
    until(lambda: bool(place.admin("GET", f"{place.path}/internalStats")["totalSize"] == 0))


def a_thousand_bytes(place: Place) -> None:
    subscribe(place).close()
    sender = producer(place, send_timeout_millis=20_000)

    def goes_on() -> None:
        for _ in range(100):
            sender.send(b"x" * 300)

    with pytest.raises(pulsar.ProducerBlockedQuotaExceededException):
        goes_on()
    with pytest.raises(pulsar.ProducerBlockedQuotaExceededException):
        producer(place)
    place.admin("POST", f"{place.path}/subscription/s/skip_all")
    producer(place).send(b"x")


def _limit(place: Place, kind: str, of: dict[str, Any]) -> tuple[str, int]:
    (limit,) = [each for each in of["limits"] if each["limits"] == kind]
    return limit["scope"], limit["messagesLimit"]


def five_dispatched(place: Place) -> None:
    fill(place.client, place.topic, 8)
    consumer = subscribe(place)
    found = place.stats["subscriptions"]["s"]
    assert _limit(place, "dispatch", found) in (("topic", 5), ("subscription", 5))
    assert len(take(consumer, 5)) == 5
    place.box.clock.advance(hours=1)
    assert len(take(consumer, 3)) == 3


def one_published(place: Place) -> None:
    receipts: list[Any] = []
    sender = producer(place, send_timeout_millis=0)
    for _ in range(200):
        sender.send_async(b"x", lambda result, message_id: receipts.append(result))
    until(lambda: bool(place.stats["msgInCounter"] == 200))
    assert len(receipts) < 200, "as many would take minutes"
    assert _limit(place, "publish", place.stats) == ("topic", 1)
    place.admin("PUT", f"{place.path}/unload")
    sender.flush()
    assert receipts == [pulsar.Result.Ok] * 200


def twice_an_hour(place: Place) -> None:
    def comes_and_goes() -> None:
        client = connect(place.box.service_url, operation_timeout_seconds=20)
        try:
            client.subscribe(place.topic, "s", consumer_name="c")
        finally:
            client.close()

    comes_and_goes()
    comes_and_goes()
    with pytest.raises(pulsar.NotAllowedError):
        comes_and_goes()
    place.box.clock.advance(hours=1)
    comes_and_goes()


def only_shared(place: Place) -> None:
    with pytest.raises(pulsar.NotAllowedError):
        subscribe(place)
    subscribe(place, kind=SHARED)


def no_new_subscriptions(place: Place) -> None:
    with hasty(place) as client, pytest.raises(pulsar.PulsarException):  # it retries until its timeout
        client.subscribe(place.topic, "s")
    assert place.stats["subscriptions"] == {}
    place.admin("PUT", f"{place.path}/subscription/s")
    subscribe(place)


def no_new_topics(place: Place) -> None:
    with pytest.raises(pulsar.TopicNotFound):
        place.client.create_producer(f"{place.topic}-2")
    place.admin("PUT", f"{place.path}-2")
    place.client.create_producer(f"{place.topic}-2").send(b"x")


def once(place: Place) -> None:
    sender = producer(place, producer_name="p")
    for number, payload in ((5, b"a"), (5, b"b"), (6, b"c")):
        sender.send(payload, sequence_id=number)
    assert take(subscribe(place), 2) == [b"a", b"c"]
    until(lambda: bool(place.stats["subscriptions"]["s"]["msgBacklog"] == 0))


def no_delays(place: Place) -> None:
    consumer = subscribe(place, kind=SHARED)
    producer(place).send(b"late", deliver_at=int(time.time() * 1000) + 86_400_000)
    assert take(consumer, 1) == [b"late"]


def gone_after_a_minute(place: Place) -> None:
    producer(place).close()
    listing = f"persistent/{place.namespace}"
    assert place.admin("GET", listing) == [place.topic]
    until(lambda: not place.stats["publishers"])
    place.box.clock.advance(minutes=2)
    until(lambda: bool(place.admin("GET", listing) == []))


def unused_for_a_minute(place: Place) -> None:
    subscribe(place).close()
    subscribe(place, "used")
    until(lambda: not place.stats["subscriptions"]["s"]["consumers"])
    place.box.clock.advance(minutes=2)
    until(lambda: list(place.stats["subscriptions"]) == ["used"])


class First(pulsar.schema.Record):  # type: ignore[misc]  # the client has no types
    a = pulsar.schema.Integer()


class Second(pulsar.schema.Record):  # type: ignore[misc]
    a = pulsar.schema.Integer()
    b = pulsar.schema.String(default="", required_default=True)


def no_other_schemas(place: Place) -> None:
    producer(place, schema=pulsar.schema.JsonSchema(First)).send(First(a=1))
    with pytest.raises(pulsar.IncompatibleSchema):
        producer(place, schema=pulsar.schema.JsonSchema(Second))
    producer(place, schema=pulsar.schema.JsonSchema(First)).send(First(a=2))


def any_other_schema(place: Place) -> None:
    producer(place, schema=pulsar.schema.JsonSchema(First)).send(First(a=1))
    producer(place, schema=pulsar.schema.StringSchema()).send("2")


def compacted_by_itself(place: Place) -> None:
    sender = producer(place)
    for number in range(20):
        sender.send(b"%d" % number, partition_key="k")
    place.box.clock.advance(minutes=2)
    until(lambda: bool(place.stats["compaction"]["lastCompactionSucceedTimestamp"]))
    reader = place.client.create_reader(place.topic, pulsar.MessageId.earliest, is_read_compacted=True)
    came = read_to_end(reader)
    assert came[0] != b"0" and came[-1] == b"19"


def no_producers_without_a_schema(place: Place) -> None:
    producer(place, schema=pulsar.schema.JsonSchema(First)).send(First(a=1))
    with pytest.raises(pulsar.IncompatibleSchema):
        producer(place)


def at_most_a_hundred_bytes(place: Place) -> None:
    with refused(place, b"x" * 200):
        producer(place).send(b"x")
        assert take(subscribe(place), 1) == [b"x"]


def dispatch_rate(messages: int) -> dict[str, Any]:
    return {
        "dispatchThrottlingRateInMsg": messages,
        "dispatchThrottlingRateInByte": -1,
        "ratePeriodInSecond": HOUR,
        "relativeToPublishRate": False,
    }


QUOTA: Final = {"limitSize": 1000, "limitTime": -1, "policy": "producer_exception"}
INACTIVE: Final = {
    "inactiveTopicDeleteMode": "delete_when_no_subscriptions",
    "maxInactiveDurationSeconds": 60,
    "deleteWhileInactive": True,
}
NEVER_INACTIVE: Final = INACTIVE | {"deleteWhileInactive": False}
ROWS: Final = (
    Row("max-producers", 1, one_producer, "maxProducersPerTopic", "maxProducers", {"maxProducersPerTopic": 1}),
    Row("max-consumers", 1, one_consumer, "maxConsumersPerTopic", "maxConsumers", {"maxConsumersPerTopic": 1}),
    Row("max-consumers-per-subscription", 1, one_consumer_of_a_subscription, "maxConsumersPerSubscription",
        "maxConsumersPerSubscription", {"maxConsumersPerSubscription": 1}),
    Row("max-subscriptions-per-topic", 1, one_subscription, "maxSubscriptionsPerTopic", "maxSubscriptionsPerTopic",
        {"maxSubscriptionsPerTopic": 1}),
    Row("max-topics-per-namespace", 1, one_topic, "maxTopicsPerNamespace", "", {"maxTopicsPerNamespace": 1}),
    Row("max-unacked-messages-per-consumer", 4, held_by_one(4), "maxUnackedMessagesPerConsumer",
        "maxUnackedMessagesOnConsumer"),
    Row("max-unacked-messages-per-consumer", 7, held_by_one(7), broker={}),
    Row("max-unacked-messages-per-subscription", 5, held_by_all(5), "maxUnackedMessagesPerSubscription",
        "maxUnackedMessagesOnSubscription"),
    Row("max-unacked-messages-per-subscription", 13, held_by_all(13), broker={}),
    Row("max-message-size", 100, at_most_a_hundred_bytes, "", "maxMessageSize"),
    Row("message-ttl", 60, a_minute_to_live, "messageTTL", "messageTTL?messageTTL=60",
        {"ttlDurationDefaultInSeconds": 60}),
    Row("retention", {"retentionTimeInMinutes": 10, "retentionSizeInMB": -1}, ten_minutes_retained, "retention",
        "retention", {"defaultRetentionTimeInMinutes": 10, "defaultRetentionSizeInMB": -1}),
    Row("backlog-quota", QUOTA, a_thousand_bytes, "backlogQuota", "backlogQuota",
        {"backlogQuotaDefaultLimitBytes": 1000, "backlogQuotaDefaultRetentionPolicy": "producer_exception"}),
    Row("dispatch-rate", dispatch_rate(5), five_dispatched, "dispatchRate", "dispatchRate",
        {"dispatchThrottlingRatePerTopicInMsg": 5}),
    Row("subscription-dispatch-rate", dispatch_rate(5), five_dispatched, "subscriptionDispatchRate",
        "subscriptionDispatchRate", {"dispatchThrottlingRatePerSubscriptionInMsg": 5}),
    Row("publish-rate", {"publishThrottlingRateInMsg": 1, "publishThrottlingRateInByte": -1}, one_published,
        "publishRate", "publishRate", {"maxPublishRatePerTopicInMessages": 1}),
    Row("subscribe-rate", {"subscribeThrottlingRatePerConsumer": 2, "ratePeriodInSecond": HOUR}, twice_an_hour,
        "subscribeRate", "subscribeRate",
        {"subscribeThrottlingRatePerConsumer": 2, "subscribeRatePeriodPerConsumerInSecond": HOUR}),
    Row("subscription-types-enabled", ["Shared"], only_shared, "subscriptionTypesEnabled", "subscriptionTypesEnabled",
        {"subscriptionTypesEnabled": "Shared"}),
    Row("auto-subscription-creation", {"allowAutoSubscriptionCreation": False}, no_new_subscriptions,
        "autoSubscriptionCreation", "autoSubscriptionCreation", {"allowAutoSubscriptionCreation": "false"}),
    Row("auto-topic-creation", {"allowAutoTopicCreation": False}, no_new_topics, "autoTopicCreation", "",
        {"allowAutoTopicCreation": "false"}),
    Row("deduplication", True, once, "deduplication", "deduplicationEnabled"),
    Row("delayed-delivery", {"active": False, "tickTime": 1000}, no_delays, "delayedDelivery", "delayedDelivery",
        {"delayedDeliveryEnabled": "false"}),
    Row("inactive-topic-policies", INACTIVE, gone_after_a_minute, "inactiveTopicPolicies", "inactiveTopicPolicies",
        {"brokerDeleteInactiveTopicsMaxInactiveDurationSeconds": 60}),
    Row("subscription-expiration-time", 1, unused_for_a_minute, "subscriptionExpirationTime",
        "subscriptionExpirationTime?subscriptionExpirationTime=1", {"subscriptionExpirationTimeMinutes": 1}),
    Row("is-allow-auto-update-schema", False, no_other_schemas, "isAllowAutoUpdateSchema", "",
        {"isAllowAutoUpdateSchemaEnabled": "false"}),
    Row("compaction-threshold", 100, compacted_by_itself, "compactionThreshold", verb="PUT"),
    Row("compaction-threshold", 100, compacted_by_itself, "", "compactionThreshold",
        {"brokerServiceCompactionThresholdInBytes": 100}),
    Row("schema-compatibility-strategy", "ALWAYS_COMPATIBLE", any_other_schema, "schemaCompatibilityStrategy",
        "schemaCompatibilityStrategy", {"schemaCompatibilityStrategy": "ALWAYS_COMPATIBLE"}, "PUT"),
    Row("schema-auto-update-compatibility-strategy", "AlwaysCompatible", any_other_schema,
        "schemaAutoUpdateCompatibilityStrategy", verb="PUT"),
    Row("schema-validation-enforced", True, no_producers_without_a_schema, "schemaValidationEnforced",
        "schemaValidationEnforced", {"isSchemaValidationEnforced": "true"}),
)  # fmt: skip
CASES: Final = [
    pytest.param(row, level, id=f"{row.name}-{level}")
    for row in ROWS
    for level, has in (("topic", row.topic), ("namespace", row.namespace), ("broker", row.broker is not None))
    if has
]


@pytest.mark.parametrize(("row", "level"), CASES)
def test_a_policy_holds_at_this_level(row: Row, level: str, place: Place) -> None:
    if row.name != "auto-topic-creation":
        place.admin("PUT", place.path)
    if row.probe is no_other_schemas:
        producer(place, schema=pulsar.schema.JsonSchema(First)).close()
    if row.name == "inactive-topic-policies" and level == "topic":
        place.admin("POST", f"namespaces/{place.namespace}/inactiveTopicPolicies", NEVER_INACTIVE)
    if level == "topic":
        place.admin(row.verb, f"{place.path}/{row.topic}", row.value)
    elif level == "namespace":
        place.admin(row.verb, f"namespaces/{place.namespace}/{row.namespace}", row.value)
    settings = row.broker or {} if level == "broker" else {}
    try:
        for name, value in settings.items():
            place.admin("POST", f"brokers/configuration/{name}/{value}")
        row.probe(place)
    finally:
        for name in settings:
            place.admin("DELETE", f"brokers/configuration/{name}")


# Flags without levels


def test_what_is_published_comes_on_top_of_a_relative_rate(place: Place) -> None:
    place.admin("PUT", place.path)
    rate = dispatch_rate(5) | {"relativeToPublishRate": True}
    place.admin("POST", f"{place.path}/dispatchRate", rate)
    consumer = subscribe(place)
    fill(place.client, place.topic, 20)
    assert len(take(consumer, 5)) == 5
    assert is_quiet(consumer)
    place.box.clock.advance(hours=1)
    assert len(take(consumer, 15)) == 15, "five, and the twenty that were published in the hour before"
    fill(place.client, place.topic, 20)
    place.box.clock.advance(hours=1)
    assert len(take(consumer, 20)) == 20


def test_who_is_caught_up_is_not_limited_where_the_broker_says_so(place: Place) -> None:
    place.admin("PUT", place.path)
    place.admin("POST", f"{place.path}/dispatchRate", dispatch_rate(5))
    threshold = "managedLedgerCursorBackloggedThreshold"
    switch = "dispatchThrottlingOnNonBacklogConsumerEnabled"
    for name, value in ((switch, "false"), (threshold, "50")):
        place.admin("POST", f"brokers/configuration/{name}/{value}")
    try:
        consumer = subscribe(place)
        fill(place.client, place.topic, 20)
        assert len(take(consumer, 20)) == 20, "twenty are no backlog"
        consumer.close()
        fill(place.client, place.topic, 80)
        consumer = subscribe(place)
        assert len(take(consumer, 5)) == 5
        assert is_quiet(consumer), "eighty are one"
        place.admin("POST", f"brokers/configuration/{switch}/true")
    finally:
        for name in (switch, threshold):
            place.admin("DELETE", f"brokers/configuration/{name}")


def test_a_delay_beyond_the_longest_is_refused(place: Place) -> None:
    place.admin("PUT", place.path)
    longest = {"active": True, "tickTime": 1000, "maxDeliveryDelayInMillis": 60_000}
    place.admin("POST", f"{place.path}/delayedDelivery", longest)
    with refused(place, b"late", deliver_at=int(time.time() * 1000) + 86_400_000):
        producer(place).send(b"x", deliver_at=int(time.time() * 1000) + 30_000)
        assert place.stats["msgInCounter"] == 1


def test_clients_are_told_the_largest_message_of_the_box(place: Place) -> None:
    sender = producer(place)
    with pytest.raises(pulsar.MessageTooBig):
        sender.send(b"x" * (LARGEST + 1))
    sender.send(b"x" * (LARGEST - 1000))
    assert len(take(subscribe(place), 1)[0]) == LARGEST - 1000


# Encryption with keys


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return the official client's key reader, and a pair of RSA keys."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("keys are made with openssl, which is not installed")
    folder: Path = tmp_path_factory.mktemp("keys")
    private, public = str(folder / "private.pem"), str(folder / "public.pem")
    for words in (
        ["genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", private],
        ["pkey", "-in", private, "-pubout", "-out", public],
    ):
        subprocess.run([openssl, *words], check=True, capture_output=True)
    return pulsar.CryptoKeyReader(public, private)


@pytest.mark.parametrize("level", ["namespace", "broker"])
@pytest.mark.parametrize("batched", [False, True])
def test_only_encrypted_messages_are_taken(place: Place, keys: Any, level: str, *, batched: bool) -> None:
    place.admin("PUT", place.path)
    setting = "encryptionRequireOnProducer"
    if level == "namespace":
        place.admin("POST", f"namespaces/{place.namespace}/encryptionRequired", True)
    else:
        place.admin("POST", f"brokers/configuration/{setting}/true")
    try:
        with hasty(place) as client, pytest.raises(pulsar.PulsarException):  # it retries until its timeout
            client.create_producer(place.topic)
        secret = producer(place, encryption_key="k", crypto_key_reader=keys, batching_enabled=batched)
        secret.send(b"secret")
        read = place.client.subscribe(place.topic, "s", crypto_key_reader=keys, initial_position=EARLIEST)
        assert take(read, 1) == [b"secret"]
        stored = place.client.subscribe(
            place.topic, "raw", initial_position=EARLIEST,
            crypto_failure_action=pulsar.ConsumerCryptoFailureAction.CONSUME,
        )  # fmt: skip
        assert b"secret" not in stored.receive(timeout_millis=20_000).data()
    finally:
        if level == "broker":
            place.admin("DELETE", f"brokers/configuration/{setting}")
