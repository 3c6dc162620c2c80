"""Non-persistent topics: the four subscription types, lost messages, and responses to unsupported commands."""

from tests.differences.broker import Broker
from tests.differences.messages import EARLIEST, batch, numbered
from tests.differences.scenario import Steps, scenario

KINDS = ("Exclusive", "Shared", "Failover", "Key_Shared")


@scenario
def second_consumers(broker: Broker) -> Steps:
    topic = broker.topic(persistent=False)
    a, b = broker.wire("a"), broker.wire("b")
    for number, first in enumerate(KINDS):
        a.subscribe(topic, number, first, sub=first)
        for other, second in enumerate(KINDS):
            b.subscribe(topic, 10 * number + other, second, sub=first)
            yield f"{first}, then {second}", broker.frames()


@scenario
def commands(broker: Broker) -> Steps:
    topic = broker.topic(persistent=False)
    p, a, b = broker.wire("p"), broker.wire("a"), broker.wire("b")
    p.producer(topic)
    for kind in KINDS:
        a.subscribe(topic, 1, kind, sub=kind, name="a")
        a.flow(10)
        broker.forget()
        p.publish([*numbered(2), batch("x", "y")])
        yield f"{kind}: messages", broker.frames()
        a.ack([a.ids["m0"]], receipt=True)
        a.ack([a.ids["m1"]], cumulative=True, receipt=True)
        yield f"{kind}: acks", broker.frames()
        a.redeliver()
        yield f"{kind}: redeliver", broker.frames()
        a.consumer_stats()
        yield f"{kind}: CONSUMER_STATS", broker.frames()
        a.seek(1, EARLIEST)
        yield f"{kind}: seek", broker.frames()
        a.close_consumer()
        a.subscribe(topic, 2, kind, sub=kind, name="a")
        b.subscribe(topic, 2, kind, sub=kind, name="b")
        yield f"{kind}: two", broker.frames()
        a.unsubscribe(2)
        yield f"{kind}: unsubscribe", broker.frames()
        a.unsubscribe(2, force=True)
        yield f"{kind}: unsubscribe by force", broker.frames()
        b.close_consumer(2)
        a.close_consumer(2)
        broker.forget()


@scenario
def without_permits(broker: Broker) -> Steps:
    topic = broker.topic(persistent=False)
    p, a = broker.wire("p"), broker.wire("a")
    p.producer(topic)
    p.publish(["nobody"])
    for kind in KINDS:
        a.subscribe(topic, 1, kind, sub=kind, name="a")
        a.flow(2)
        broker.forget()
        for payload in numbered(4):
            p.publish([payload])
        yield f"{kind}: two permits, four messages", broker.shares()
        a.flow(2)
        yield f"{kind}: two more permits", broker.shares()
        a.flow(1)
        p.publish([batch("x", "y", "z", "w")])
        p.publish(["after"])
        yield f"{kind}: a batch of four for three permits", broker.shares()
        a.consumer_stats()
        yield f"{kind}: CONSUMER_STATS", broker.frames()
        a.close_consumer()
        broker.forget()


@scenario
def durability(broker: Broker) -> Steps:
    topic = broker.topic(persistent=False)
    a, b = broker.wire("a"), broker.wire("b")
    a.subscribe(topic, 1, "Shared", sub="d")
    b.subscribe(topic, 1, "Shared", sub="d", durable=False)
    yield "durable, then not", broker.frames()
    a.subscribe(topic, 2, "Shared", sub="n", durable=False, start_message_id=EARLIEST)
    b.subscribe(topic, 2, "Shared", sub="n")
    yield "not durable, then durable", broker.frames()
    yield "stats", {name: broker.subscription(topic, "isDurable", sub=name) for name in ("d", "n")}
    a.close()
    b.close()
    broker.settle()
    yield "all gone", broker.subscriptions(topic)


@scenario
def names(broker: Broker) -> Steps:
    topic = broker.topic(persistent=False)
    a = broker.wire("a")
    for number, name in enumerate(("", " ", "pulsar.dedup", "pulsar.repl.x", "__compaction"), 1):
        a.subscribe(topic, number, sub=name)
        yield repr(name), broker.frames()
    a.subscribe(topic, 9, sub="rollback", start_message_rollback_duration_sec=60)
    yield "a rollback", broker.frames()
