"""Policies: set, get, applied and remove at each level, and the effect of limits on clients."""

import contextlib
from collections.abc import Iterator
from typing import Any, Final

from tests.differences.broker import Broker, path_of
from tests.differences.scenario import Steps, scenario
from tests.differences.themes.limits import limited
from tests.differences.themes.management.rest import TENANT, N, Request, T, asked

RATE: Final = {
    "dispatchThrottlingRateInMsg": 10,
    "dispatchThrottlingRateInByte": 1000,
    "relativeToPublishRate": False,
    "ratePeriodInSecond": 2,
}
NUMBERS: Final = (5, 0, -1, "x")


def requests(
    policy: str, word: str, *values: Any, topic: str = "", verb: str = "POST", unset: bool = True
) -> list[Request]:
    """Build the set, get, applied and remove requests of a namespace (``word``) and a topic (``topic``, default
    ``word``; "-" for none).
    """
    made: list[Request] = []
    for base, path in ((N, word), (T, topic or word)):
        if path in ("", "-"):
            continue
        at = f"{base}/{path}"
        made.append(("GET", at))
        for value in values:
            made += [(verb if base == N or policy in TOPIC_TOO else "POST", at, value), ("GET", at)]
        if base == T:
            made += [("GET", f"{at}?applied=true"), ("DELETE", at), ("GET", f"{at}?applied=true")]
        elif unset:
            made += [("GET", f"{T}/{topic or word}?applied=true")] if topic != "-" else []
            made += [("DELETE", at), ("GET", at), ("DELETE", at)]
    return made


TOPIC_TOO: Final = ("schema_strategy",)
"""Policies whose verb is the same for topics and namespaces."""


@scenario
def retention(broker: Broker) -> Steps:
    values = [
        {"retentionTimeInMinutes": 10, "retentionSizeInMB": 5},
        {"retentionTimeInMinutes": 0, "retentionSizeInMB": -1},
        {"retentionTimeInMinutes": -2, "retentionSizeInMB": 1},
        {"retentionTimeInMinutes": -1, "retentionSizeInMB": -1},
        {"retentionTimeInMinutes": "x"},
    ]
    yield from asked(broker, ("PUT", T), *requests("retention", "retention", *values), raw=True)


@scenario
def message_ttl(broker: Broker) -> Steps:
    of_topic: list[Request] = [("GET", f"{T}/messageTTL?applied=true")]
    for value in (5, -1, 0):
        of_topic += [("POST", f"{T}/messageTTL?messageTTL={value}"), ("GET", f"{T}/messageTTL")]
    of_topic += [("DELETE", f"{T}/messageTTL"), ("GET", f"{T}/messageTTL")]
    yield from asked(broker, ("PUT", T), *requests("ttl", "messageTTL", *NUMBERS, topic="-"), *of_topic, raw=True)


@scenario
def subscription_expiration(broker: Broker) -> Steps:
    word = "subscriptionExpirationTime"
    of_topic: list[Request] = [("GET", f"{T}/{word}?applied=true")]
    for value in (5, -1, 0):
        of_topic += [("POST", f"{T}/{word}?{word}={value}"), ("GET", f"{T}/{word}")]
    of_topic += [("DELETE", f"{T}/{word}"), ("GET", f"{T}/{word}")]
    yield from asked(broker, ("PUT", T), *requests("expiration", word, *NUMBERS, topic="-"), *of_topic, raw=True)


@scenario
def backlog_quotas(broker: Broker) -> Steps:
    made: list[Request] = [("PUT", T)]
    for at in (N, T):
        for kind in ("destination_storage", "message_age"):
            for value in (
                {"limitSize": 1000, "limitTime": 60, "policy": "producer_request_hold"},
                {"limit": 2000, "policy": "producer_exception"},
                {"limitSize": 10},
            ):
                made += [
                    ("POST", f"{at}/backlogQuota?backlogQuotaType={kind}", value),
                    ("GET", f"{at}/backlogQuotaMap"),
                ]
        made.append(("GET", f"{T}/backlogQuotaMap?applied=true"))
        made += [("POST", f"{at}/retention", {"retentionTimeInMinutes": 10, "retentionSizeInMB": 1})]
        made += [
            ("POST", f"{at}/backlogQuota", {"limitSize": size, "policy": "producer_exception"}) for size in (1 << 20, 9)
        ]
        made += [("POST", f"{at}/retention", {"retentionTimeInMinutes": -1, "retentionSizeInMB": -1})]
        made += [("DELETE", f"{at}/backlogQuota"), ("GET", f"{at}/backlogQuotaMap")]
        made += [("DELETE", f"{at}/backlogQuota?backlogQuotaType=message_age"), ("GET", f"{at}/backlogQuotaMap")]
    yield from asked(broker, *made, raw=True)


@scenario
def inactive_topics(broker: Broker) -> Steps:
    values = [
        {
            "inactiveTopicDeleteMode": "delete_when_no_subscriptions",
            "maxInactiveDurationSeconds": 60,
            "deleteWhileInactive": True,
        },
        {"maxInactiveDurationSeconds": 5, "deleteWhileInactive": False},
        {},
    ]
    yield from asked(broker, ("PUT", T), *requests("inactive", "inactiveTopicPolicies", *values), raw=True)


@scenario
def dispatch_rates(broker: Broker) -> Steps:
    made: list[Request] = [("PUT", T)]
    for word in ("dispatchRate", "subscriptionDispatchRate"):
        made += requests(word, word, RATE, {}, {"dispatchThrottlingRateInMsg": 5})
    yield from asked(broker, *made, raw=True)


@scenario
def the_dispatch_rate_of_a_subscription(broker: Broker) -> Steps:
    at = f"{T}/s1/dispatchRate"
    yield from asked(
        broker,
        ("PUT", T),
        ("GET", f"{at}?applied=true"),
        ("POST", f"{N}/subscriptionDispatchRate", RATE),
        ("GET", f"{at}?applied=true"),
        ("POST", at, {"dispatchThrottlingRateInMsg": 1}),
        ("GET", at),
        ("POST", at, {}),
        ("GET", at),
        ("GET", f"{T}/s2/dispatchRate"),
        ("DELETE", at),
        ("GET", at),
        ("GET", f"{at}?applied=true"),
        raw=True,
    )


@scenario
def publish_and_subscribe_rates(broker: Broker) -> Steps:
    publish: tuple[dict[str, int], ...] = ({"publishThrottlingRateInMsg": 5, "publishThrottlingRateInByte": 7}, {})
    subscribe: tuple[dict[str, int], ...] = ({"subscribeThrottlingRatePerConsumer": 5, "ratePeriodInSecond": 10}, {})
    made = requests("publish", "publishRate", *publish) + requests("subscribe", "subscribeRate", *subscribe)
    yield from asked(broker, ("PUT", T), *made, raw=True)


@scenario
def numbers(broker: Broker) -> Steps:
    made: list[Request] = [("PUT", T)]
    for word, topic in (
        ("maxProducersPerTopic", "maxProducers"),
        ("maxConsumersPerTopic", "maxConsumers"),
        ("maxConsumersPerSubscription", ""),
        ("maxSubscriptionsPerTopic", ""),
        ("maxTopicsPerNamespace", "-"),
        ("maxUnackedMessagesPerConsumer", "maxUnackedMessagesOnConsumer"),
        ("maxUnackedMessagesPerSubscription", "maxUnackedMessagesOnSubscription"),
        ("", "maxMessageSize"),
        ("deduplicationSnapshotInterval", ""),
    ):
        made += requests(word, word, *NUMBERS, topic=topic, unset=word != "deduplicationSnapshotInterval")
    yield from asked(broker, *made, raw=True)


@scenario
def flags(broker: Broker) -> Steps:
    made: list[Request] = [("PUT", T)]
    for word, topic, unset in (
        ("deduplication", "deduplicationEnabled", True),
        ("encryptionRequired", "-", False),
        ("isAllowAutoUpdateSchema", "-", False),
        ("dispatcherPauseOnAckStatePersistent", "", True),
    ):
        made += requests(word, word, True, False, topic=topic, unset=unset)
    yield from asked(broker, *made, raw=True)


@scenario
def words(broker: Broker) -> Steps:
    made: list[Request] = [("PUT", T), ("POST", f"{T}/maxProducers", 0)]
    made += requests("types", "subscriptionTypesEnabled", ["Exclusive"], ["Shared"], [])
    made += requests("mode", "subscriptionAuthMode", "Prefix", "None", topic="-", unset=False)
    word = "schemaCompatibilityStrategy"
    made += requests("schema_strategy", word, "BACKWARD", "UNDEFINED", "FULL", verb="PUT", unset=False)
    yield from asked(broker, *made, raw=True)


@scenario
def auto_creation(broker: Broker) -> Steps:
    topics = (
        {"allowAutoTopicCreation": True, "topicType": "partitioned", "defaultNumPartitions": 3},
        {"allowAutoTopicCreation": False},
        {"allowAutoTopicCreation": True},
        {"allowAutoTopicCreation": True, "topicType": "partitioned"},
        {"allowAutoTopicCreation": True, "topicType": "non-partitioned", "defaultNumPartitions": 3},
    )
    made = requests("topics", "autoTopicCreation", *topics, topic="-")
    made += requests("subscriptions", "autoSubscriptionCreation", {"allowAutoSubscriptionCreation": False}, {})
    yield from asked(broker, ("PUT", T), *made, raw=True)


@scenario
def delays_compaction_and_persistence(broker: Broker) -> Steps:
    delays = ({"active": True, "tickTime": 100, "maxDeliveryDelayInMillis": 0}, {"active": False})
    names = ("bookkeeperEnsemble", "bookkeeperWriteQuorum", "bookkeeperAckQuorum")
    numbers = ((1, 1, 1), (3, 2, 2), (1, 2, 2), (0, 0, 0))
    quorums = [{**dict(zip(names, each, strict=True)), "managedLedgerMaxMarkDeleteRate": 0.5} for each in numbers]
    made = requests("delay", "delayedDelivery", *delays)
    made += requests("compaction", "compactionThreshold", 100, 0, -1, verb="PUT")
    made += requests("persistence", "persistence", *quorums)
    yield from asked(broker, ("PUT", T), *made, raw=True)


@scenario
def for_all_clusters_and_all_at_once(broker: Broker) -> Steps:
    value = {"retentionTimeInMinutes": 10, "retentionSizeInMB": 5}
    yield from asked(
        broker,
        ("PUT", T),
        ("POST", f"{T}/retention?isGlobal=true", value),
        ("GET", f"{T}/retention"),
        ("GET", f"{T}/retention?isGlobal=true"),
        ("POST", f"{T}/retention", {"retentionTimeInMinutes": 1, "retentionSizeInMB": 1}),
        ("GET", f"{T}/retention?applied=true"),
        ("POST", f"{T}/maxProducers", 3),
        ("DELETE", f"{T}/policies"),
        ("GET", f"{T}/retention"),
        ("GET", f"{T}/retention?isGlobal=true"),
        ("GET", f"{T}/maxProducers"),
        ("DELETE", f"{T}/policies"),
        raw=True,
    )


@scenario
def where_there_are_none(broker: Broker) -> Steps:
    missing, other = f"persistent/{TENANT}/n/none", f"persistent/{TENANT}/none/t"
    made: list[Request] = [("PUT", f"persistent/{TENANT}/n/p/partitions", 2)]
    for at in (missing, other, f"persistent/{TENANT}/n/p-partition-1", f"persistent/{TENANT}/n/p"):
        made += [("POST", f"{at}/maxProducers", 3), ("GET", f"{at}/maxProducers"), ("DELETE", f"{at}/maxProducers")]
    made += [("GET", f"namespaces/{TENANT}/none/messageTTL"), ("POST", f"namespaces/{TENANT}/none/messageTTL", 5)]
    yield from asked(broker, *made, raw=True)


@scenario
def resource_groups(broker: Broker) -> Steps:
    group = f"resourcegroups/{TENANT}"
    yield from asked(
        broker,
        ("PUT", group, {"publishRateInMsgs": 5}),
        ("GET", group),
        ("PUT", group, {"dispatchRateInBytes": 6}),
        ("GET", group),
        ("POST", f"{N}/resourcegroup/none"),
        ("POST", f"{N}/resourcegroup/{TENANT}"),
        ("GET", f"{N}/resourcegroup"),
        ("DELETE", group),
        ("DELETE", f"{N}/resourcegroup"),
        ("GET", f"{N}/resourcegroup"),
        ("DELETE", group),
        ("GET", group),
        raw=True,
    )


@scenario
def namespaces_that_bring_theirs(broker: Broker) -> Steps:
    other = f"namespaces/{TENANT}/m"
    retention = {"retentionTimeInMinutes": 10, "retentionSizeInMB": 5}
    yield from asked(
        broker,
        ("PUT", other, {"retention_policies": retention, "message_ttl_in_seconds": 7, "max_producers_per_topic": 3}),
        ("GET", f"{other}/retention"),
        ("GET", f"{other}/messageTTL"),
        ("GET", f"{other}/maxProducersPerTopic"),
        ("DELETE", other),
        ("PUT", other, {"retention_policies": {"retentionTimeInMinutes": 0, "retentionSizeInMB": 5}}),
        ("PUT", other, {"message_ttl_in_seconds": -7}),
        ("GET", other),
        raw=True,
    )


# Effects on clients


@contextlib.contextmanager
def namespace(broker: Broker, **policies: Any) -> Iterator[str]:
    """Create a namespace with policies, each set by its name in the Admin API."""
    name = f"public/{broker.scenario.replace('.', '-')}"
    broker.admin("PUT", f"namespaces/{name}")
    for word, value in policies.items():
        broker.admin("POST", f"namespaces/{name}/{word}", value)
    try:
        yield name
    finally:
        for listed, rest in ((f"persistent/{name}/partitioned", "/partitions"), (f"persistent/{name}", "")):
            found = broker.admin("GET", listed)[1]
            for topic in found if isinstance(found, list) else ():
                broker.admin("DELETE", f"{path_of(topic)}{rest}?force=true")
        broker.admin("DELETE", f"namespaces/{name}")


@scenario
def a_topic_with_two_subscriptions(broker: Broker) -> Steps:
    topic = broker.topic()
    a = broker.wire("a")
    a.producer(topic)
    yield "two a topic", limited(broker, topic, "maxSubscriptionsPerTopic", 2)
    broker.settle(0.5)
    broker.forget()
    for number, sub in enumerate(("one", "two", "three")):
        a.subscribe(topic, number, "Shared", sub=sub)
        yield sub, broker.frames()
    a.subscribe(topic, 5, "Shared", sub="one")
    yield "another consumer of one", broker.frames()
    a.subscribe(topic, 6, sub="reader", durable=False)
    yield "a reader", broker.frames()
    yield "by the Admin API", broker.admin("PUT", f"{path_of(topic)}/subscription/four")


@scenario
def sizes_of_messages(broker: Broker) -> Steps:
    topic = broker.topic()
    a = broker.wire("a")
    a.producer(topic)
    yield "a hundred bytes", limited(broker, topic, "maxMessageSize", 100)
    broker.settle(0.5)
    broker.forget()
    a.publish(["x" * 200])
    yield "two hundred", broker.frames()
    a.publish(["small"])
    yield "a small one", broker.frames()


@scenario
def encryption(broker: Broker) -> Steps:
    with namespace(broker, encryptionRequired=True) as name:
        topic = f"persistent://{name}/t"
        broker.admin("PUT", path_of(topic))
        a = broker.wire("a")
        a.look_up(topic)
        broker.forget()
        a.producer(topic)
        yield "a producer that does not encrypt", broker.frames()
        a.producer(topic, 2, encrypted=True)
        yield "one that does", broker.frames()
        a.publish(["plain"], 2)
        yield "and sends something plain", broker.frames()


@scenario
def topics_of_a_namespace(broker: Broker) -> Steps:
    with namespace(broker, maxTopicsPerNamespace=2) as name:
        at = f"persistent/{name}"
        yield "one", broker.admin("PUT", f"{at}/one")[0]
        yield "two partitions", broker.admin("PUT", f"{at}/p/partitions", 2)
        yield "two", broker.admin("PUT", f"{at}/two")[0]
        yield "three", broker.admin("PUT", f"{at}/three")
        a = broker.wire("a")
        a.look_up(f"persistent://{name}/four")
        broker.forget()
        a.producer(f"persistent://{name}/four")
        yield "a producer of another", broker.frames()


@scenario
def topics_that_clients_make(broker: Broker) -> Steps:
    made = {"allowAutoTopicCreation": True, "topicType": "partitioned", "defaultNumPartitions": 3}
    with namespace(broker, autoTopicCreation=made) as name:
        a = broker.wire("a")
        a.partitions(f"persistent://{name}/new")
        yield "partitions of a new one", broker.frames()
        yield "it is there", broker.admin("GET", f"persistent/{name}/new/partitions")[1]
        broker.admin("POST", f"namespaces/{name}/autoTopicCreation", {"allowAutoTopicCreation": False})
        broker.settle(0.5)
        a.look_up(f"persistent://{name}/another")
        broker.forget()
        a.producer(f"persistent://{name}/another")
        yield "a producer where that is off", broker.frames()


@scenario
def subscriptions_that_clients_make(broker: Broker) -> Steps:
    topic = broker.topic()
    a = broker.wire("a")
    a.producer(topic)
    broker.admin("PUT", f"{path_of(topic)}/subscription/there")
    yield "off", limited(broker, topic, "autoSubscriptionCreation", {"allowAutoSubscriptionCreation": False})
    broker.settle(0.5)
    broker.forget()
    a.subscribe(topic, 1, sub="new")
    yield "a new one", broker.frames()
    a.subscribe(topic, 2, sub="there")
    yield "one that is there", broker.frames()
    a.subscribe(topic, 3, sub="reader", durable=False)
    yield "a reader", broker.frames()


@scenario
def deduplication_of_one_topic(broker: Broker) -> Steps:
    topic = broker.topic()
    a = broker.wire("a")
    a.producer(topic, name="p")
    yield "on", limited(broker, topic, "deduplicationEnabled", True)
    broker.settle(1)
    broker.forget()
    for sequence in (5, 5, 4, 6):
        a.start_at(sequence)
        a.publish([f"m{sequence}"])
        yield f"sequence id {sequence}", broker.frames()
    yield "off", limited(broker, topic, "deduplicationEnabled", False)
    broker.settle(1)
    broker.forget()
    a.start_at(6)
    a.publish(["again"])
    yield "sequence id 6 again", broker.frames()


@scenario
def a_limit_that_is_lowered(broker: Broker) -> Steps:
    topic = broker.topic()
    a = broker.wire("a")
    for number in (1, 2):
        a.producer(topic, number)
    yield "one producer", limited(broker, topic, "maxProducers", 1)
    broker.settle(0.5)
    broker.forget()
    a.publish(["m"], 2)
    yield "the second goes on", broker.frames()
    a.producer(topic, 3)
    yield "a third", broker.frames()
    a.close_producer(1)
    a.producer(topic, 3)
    yield "again, when one has gone", broker.frames()
    yield "no limit", limited(broker, topic, "maxProducers", 0)
    broker.settle(0.5)
    a.producer(topic, 4)
    yield "a fourth", broker.frames()
