"""Rates: number of messages in the first seconds, under the same load and limit."""

from typing import Any

from pulsarbox.protocol import PulsarApi_pb2 as api
from tests.differences.broker import Broker, path_of
from tests.differences.clients import Arrivals, made_with, policy, publish
from tests.differences.messages import batch, numbered
from tests.differences.scenario import Steps, alone_scenario, long, scenario
from tests.differences.themes.management.policies import namespace


def rate(messages: int = -1, size: int = -1, period: int = 1, relative: bool = False) -> dict[str, Any]:
    return {
        "dispatchThrottlingRateInMsg": messages,
        "dispatchThrottlingRateInByte": size,
        "ratePeriodInSecond": period,
        "relativeToPublishRate": relative,
    }


@long
@scenario
def ten_a_second(broker: Broker) -> Steps:
    for kind in ("Exclusive", "Failover", "Shared", "Key_Shared"):
        topic = made_with(broker, broker.topic(kind), "s")
        publish(broker, topic, 60)
        policy(broker, topic, "dispatchRate", rate(10))
        arrivals = Arrivals(broker)
        arrivals.subscribe(topic, kind=kind)
        yield kind, arrivals.pace(10)


@scenario
def by_batches(broker: Broker) -> Steps:
    topic = made_with(broker, broker.topic(), "s")
    publish(broker, topic, 120, batch=6)
    policy(broker, topic, "dispatchRate", rate(10))
    arrivals = Arrivals(broker)
    arrivals.subscribe(topic)
    yield "ten entries of six, and their debt", arrivals.counts(0.5, 3.5)


@scenario
def debts(broker: Broker) -> Steps:
    for count, quiet, then in ((11, 0.6, 2.5), (30, 1.6, 4.0)):
        topic = made_with(broker, broker.topic(f"of{count}"), "s")
        a = broker.wire(f"w{count}")
        a.producer(topic)
        a.publish([batch(*numbered(count)), *numbered(20, 100)])
        policy(broker, topic, "dispatchRate", rate(10))
        a.subscribe(topic, kind="Shared")
        broker.forget()
        a.flow(1)
        yield f"{count} in one entry", len(broker.shares(1).get(f"w{count}1", []))
        a.flow(count + 19)
        broker.settle(quiet)
        early = len(broker.shares().get(f"w{count}1", []))
        broker.settle(then - quiet)
        yield f"soon after {count}", early if count == 30 else early < 10
        yield f"when {count} are paid off", bool(broker.shares())


@scenario
def periods_and_bytes(broker: Broker) -> Steps:
    for word, value in (("two seconds", rate(10, period=2)), ("bytes", rate(size=300))):
        topic = made_with(broker, broker.topic(word.replace(" ", "")), "s")
        publish(broker, topic, 60, size=10)
        policy(broker, topic, "dispatchRate", value)
        arrivals = Arrivals(broker)
        arrivals.subscribe(topic)
        if word == "bytes":
            yield word, arrivals.pace(8)
        else:
            found = list(arrivals.counts(0.3, 5.0).values())
            yield word, [10 <= found[0] <= 20, 20 <= found[1] - found[0] <= 30]


@long
@scenario
def shared_and_of_each(broker: Broker) -> Steps:
    for word in ("dispatchRate", "subscriptionDispatchRate", "s/dispatchRate"):
        topic = made_with(broker, broker.topic(word.replace("/", "-")), "s", "s2")
        publish(broker, topic, 60)
        policy(broker, topic, word, rate(10))
        arrivals = Arrivals(broker)
        for sub in ("s", "s2"):
            arrivals.subscribe(topic, sub)
        if word == "s/dispatchRate":
            # Sixty from the other limit, and ten at the start of each second.
            yield word, 80 <= arrivals.counts(2.5)["by 2.5 s"] <= 100
        else:
            yield word, arrivals.pace(10 if word == "dispatchRate" else 20)


@scenario
def both_levels_at_once(broker: Broker) -> Steps:
    topic = made_with(broker, broker.topic(), "s", "s2")
    publish(broker, topic, 60)
    policy(broker, topic, "dispatchRate", rate(20))
    policy(broker, topic, "subscriptionDispatchRate", rate(5))
    arrivals = Arrivals(broker)
    arrivals.subscribe(topic, "s")
    yield "the lower one holds", arrivals.pace(5)


@scenario
def of_a_namespace(broker: Broker) -> Steps:
    with namespace(broker, dispatchRate=rate(10), subscriptionDispatchRate=rate(5)) as name:
        broker.settle(1)
        topic = made_with(broker, f"persistent://{name}/t", "s")
        publish(broker, topic, 60)
        arrivals = Arrivals(broker)
        consumer = arrivals.subscribe(topic)
        yield "of its subscriptions", arrivals.pace(5)
        consumer.close()
        policy(broker, topic, "subscriptionDispatchRate", rate(-1))
        policy(broker, topic, "dispatchRate", rate(8))
        again = Arrivals(broker)
        consumer = again.subscribe(topic)
        yield "of the topic", again.pace(8)
        consumer.close()


@scenario
def what_is_sent_again_counts(broker: Broker) -> Steps:
    topic = made_with(broker, broker.topic(), "s")
    a = broker.wire("a")
    a.producer(topic)
    a.publish(numbered(10))
    policy(broker, topic, "dispatchRate", rate(10, period=5))
    a.subscribe(topic, kind="Shared")
    broker.forget()
    a.flow(100)
    yield "ten", len(broker.shares(10).get("a1", []))
    a.redeliver()
    yield "all are given back, the period is not over", broker.shares()
    broker.settle(5)
    yield "in the next one", len(broker.shares(10).get("a1", []))
    a.seek(to=a.ids["m0"])
    broker.forget()
    a.subscribe(topic, kind="Shared")
    broker.forget()
    a.flow(100)
    yield "after a seek", broker.shares()


@scenario
def partitions(broker: Broker) -> Steps:
    topic = broker.topic(partitions=2)
    for number in (0, 1):
        made_with(broker, f"{topic}-partition-{number}", "s")
        publish(broker, f"{topic}-partition-{number}", 60)
    policy(broker, topic, "dispatchRate", rate(10))
    for number in (0, 1):
        arrivals = Arrivals(broker)
        consumer = arrivals.subscribe(f"{topic}-partition-{number}")
        yield f"partition {number}", arrivals.pace(10)
        consumer.close()


@scenario
def a_rate_that_is_changed(broker: Broker) -> Steps:
    topic = made_with(broker, broker.topic(), "s")
    publish(broker, topic, 60)
    policy(broker, topic, "dispatchRate", rate(5, period=60))
    arrivals = Arrivals(broker)
    arrivals.subscribe(topic)
    yield "five a minute", arrivals.counts(1.0)
    broker.admin("DELETE", f"{path_of(topic)}/dispatchRate")
    yield "none", broker.until(lambda: len(arrivals.instants) == 60)


def receipts(broker: Broker, topic: str, count: int, size: int = 0) -> Arrivals:
    """Publish messages without a pause; record the receipts as arrivals."""
    arrivals = Arrivals(broker)
    producer = broker.client().create_producer(topic, batching_enabled=False)
    for number in range(count):
        producer.send_async(f"m{number}".encode().ljust(size), lambda *_: arrivals.came())
    return arrivals


def near(found: dict[str, int], grain: int) -> list[int]:
    """Round counts: Pulsar refills publish rates every 16 ms, so a count at an instant is not exact."""
    return [round(each / grain) for each in found.values()]


@scenario
def publish_rates(broker: Broker) -> Steps:
    values = {
        "messages": {"publishThrottlingRateInMsg": 10, "publishThrottlingRateInByte": -1},
        "bytes": {"publishThrottlingRateInMsg": -1, "publishThrottlingRateInByte": 10_000},
    }
    for word, value in values.items():
        topic = made_with(broker, broker.topic(word))
        policy(broker, topic, "publishRate", value)
        found = receipts(broker, topic, 60, size=960).counts(1.5, 2.5, 3.5)
        later = list(found.values())
        yield word, near({"second": later[1] - later[0], "third": later[2] - later[1]}, 10)


@scenario
def the_publish_rate_of_a_namespace(broker: Broker) -> Steps:
    with namespace(broker, publishRate={"publishThrottlingRateInMsg": 10, "publishThrottlingRateInByte": -1}) as name:
        broker.settle(1)
        topic = made_with(broker, f"persistent://{name}/t")
        yield "slowed down", receipts(broker, topic, 40).counts(1.5)["by 1.5 s"] < 40
        policy(broker, topic, "publishRate", {"publishThrottlingRateInMsg": 0, "publishThrottlingRateInByte": 0})
        yield "not at this topic", receipts(broker, topic, 40).counts(1.5)["by 1.5 s"] == 40


@scenario
def relative_to_the_publish_rate(broker: Broker) -> Steps:
    """While nothing is published, a backlog drains at the configured rate. Otherwise Pulsar uses the rate of the last
    minute, as of its last measurement.
    """
    for word in ("dispatchRate", "subscriptionDispatchRate"):
        topic = made_with(broker, broker.topic(word), "s")
        publish(broker, topic, 60)
        policy(broker, topic, word, rate(10, relative=True))
        arrivals = Arrivals(broker)
        consumer = arrivals.subscribe(topic)
        yield word, arrivals.pace(10)
        consumer.close()


@long
@scenario
def resource_groups(broker: Broker) -> Steps:
    group = broker.topic().rpartition("/")[2]
    limits = {"publishRateInMsgs": 10, "publishRateInBytes": -1, "dispatchRateInMsgs": 10, "dispatchRateInBytes": -1}
    yield "made", broker.admin("PUT", f"resourcegroups/{group}", limits)[0]
    with namespace(broker) as name:
        yield "attached", broker.admin("POST", f"namespaces/{name}/resourcegroup/{group}")[0]
        yield "as it is", broker.admin("GET", f"namespaces/{name}/resourcegroup")
        yield "still in use", broker.admin("DELETE", f"resourcegroups/{group}")[0]
        topic = made_with(broker, f"persistent://{name}/t", "s")
        found = receipts(broker, topic, 60)
        yield "receipts wait", found.counts(1.5)["by 1.5 s"] < 60
        broker.until(lambda: len(found.instants) == 60)
        arrivals = Arrivals(broker)
        consumer = arrivals.subscribe(topic)
        yield "messages wait", arrivals.counts(1.5)["by 1.5 s"] < 60
        consumer.close()
        yield "let go", broker.admin("DELETE", f"namespaces/{name}/resourcegroup")[0]
    yield "deleted", broker.admin("DELETE", f"resourcegroups/{group}")[0]


@scenario
def subscribe_rates(broker: Broker) -> Steps:
    topic = made_with(broker, broker.topic())
    policy(broker, topic, "subscribeRate", {"subscribeThrottlingRatePerConsumer": 2, "ratePeriodInSecond": 30})
    a = broker.wire("a")
    for attempt in ("once", "twice", "three times"):
        broker.forget()
        a.subscribe(topic, 1, "Shared", name="x")
        yield attempt, broker.frames()
        a.close_consumer(1)
    broker.forget()
    a.subscribe(topic, 2, "Shared", name="x")
    yield "another consumer id", broker.frames()
    a.subscribe(topic, 3, "Shared", name="y")
    yield "another name", broker.frames()


@scenario
def permits_of_a_batch(broker: Broker) -> Steps:
    topic = made_with(broker, broker.topic(), "s")
    a = broker.wire("a")
    a.producer(topic)
    a.publish([batch(*numbered(6)) for _ in range(10)])
    a.subscribe(topic, kind="Shared", initialPosition=api.CommandSubscribe.Earliest)
    broker.forget()
    a.flow(10)
    yield "ten permits, six messages an entry", len(broker.shares(1).get("a1", []))


# Limits of the whole broker


def dynamic(broker: Broker, name: str, value: Any = None) -> int:
    """Change a dynamic setting of the broker, or restore its start value."""
    at = f"brokers/configuration/{name}"
    status = broker.admin("DELETE", at)[0] if value is None else broker.admin("POST", f"{at}/{value}")[0]
    broker.settle(1.0)
    return status


@alone_scenario
def of_the_broker(broker: Broker) -> Steps:
    topics = [made_with(broker, broker.topic(word), "s") for word in ("one", "two")]
    for topic in topics:
        publish(broker, topic, 60)
    try:
        yield "ten a second", dynamic(broker, "dispatchThrottlingRateInMsg", 10)
        arrivals = Arrivals(broker)
        consumers = [arrivals.subscribe(topic) for topic in topics]
        yield "shared by topics", arrivals.pace(10)
        for consumer in consumers:
            consumer.close()
    finally:
        dynamic(broker, "dispatchThrottlingRateInMsg")


@long
@alone_scenario
def of_each_topic_and_subscription(broker: Broker) -> Steps:
    for word in ("Topic", "Subscription"):
        name = f"dispatchThrottlingRatePer{word}InMsg"
        topic = made_with(broker, broker.topic(word), "s")
        publish(broker, topic, 60)
        try:
            yield name, dynamic(broker, name, 10)
            arrivals = Arrivals(broker)
            arrivals.subscribe(topic)
            yield f"of a {word}", arrivals.pace(10)
        finally:
            dynamic(broker, name)


@long
@alone_scenario
def entries_or_messages(broker: Broker) -> Steps:
    for name, expected in (("dispatchThrottlingOnBatchMessageEnabled", 60), ("preciseDispatcherFlowControl", 10)):
        topic = made_with(broker, broker.topic(name), "s")
        publish(broker, topic, 360, batch=6)
        policy(broker, topic, "dispatchRate", rate(10))
        try:
            yield name, dynamic(broker, name, "true")
            arrivals = Arrivals(broker)
            arrivals.subscribe(topic)
            yield f"{name}: messages", arrivals.pace(expected)
        finally:
            dynamic(broker, name)


@alone_scenario
def consumers_without_a_backlog(broker: Broker) -> Steps:
    topic = made_with(broker, broker.topic(), "s")
    policy(broker, topic, "dispatchRate", rate(10))
    try:
        yield "off", dynamic(broker, "dispatchThrottlingOnNonBacklogConsumerEnabled", "false")
        arrivals = Arrivals(broker)
        arrivals.subscribe(topic)
        broker.settle(1)
        publish(broker, topic, 60)
        yield "a consumer that has kept up", arrivals.counts(0.5)
    finally:
        dynamic(broker, "dispatchThrottlingOnNonBacklogConsumerEnabled")
