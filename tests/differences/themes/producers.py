"""Producers: names, IDs and epochs on one or several connections; growing topics."""

from typing import Any

from pulsarbox.protocol import PulsarApi_pb2 as api
from tests.differences.broker import Broker, path_of
from tests.differences.messages import Draft, numbered
from tests.differences.scenario import Steps, scenario


@scenario
def names(broker: Broker) -> Steps:
    topic = broker.topic()
    a, b = broker.wire("a"), broker.wire("b")
    a.producer(topic, 1)
    a.producer(topic, 2, name="")
    yield "generated", broker.frames()
    a.producer(topic, 3, name="one")
    b.producer(topic, 3, name="one")
    yield "taken by another connection", broker.frames()
    a.producer(topic, 4, name="one")
    yield "taken by the same connection", broker.frames()
    other = broker.topic("other")
    b.producer(other, 5, name="one")
    yield "on another topic", broker.frames()
    a.close_producer(3)
    b.producer(topic, 3, name="one")
    yield "free again", broker.frames()
    b.close()
    broker.settle()
    a.producer(topic, 5, name="one")
    yield "its connection ended", broker.frames()


@scenario
def ids(broker: Broker) -> Steps:
    topic, other = broker.topic(), broker.topic("other")
    a = broker.wire("a")
    a.producer(topic, 1, name="one")
    a.producer(topic, 1, name="one")
    yield "the same again", broker.frames()
    a.producer(topic, 1, name="two")
    yield "another name", broker.frames()
    a.producer(other, 1, name="three")
    yield "another topic", broker.frames()
    a.producer(topic, 1, name="one", epoch=1)
    yield "a higher epoch", broker.frames()
    a.close_producer(9)
    yield "close of an unknown one", broker.frames()
    a.close_producer(1)
    a.close_producer(1)
    yield "closed twice", broker.frames()
    a.publish(["x"], 1)
    yield "a message right after the close", broker.frames()
    a.publish(["x"], 77)
    yield "a message of an unknown producer", broker.frames()


@scenario
def epochs(broker: Broker) -> Steps:
    topic = broker.topic()
    a, b = broker.wire("a"), broker.wire("b")
    a.producer(topic, 1, name="named", epoch=5)
    b.producer(topic, 1, name="named", epoch=6)
    yield "a named one, a higher epoch elsewhere", broker.frames()
    a.producer(topic, 2, name="named", epoch=6)
    yield "a higher epoch under another id", broker.frames()
    a.producer(topic, 1, name="named", epoch=4)
    yield "a lower epoch under its id", broker.frames()
    part = api.CommandProducer(
        topic=topic, producer_id=7, request_id=0, producer_name="generated", epoch=0, user_provided_producer_name=False
    )
    a.ask("PRODUCER", part, "7")
    yield "a name that the broker had generated", broker.frames()
    part.producer_id, part.epoch = 8, 1
    b.ask("PRODUCER", part, "8")
    yield "a higher epoch elsewhere", broker.frames()
    part.producer_id, part.epoch = 9, 1
    a.ask("PRODUCER", part, "9")
    yield "the same epoch elsewhere", broker.frames()
    part.producer_id, part.epoch = 10, 2
    a.ask("PRODUCER", part, "10")
    yield "a higher epoch on the connection", broker.frames()


@scenario
def sequences(broker: Broker) -> Steps:
    topic = broker.topic()
    a, b = broker.wire("a"), broker.wire("b")
    a.producer(topic, 1, name="one")
    a.start_at(10)
    a.publish(numbered(3))
    yield "10, 11, 12", broker.frames()
    a.start_at(11)
    a.publish(["again", "again", "new"])
    yield "11, 12, 13", broker.frames()
    a.start_at(5)
    a.publish(["old"])
    yield "5", broker.frames()
    a.close()
    broker.settle()
    b.producer(topic, 1, name="one")
    yield "the name comes back", broker.frames()
    b.producer(topic, 2, name="other")
    b.start_at(5, 2)
    b.publish(["other"], 2)
    yield "another name, 5", broker.frames()
    b.subscribe(topic)
    b.flow(100)
    yield "what is stored", broker.shares(6)


@scenario
def initial_subscriptions(broker: Broker) -> Steps:
    topic = broker.topic()
    a = broker.wire("a")
    a.producer(topic, 1, initial_subscription_name="first")
    yield "asked for", broker.frames()
    a.publish(numbered(2))
    yield "its backlog", broker.subscription(topic, "msgBacklog", "type", "isDurable", sub="first")
    a.producer(topic, 2, initial_subscription_name="late")
    yield "a second", broker.frames()
    yield "its backlog (2)", broker.subscription(topic, "msgBacklog", sub="late")
    a.producer(topic, 3, initial_subscription_name="")
    a.producer(broker.topic("light", persistent=False), 4, initial_subscription_name="first")
    yield "an empty name, a non-persistent topic", broker.frames()
    yield "subscriptions", broker.subscriptions(topic)


@scenario
def topics(broker: Broker) -> Steps:
    a = broker.wire("a")
    a.producer("persistent://public/nowhere/t", 1)
    yield "no such namespace", broker.frames()
    a.producer("persistent://nobody/default/t", 2)
    yield "no such tenant", broker.frames()
    a.producer("nothing://public/default/t", 3)
    yield "no such domain", broker.frames()
    grown = broker.topic("grown", partitions=2)
    a.producer(grown, 4)
    yield "a partitioned topic as a whole", broker.frames()
    a.subscribe(grown, 4)
    yield "subscribed to as a whole", broker.frames()
    a.producer(f"{grown}-partition-7", 5)
    yield "a partition that is not there", broker.frames()
    a.producer(f"{broker.topic('plain')}-partition-0", 6)
    yield "a partition of nothing", broker.frames()


@scenario
def lookups(broker: Broker) -> Steps:
    grown = broker.topic("grown", partitions=2)
    a = broker.wire("a")
    for what, name in {
        "a topic that is not there": f"{grown}-absent",
        "no such namespace": "persistent://public/nowhere/t",
        "no such tenant": "persistent://nobody/default/t",
        "no such domain": "nothing://public/default/t",
        "no name at all": "",
        "a partitioned topic": grown,
        "a partition": f"{grown}-partition-1",
        "a partition that is not there": f"{grown}-partition-7",
        "a partition of nothing": f"{grown}-plain-partition-0",
    }.items():
        a.partitions(name)
        a.look_up(name)
        yield what, broker.frames()


@scenario
def growth(broker: Broker) -> Steps:
    topic = broker.topic(partitions=1)
    client = broker.client()
    a = broker.wire("a")
    a.producer(f"{topic}-partition-0", 1, name="raw")
    a.subscribe(f"{topic}-partition-0", 1)
    consumer = client.subscribe(topic, "official")
    producer = client.create_producer(topic)
    producer.send(b"before")
    yield "before", consumer.receive(10_000).data().decode()
    broker.forget()
    yield "three partitions", broker.admin("POST", f"{path_of(topic)}/partitions", 3)
    a.partitions(topic)
    yield "metadata", broker.frames()
    a.producer(f"{topic}-partition-2", 2, name="raw")
    a.publish(["x"], 1)
    a.publish(["y"], 2)
    yield "old and new partition", broker.frames()
    producer.send(b"after")
    got = [consumer.receive(10_000).data().decode() for _ in range(2)]
    yield "the official client goes on", got
    yield "fewer partitions", broker.admin("POST", f"{path_of(topic)}/partitions", 2)[0]
    # Create the subscription on the new partitions as well: otherwise their messages are lost to it.
    yield "subscriptions of a new partition", broker.subscriptions(f"{topic}-partition-1")
    yield "deleted while in use", broker.admin("DELETE", f"{path_of(topic)}/partitions")[0]


@scenario
def refused_messages(broker: Broker) -> Steps:
    topic = broker.topic()
    a = broker.wire("a")
    a.producer(topic, 1, name="one", encrypted=True)
    yield "a producer that encrypts", broker.frames()
    a.publish([Draft("x" * 100, metadata={"deliver_at_time": 1})])
    yield "a time that has passed", broker.frames()
    broker.admin("POST", f"{path_of(topic)}/terminate")
    a.publish(["x"])
    yield "after the topic was terminated", broker.frames()
    a.producer(topic, 2)
    yield "a producer after that", broker.frames()
    a.subscribe(topic)
    a.flow(10)
    yield "a consumer after that", broker.frames()
    a.ack([a.ids["x" * 100]])
    yield "it has acknowledged everything", broker.frames()


@scenario
def access_modes_of_the_official_client(broker: Broker) -> Steps:
    import pulsar

    topic = broker.topic()
    one, two = broker.client(), broker.client(operation_timeout_seconds=3)
    modes = pulsar.ProducerAccessMode
    producers: dict[str, Any] = {}

    def created(client: Any, mode: str) -> str:
        try:
            producers[mode] = client.create_producer(topic, access_mode=getattr(modes, mode))
        except pulsar.PulsarException as error:
            return str(error)
        return "created"

    yield "Exclusive", created(one, "Exclusive")
    for mode in ("Shared", "Exclusive", "WaitForExclusive", "ExclusiveWithFencing"):
        yield f"Exclusive, then {mode}", created(two, mode)
    for mode, producer in producers.items():
        try:
            producer.send(b"x")
            seen = "sent"
        except pulsar.PulsarException as error:
            seen = str(error)
        yield f"{mode} sends", seen
