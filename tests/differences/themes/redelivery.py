"""Redelivery and its counts, for all subscription types."""

from tests.differences.broker import Broker
from tests.differences.messages import numbered
from tests.differences.scenario import Steps, scenario

KINDS = ("Exclusive", "Failover", "Shared", "Key_Shared")


@scenario
def asked_for(broker: Broker) -> Steps:
    for kind in KINDS:
        topic = broker.topic(kind.lower())
        p, a = broker.wire(f"p-{kind}"), broker.wire("a")
        p.producer(topic)
        a.subscribe(topic, 1, kind, name="a")
        a.flow(100)
        p.publish(numbered(5))
        broker.shares(5)
        broker.forget()
        a.redeliver([a.ids["m3"], a.ids["m1"]])
        a.until_messages(2)
        yield f"{kind}: two ids", broker.frames()
        a.redeliver()
        yield f"{kind}: all", broker.frames()
        a.ack([a.ids["m1"]])
        a.redeliver([a.ids["m1"]])
        yield f"{kind}: one that was acknowledged", broker.frames()
        a.redeliver([a.ids["m2"]])
        a.redeliver([a.ids["m2"]])
        yield f"{kind}: one twice in a row", broker.frames()
        a.close()


@scenario
def disconnects(broker: Broker) -> Steps:
    for kind in KINDS:
        topic = broker.topic(kind.lower())
        p, a = broker.wire(f"p-{kind}"), broker.wire("a")
        p.producer(topic)
        a.subscribe(topic, 1, kind, name="a")
        a.flow(100)
        p.publish(numbered(3))
        broker.shares(3)
        a.redeliver()
        a.until_messages(3)
        broker.forget()
        a.close_consumer()
        a.subscribe(topic, 2, kind, name="a")
        a.flow(100, 2)
        a.until_messages(3)
        yield f"{kind}: closed and back", broker.frames()
        a.redeliver((), 2)
        broker.settle()
        a.close()
        broker.settle()
        b = broker.wire("b")
        b.subscribe(topic, 1, kind, name="a")
        b.flow(100)
        b.until_messages(3)
        yield f"{kind}: connection ended and back", broker.frames()
        b.close()


@scenario
def counts_beside_others(broker: Broker) -> Steps:
    for kind in ("Shared", "Key_Shared"):
        topic = broker.topic(kind.lower())
        p, a, b = broker.wire(f"p-{kind}"), broker.wire("a"), broker.wire("b")
        p.producer(topic)
        a.subscribe(topic, 1, kind, name="a")
        a.flow(100)
        broker.settle()
        p.publish(numbered(3))
        broker.shares(3)
        b.subscribe(topic, 1, kind, name="b")
        b.flow(100)
        broker.forget()
        a.redeliver([a.ids["m1"]])
        broker.forget()
        a.close_consumer()
        b.until_messages(2)
        yield f"{kind}: one was given back, then the consumer closes", broker.frames()
        a.close()
        b.close()


@scenario
def permits(broker: Broker) -> Steps:
    topic = broker.topic()
    p, a = broker.wire("p"), broker.wire("a")
    p.producer(topic)
    for kind in ("Exclusive", "Shared"):
        a.subscribe(topic, 1, kind, sub=kind)
        a.flow(4)
        p.publish(numbered(3))
        broker.shares(3)
        broker.forget()
        a.redeliver()
        yield f"{kind}: three held, one permit left, all asked for", broker.frames()
        a.consumer_stats()
        yield f"{kind}: stats", broker.frames()
        a.flow(10)
        yield f"{kind}: ten permits", broker.frames()
        a.close_consumer()
        broker.forget()


@scenario
def consumer_epochs(broker: Broker) -> Steps:
    for kind in KINDS:
        topic = broker.topic(kind.lower())
        p, a = broker.wire("p"), broker.wire("a")
        p.producer(topic)
        a.subscribe(topic, 1, kind, name="a", consumer_epoch=2)
        a.flow(100)
        p.publish(numbered(2))
        a.until_messages(2)
        broker.settle()
        p.take()
        yield f"{kind}: SUBSCRIBE with epoch 2", broker.frames()
        a.redeliver(epoch=3)
        yield f"{kind}: REDELIVER with epoch 3", broker.frames()
        a.redeliver(epoch=1)
        yield f"{kind}: REDELIVER with epoch 1", broker.frames()
        a.close()
        p.close()


@scenario
def dead_letters_of_the_official_client(broker: Broker) -> Steps:
    import pulsar

    topic = broker.topic()
    client = broker.client()
    producer = client.create_producer(topic)
    dead = f"{topic}-s-DLQ"
    consumer = client.subscribe(
        topic, "s", pulsar.ConsumerType.Shared, negative_ack_redelivery_delay_ms=100,
        dead_letter_policy=pulsar.ConsumerDeadLetterPolicy(2, dead, "first"),
    )  # fmt: skip
    producer.send(b"poison")
    counts = []
    for _ in range(3):
        message = consumer.receive(20_000)
        counts.append(message.redelivery_count())
        consumer.negative_acknowledge(message)
    yield "redelivery counts", counts
    letters = client.subscribe(dead, "second", initial_position=pulsar.InitialPosition.Earliest)
    yield "the dead letter", letters.receive(20_000).data().decode()
    yield "its initial subscription", broker.subscription(dead, "msgBacklog", sub="first")
    broker.until(lambda: broker.subscription(topic, "msgBacklog") == {"msgBacklog": 0})
    yield "backlog", broker.subscription(topic, "msgBacklog")
    client.close()
    broker.admin("DELETE", f"{dead.replace('://', '/')}?force=true")
