"""Acknowledgement of single messages of a batch, and redelivery."""

from tests.differences.broker import Broker
from tests.differences.messages import at, batch
from tests.differences.scenario import Steps, scenario

KINDS = ("Exclusive", "Failover", "Shared", "Key_Shared")
LETTERS = ("a", "b", "c", "d", "e")
WHOLE = "[a b c d e]"


@scenario
def indexes(broker: Broker) -> Steps:
    for kind in KINDS:
        topic = broker.topic(kind.lower())
        p, a = broker.wire("p"), broker.wire("a")
        p.producer(topic)
        a.subscribe(topic, 1, kind, name="a")
        a.flow(100)
        p.publish([batch(*LETTERS), "single"])
        a.until_messages(2)
        broker.settle()
        broker.forget()
        whole = a.ids[WHOLE]
        a.ack([at(whole, ack_set=[0b11110], batch_size=5)], receipt=True)
        a.ack([at(whole, ack_set=[0b10111], batch_size=5)], receipt=True)
        yield f"{kind}: the first and the fourth", broker.frames()
        fields = ("msgBacklog", "unackedMessages", "consumers.unackedMessages")
        yield f"{kind}: stats", broker.subscription(topic, *fields)
        a.redeliver()
        yield f"{kind}: again", broker.frames()
        a.ack([at(whole, ack_set=[0b10001], batch_size=5)], receipt=True)
        a.close_consumer()
        a.subscribe(topic, 2, kind, name="a")
        a.flow(100, 2)
        a.until_messages(2)
        yield f"{kind}: one left, after a close", broker.frames()
        a.ack([at(whole, ack_set=[0b01111], batch_size=5)], 2, receipt=True)
        yield f"{kind}: the last one", broker.subscription(topic, *fields)
        a.redeliver((), 2)
        yield f"{kind}: again (2)", broker.frames()
        a.close()
        p.close()


@scenario
def sets_that_do_not_fit(broker: Broker) -> Steps:
    topic = broker.topic()
    p, a = broker.wire("p"), broker.wire("a")
    p.producer(topic)
    a.subscribe(topic, 1, "Shared", name="a")
    a.flow(100)
    p.publish([batch(*LETTERS), "single", batch("x", "y")])
    a.until_messages(3)
    broker.forget()
    fields = ("msgBacklog", "unackedMessages")
    a.ack([at(a.ids["single"], ack_set=[0b1], batch_size=1)], receipt=True)
    yield "of a single message, a bit is left", broker.frames()
    yield "stats", broker.subscription(topic, *fields)
    a.ack([at(a.ids[WHOLE], ack_set=[0b11011], batch_size=5)], receipt=True)
    a.ack([at(a.ids[WHOLE], ack_set=[0b11011], batch_size=5)], receipt=True)
    yield "the same twice", broker.subscription(topic, *fields)
    a.ack([at(a.ids[WHOLE], ack_set=[-1], batch_size=5)], receipt=True)
    yield "all bits set", broker.subscription(topic, *fields)
    a.ack([at(a.ids[WHOLE], ack_set=[0b111], batch_size=3)], receipt=True)
    yield "a wrong size", broker.subscription(topic, *fields)
    a.ack([at(a.ids["[x y]"], batch_index=0, batch_size=2)], receipt=True)
    yield "a batch index without a set", broker.subscription(topic, *fields)
    a.ack([at(a.ids[WHOLE], ack_set=[0], batch_size=5)], receipt=True)
    yield "a set of zero", broker.subscription(topic, *fields)
    broker.forget()
    a.redeliver()
    yield "again", broker.frames()


@scenario
def cumulative_into_a_batch(broker: Broker) -> Steps:
    for kind in ("Exclusive", "Failover", "Shared"):
        topic = broker.topic(kind.lower())
        p, a = broker.wire("p"), broker.wire("a")
        p.producer(topic)
        a.subscribe(topic, 1, kind, name="a")
        a.flow(100)
        p.publish(["before", batch(*LETTERS), "after"])
        a.until_messages(3)
        broker.settle()
        broker.forget()
        a.ack([at(a.ids[WHOLE], ack_set=[0b11100], batch_size=5)], cumulative=True, receipt=True)
        yield f"{kind}: up to the second", broker.frames()
        yield f"{kind}: stats", broker.subscription(topic, "msgBacklog", "unackedMessages")
        a.redeliver()
        yield f"{kind}: again", broker.frames()
        a.ack([at(a.ids[WHOLE], ack_set=[0b11110], batch_size=5)], cumulative=True, receipt=True)
        a.redeliver()
        yield f"{kind}: up to the first, after that", broker.frames()
        a.ack([a.ids[WHOLE]], cumulative=True, receipt=True)
        a.redeliver()
        yield f"{kind}: the whole", broker.frames()
        a.close()
        p.close()


@scenario
def after_an_unload(broker: Broker) -> Steps:
    topic = broker.topic()
    p, a = broker.wire("p"), broker.wire("a")
    p.producer(topic)
    a.subscribe(topic, 1, "Shared", name="a")
    a.flow(100)
    p.publish([batch(*LETTERS), "single", "other"])
    a.until_messages(3)
    a.ack([at(a.ids[WHOLE], ack_set=[0b11001], batch_size=5)], receipt=True)
    a.ack([a.ids["single"]], receipt=True)
    broker.forget()
    yield "unload", broker.admin("PUT", f"{topic.replace('://', '/')}/unload")[0]
    yield "frames", broker.frames()
    b = broker.wire("b")
    b.subscribe(topic, 1, "Shared", name="b")
    b.flow(100)
    b.until_messages(2)
    yield "then", broker.frames()


@scenario
def of_the_official_client(broker: Broker) -> Steps:
    import pulsar

    topic = broker.topic()
    client = broker.client()
    consumer = client.subscribe(topic, "s", pulsar.ConsumerType.Shared, batch_index_ack_enabled=True)
    producer = client.create_producer(
        topic, batching_enabled=True, batching_max_messages=6, batching_max_publish_delay_ms=10_000
    )
    for number in range(6):
        producer.send_async(f"m{number}".encode(), lambda result, message_id: None)
    producer.flush()
    for number in range(6):
        message = consumer.receive(10_000)
        if number % 2:
            consumer.acknowledge(message)
    time_out = broker.until(lambda: broker.subscription(topic, "unackedMessages") == {"unackedMessages": 3}, seconds=5)
    yield "half of a batch is acknowledged", [time_out, broker.subscription(topic, "msgBacklog", "unackedMessages")]
    consumer.close()
    again = client.subscribe(topic, "s", pulsar.ConsumerType.Shared, batch_index_ack_enabled=True)
    yield "the others come again", [again.receive(10_000).data().decode() for _ in range(3)]
