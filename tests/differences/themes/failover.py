"""Failover: the active consumer, its notification, and redelivery."""

from pulsarbox.protocol import PulsarApi_pb2 as api
from tests.differences.broker import Broker
from tests.differences.messages import LATEST, numbered
from tests.differences.scenario import Steps, scenario

SWITCH_SECONDS = 1.6
"""Longer than activeConsumerFailoverDelayTimeMillis."""


@scenario
def joins_and_leaves(broker: Broker) -> Steps:
    topic = broker.topic()
    wires = {name: broker.wire(name) for name in ("d", "b", "c", "a")}
    for name, wire in wires.items():
        wire.subscribe(topic, 1, "Failover", name=name)
        yield f"{name} joins", broker.frames(SWITCH_SECONDS)
    yield "stats", broker.subscription(topic, "activeConsumerName", "type")
    for name in ("a", "b", "c", "d"):
        wires[name].close_consumer()
        yield f"{name} closes", broker.frames(SWITCH_SECONDS)


@scenario
def joins_and_leaves_on_a_partition(broker: Broker) -> Steps:
    topic = broker.topic(partitions=3)
    for partition in range(3):
        wires = {name: broker.wire(name) for name in ("d", "b", "c", "a")}
        for name, wire in wires.items():
            wire.subscribe(f"{topic}-partition-{partition}", 1, "Failover", name=name)
            yield f"partition {partition}: {name} joins", broker.frames(SWITCH_SECONDS)
        for name in ("a", "b", "c", "d"):
            wires[name].close()
            yield f"partition {partition}: {name}'s connection ends", broker.frames(SWITCH_SECONDS)


@scenario
def all_join_at_once(broker: Broker) -> Steps:
    topic = broker.topic(partitions=4)
    a = broker.wire("a")
    for partition in range(4):
        for number, name in enumerate(("x", "y", "z")):
            a.subscribe(f"{topic}-partition-{partition}", 10 * partition + number, "Failover", name=name)
    yield "three consumers, four partitions", broker.frames(SWITCH_SECONDS)
    yield (
        "active",
        [broker.subscription(f"{topic}-partition-{partition}", "activeConsumerName") for partition in range(4)],
    )


@scenario
def the_ring(broker: Broker) -> Steps:
    for word in ("one", "two", "three", "four"):
        topic = broker.topic(word)
        a = broker.wire(word)
        active = []
        for number, name in enumerate(("n0", "n1", "n2", "n3", "n4")):
            a.subscribe(topic, number, "Failover", name=name)
            broker.settle(1.2 if number else 0)
            active.append(broker.subscription(topic, "activeConsumerName").get("activeConsumerName"))
        yield f"{word}: active after each join", active
        a.close()


@scenario
def priorities(broker: Broker) -> Steps:
    topic = broker.topic(partitions=2)
    a = broker.wire("a")
    name = f"{topic}-partition-1"
    for number, (who, level) in enumerate((("low", 5), ("mid", 3), ("top2", 1), ("top1", 1), ("none", None))):
        a.subscribe(name, number, "Failover", name=who, priority_level=level)
        yield f"{who} joins with {level}", broker.frames(SWITCH_SECONDS)
    yield "active", broker.subscription(name, "activeConsumerName")
    for number in (4, 3, 2, 1):
        a.close_consumer(number)
        yield f"{number} closes", broker.frames(SWITCH_SECONDS)
    plain = broker.topic("plain")
    for number, (who, level) in enumerate((("low", 5), ("mid", 3), ("top2", 1), ("top1", 1))):
        a.subscribe(plain, 10 + number, "Failover", name=who, priority_level=level)
        yield f"without partitions: {who} joins with {level}", broker.frames(SWITCH_SECONDS)


@scenario
def messages_of_the_one_before(broker: Broker) -> Steps:
    topic = broker.topic(partitions=1)
    name = f"{topic}-partition-0"
    p, a, b = broker.wire("p"), broker.wire("a"), broker.wire("b")
    p.producer(name)
    b.subscribe(name, 1, "Failover", name="b")
    b.flow(10)
    p.publish(numbered(5))
    yield "b alone", broker.shares(5)
    b.ack([b.ids["m1"]], cumulative=True)
    b.ack([b.ids["m3"]])
    broker.forget()
    a.subscribe(name, 1, "Failover", name="a")
    a.flow(10)
    yield "a joins, first in order", broker.frames(SWITCH_SECONDS)
    b.ack([b.ids["m2"]], receipt=True)
    b.redeliver()
    yield "b acknowledges and asks again", broker.frames()
    yield "backlog", broker.subscription(name, "msgBacklog", "unackedMessages")
    p.publish(numbered(2, 5))
    yield "two more", broker.shares(2)
    a.redeliver()
    yield "a asks again", broker.frames()
    a.close()
    yield "a's connection ends", broker.frames(SWITCH_SECONDS)
    b.close_consumer()
    b.subscribe(name, 2, "Failover", name="b")
    b.flow(2, 2)
    yield "b comes back with two permits", broker.frames(SWITCH_SECONDS)


@scenario
def leaves_before_the_delay_is_over(broker: Broker) -> Steps:
    topic = broker.topic(partitions=1)
    name = f"{topic}-partition-0"
    p, a, b, c = (broker.wire(label) for label in "pabc")
    p.producer(name)
    c.subscribe(name, 1, "Failover", name="c")
    c.flow(10)
    broker.forget()
    b.subscribe(name, 1, "Failover", name="b")
    b.flow(10)
    p.publish(numbered(2))
    yield "right after b joined", broker.shares(2)
    broker.frames(SWITCH_SECONDS)
    a.subscribe(name, 1, "Failover", name="a")
    a.close_consumer()
    yield "a joins and leaves at once", broker.frames(SWITCH_SECONDS)


@scenario
def cumulative_acknowledgements(broker: Broker) -> Steps:
    topic = broker.topic()
    p, a, b = broker.wire("p"), broker.wire("a"), broker.wire("b")
    p.producer(topic)
    a.subscribe(topic, 1, "Failover", name="a")
    a.flow(10)
    p.publish(numbered(4))
    broker.shares(4)
    a.ack([a.ids["m2"]], cumulative=True, receipt=True)
    yield "m2", broker.frames()
    yield "backlog", broker.subscription(topic, "msgBacklog", "unackedMessages", "consumers.unackedMessages")
    a.close()
    broker.settle()
    b.subscribe(topic, 1, "Failover", name="b")
    b.flow(10)
    yield "the next one", broker.frames(SWITCH_SECONDS)


@scenario
def delays(broker: Broker) -> Steps:
    topic = broker.topic(partitions=1)
    name = f"{topic}-partition-0"
    p, a, b = broker.wire("p"), broker.wire("a"), broker.wire("b")
    p.producer(name)
    p.publish(numbered(2))
    broker.forget()
    b.subscribe(name, 1, "Failover", name="b")
    b.flow(10)
    yield "the first: at once", broker.frames()
    yield "the first: later", broker.frames(SWITCH_SECONDS)
    a.subscribe(name, 1, "Failover", name="a")
    a.flow(10)
    yield "one that takes over: at once", broker.frames()
    yield "one that takes over: later", broker.frames(SWITCH_SECONDS)
    a.close_consumer()
    yield "the active one closes: at once", broker.frames()
    yield "the active one closes: later", broker.frames(SWITCH_SECONDS)


@scenario
def consumer_epochs(broker: Broker) -> Steps:
    topic = broker.topic()
    p, a = broker.wire("p"), broker.wire("a")
    p.producer(topic)
    a.subscribe(topic, 1, "Failover", name="a", consumer_epoch=3)
    a.flow(100)
    p.publish(numbered(2))
    a.until_messages(2)
    yield "SUBSCRIBE with epoch 3", broker.frames()
    a.redeliver(epoch=5)
    a.until_messages(2)
    yield "REDELIVER with epoch 5", broker.frames()
    a.redeliver(epoch=4)
    yield "REDELIVER with epoch 4", broker.frames()
    a.redeliver()
    yield "REDELIVER without", broker.frames()
    a.redeliver([a.ids["m1"]], epoch=9)
    yield "REDELIVER of one id with epoch 9", broker.frames()


@scenario
def on_non_persistent(broker: Broker) -> Steps:
    topic = broker.topic(persistent=False)
    p, a, b = broker.wire("p"), broker.wire("a"), broker.wire("b")
    p.producer(topic)
    b.subscribe(topic, 1, "Failover", name="b")
    b.flow(10)
    a.subscribe(topic, 1, "Failover", name="a")
    a.flow(10)
    yield "two join", broker.frames(SWITCH_SECONDS)
    p.publish(numbered(3))
    yield "messages", broker.shares(3)
    a.subscribe(topic, 2, "Shared")
    yield "then Shared", broker.frames()
    a.close()
    yield "a's connection ends", broker.frames(SWITCH_SECONDS)
    b.close()
    yield "what is left", broker.subscription(topic, "type")


@scenario
def non_durable(broker: Broker) -> Steps:
    topic = broker.topic()
    a = broker.wire("a")
    a.subscribe(topic, 1, "Failover", name="a", durable=False, start_message_id=LATEST)
    a.subscribe(topic, 2, "Failover", name="b", durable=False, start_message_id=LATEST)
    yield "two that are not durable", broker.frames(SWITCH_SECONDS)
    a.subscribe(topic, 3, "Failover", name="c", initialPosition=api.CommandSubscribe.Latest)
    yield "one that is", broker.frames(SWITCH_SECONDS)
