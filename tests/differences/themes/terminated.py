"""Terminated topics: notifications, their timing, and rejected commands."""

from tests.differences.broker import Broker, path_of
from tests.differences.scenario import Steps, scenario, slow_scenario


@scenario
def producers(broker: Broker) -> Steps:
    topic = broker.topic()
    a, b = broker.wire("a"), broker.wire("b")
    a.producer(topic, 1, name="one")
    a.publish(["m0", "m1"])
    b.producer(topic, 1, name="waits", mode="WaitForExclusive")
    yield "two messages, another waits", broker.frames()
    yield "terminate", broker.admin("POST", f"{path_of(topic)}/terminate")[0]
    yield "who is told", broker.frames()
    a.publish(["m2"], wait=False)
    yield "a message of the closed producer", broker.frames()
    a.producer(topic, 2)
    yield "a new producer", broker.frames()
    a.producer(topic, 3, mode="Exclusive")
    yield "an exclusive one", broker.frames()
    a.producer(topic, 4, mode="WaitForExclusive")
    yield "one that waits", broker.frames()
    a.producer(topic, 5, mode="ExclusiveWithFencing")
    yield "one that fences", broker.frames()
    yield "terminate again", broker.admin("POST", f"{path_of(topic)}/terminate")[0]
    broker.admin("PUT", f"{path_of(topic)}/unload")
    a.producer(topic, 6)
    yield "after an unload", broker.frames()


def _ends(broker: Broker, kind: str) -> Steps:
    topic = broker.topic()
    a, b = broker.wire("a"), broker.wire("b")
    a.subscribe(topic, 1, kind)
    broker.settle(1.5 if kind == "Failover" else 0.0)  # its consumer becomes active after a second
    a.flow(2)
    b.producer(topic)
    b.publish(["m0", "m1", "m2"])
    yield "two of three are sent", broker.frames()
    broker.admin("POST", f"{path_of(topic)}/terminate")
    yield "terminated", broker.frames()
    a.flow(10)
    yield "the last one is sent", broker.frames()
    a.ack([a.ids["m0"], a.ids["m1"]])
    broker.settle()
    yield "two are acknowledged", broker.frames()
    a.ack([a.ids["m2"]])
    broker.settle()
    yield "all are acknowledged", broker.frames()
    a.flow(1)
    yield "permits", broker.frames()
    a.ack([a.ids["m2"]])
    broker.settle()
    yield "the last one again", broker.frames()
    if kind != "Exclusive":
        b.subscribe(topic, 2, kind)
        yield "another comes", broker.frames()
        b.flow(1, 2)
        yield "and has permits", broker.frames()
    a.close_consumer(1)
    a.subscribe(topic, 1, kind)
    yield "it comes back", broker.frames()
    a.flow(10)
    yield "and has permits too", broker.frames()
    a.subscribe(topic, 5, kind, sub="later")
    a.flow(10, 5)
    yield "a new subscription", broker.frames()
    a.ack([a.ids["m0"], a.ids["m1"], a.ids["m2"]], 5)
    broker.settle()
    yield "acknowledges all", broker.frames()
    a.seek(5, to=a.ids["m2"])
    yield "a seek", broker.frames()


@scenario
def exclusive(broker: Broker) -> Steps:
    yield from _ends(broker, "Exclusive")


@slow_scenario
def failover(broker: Broker) -> Steps:
    yield from _ends(broker, "Failover")


@scenario
def shared(broker: Broker) -> Steps:
    yield from _ends(broker, "Shared")


@scenario
def key_shared(broker: Broker) -> Steps:
    yield from _ends(broker, "Key_Shared")


@scenario
def caught_up(broker: Broker) -> Steps:
    topic = broker.topic()
    a = broker.wire("a")
    a.subscribe(topic, 1)
    a.flow(10)
    a.producer(topic, 1)
    a.publish(["m0"])
    a.ack([a.ids["m0"]])
    broker.settle()
    a.subscribe(topic, 2, sub="no permits")
    a.subscribe(topic, 3, sub="unacked", kind="Shared")
    a.flow(10, 3)
    yield "all is acknowledged, no permits, unacknowledged", broker.frames()
    broker.admin("POST", f"{path_of(topic)}/terminate")
    yield "terminated", broker.frames()
    broker.admin("POST", f"{path_of(topic)}/subscription/unacked/skip_all")
    yield "skipped", broker.frames()
    broker.admin("POST", f"{path_of(topic)}/terminate")
    yield "terminated again", broker.frames()


@scenario
def an_empty_one(broker: Broker) -> Steps:
    topic = broker.topic()
    a = broker.wire("a")
    a.subscribe(topic, 1)
    broker.admin("POST", f"{path_of(topic)}/terminate")
    yield "terminated", broker.frames()
    a.flow(10)
    yield "permits", broker.frames()
    a.subscribe(topic, 2, sub="reader", durable=False)
    a.flow(10, 2)
    yield "a reader", broker.frames()
    a.last_message_id(1)
    yield "the last message", broker.frames()
