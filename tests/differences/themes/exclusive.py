"""Exclusive subscriptions, subscription names, and unsubscribing."""

from pulsarbox.protocol import PulsarApi_pb2 as api
from tests.differences.broker import Broker
from tests.differences.messages import numbered
from tests.differences.scenario import Steps, scenario

KINDS = ("Exclusive", "Shared", "Failover", "Key_Shared")


@scenario
def second_consumers(broker: Broker) -> Steps:
    topic = broker.topic()
    a, b = broker.wire("a"), broker.wire("b")
    for number, first in enumerate(KINDS):
        a.subscribe(topic, number, first, sub=first)
        for other, second in enumerate(KINDS):
            b.subscribe(topic, 10 * number + other, second, sub=first)
            yield f"{first}, then {second}", broker.frames()


@scenario
def same_consumer_twice(broker: Broker) -> Steps:
    topic = broker.topic()
    a, b = broker.wire("a"), broker.wire("b")
    a.subscribe(topic)
    a.subscribe(topic)
    yield "the same id", broker.frames()
    a.subscribe(topic, sub="other")
    yield "the same id, another subscription", broker.frames()
    a.subscribe(topic, 2)
    yield "another id of the connection", broker.frames()
    a.close_consumer(7)
    yield "close of an unknown id", broker.frames()
    a.unsubscribe(7)
    yield "unsubscribe of an unknown id", broker.frames()
    a.close_consumer()
    b.subscribe(topic)
    yield "closed, another comes", broker.frames()
    b.close()
    broker.settle()
    a.subscribe(topic, 3, "Shared")
    yield "its connection ends, one of another type comes", broker.frames()


@scenario
def names(broker: Broker) -> Steps:
    topic = broker.topic()
    a = broker.wire("a")
    for number, name in enumerate(("", " ", "a/b", "__compaction", "pulsar.dedup", "pulsar.repl.x", "ümläut", "a:b")):
        a.subscribe(topic, number, sub=name)
        yield repr(name), broker.frames()
    a.subscribe(topic, 20, "Shared", sub="__compaction")
    yield "__compaction, Shared", broker.frames()
    a.subscribe(topic, 21, "Shared", sub="compacted", read_compacted=True)
    yield "the compacted view, Shared", broker.frames()
    a.subscribe("persistent://public/nowhere/t", 22)
    yield "no such namespace", broker.frames()
    a.subscribe("nothing://public/default/t", 23)
    yield "no such domain", broker.frames()
    a.subscribe(f"{topic}-absent", 24, force_topic_creation=False)
    yield "no such topic, not to be created", broker.frames()


@scenario
def unsubscribing(broker: Broker) -> Steps:
    topic = broker.topic()
    p, a, b = broker.wire("p"), broker.wire("a"), broker.wire("b")
    p.producer(topic)
    a.subscribe(topic)
    p.publish(numbered(3))
    broker.forget()
    a.unsubscribe()
    yield "with a backlog", broker.frames()
    yield "the subscription", broker.subscription(topic, "msgBacklog")
    a.subscribe(topic, 2, "Shared")
    b.subscribe(topic, 2, "Shared")
    broker.forget()
    a.unsubscribe(2)
    yield "with another consumer", broker.frames()
    a.unsubscribe(2, force=True)
    yield "with another consumer, by force", broker.frames()
    b.flow(10, 2)
    yield "the other asks for messages", broker.frames()
    b.subscribe(topic, 2, "Shared")
    yield "the other comes back", broker.frames()
    a.unsubscribe(2)
    yield "the first once more", broker.frames()
    b.unsubscribe(2, force=True)
    yield "the other by force, alone", broker.frames()
    a.subscribe(topic, 4, "Failover", name="f1")
    b.subscribe(topic, 4, "Failover", name="f2")
    broker.forget()
    b.unsubscribe(4)
    yield "a standby of a Failover subscription", broker.frames()
    a.unsubscribe(4)
    yield "the active one of a Failover subscription", broker.frames()
    b.close_consumer(4)
    a.unsubscribe(4)
    yield "the last one", broker.frames()


@scenario
def commands_of_unknown_consumers(broker: Broker) -> Steps:
    a = broker.wire("a")
    a.flow(5, 9)
    a.redeliver((), 9)
    a.ack([api.MessageIdData(ledgerId=1, entryId=1)], 9)
    yield "flow, redeliver, ack", broker.frames()
    a.ack([api.MessageIdData(ledgerId=1, entryId=1)], 9, receipt=True)
    yield "ack with receipt", broker.frames()
    a.seek(9, time_ms=1)
    yield "seek", broker.frames()
    a.last_message_id(9)
    yield "last message id", broker.frames()
    a.consumer_stats(9)
    yield "stats", broker.frames()


@scenario
def acknowledging(broker: Broker) -> Steps:
    topic = broker.topic()
    p, a = broker.wire("p"), broker.wire("a")
    p.producer(topic)
    a.subscribe(topic)
    a.flow(10)
    p.publish(numbered(6))
    broker.shares(6)
    a.ack([a.ids["m2"]], cumulative=True, receipt=True)
    yield "cumulative, m2", broker.frames()
    yield "backlog", broker.subscription(topic, "msgBacklog", "unackedMessages", "consumers.unackedMessages")
    a.ack([a.ids["m4"]], receipt=True)
    yield "individual, m4", broker.frames()
    a.ack([a.ids["m0"]], cumulative=True, receipt=True)
    yield "cumulative, m0 once more", broker.frames()
    a.ack([a.ids["m0"], a.ids["m1"]], cumulative=True, receipt=True)
    yield "cumulative, two ids", broker.frames()
    a.ack([], receipt=True)
    yield "none", broker.frames()
    a.ack([api.MessageIdData(ledgerId=1 << 40, entryId=5)], receipt=True)
    yield "an id of no ledger", broker.frames()
    a.ack([api.MessageIdData(ledgerId=a.ids["m0"].ledgerId, entryId=500)], receipt=True)
    yield "an id ahead", broker.frames()
    yield "backlog (2)", broker.subscription(topic, "msgBacklog", "unackedMessages")
    a.redeliver()
    yield "again", broker.shares(2)
    a.ack([api.MessageIdData(ledgerId=a.ids["m0"].ledgerId, entryId=500)], cumulative=True, receipt=True)
    yield "cumulative, an id ahead", broker.frames()
    yield "backlog (3)", broker.subscription(topic, "msgBacklog", "unackedMessages")
