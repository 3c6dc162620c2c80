"""Start positions: durable and non-durable subscriptions, initial positions, readers, seeks."""

import time

from pulsarbox.protocol import PulsarApi_pb2 as api
from tests.differences.broker import Broker
from tests.differences.messages import EARLIEST, LATEST, at, batch, numbered
from tests.differences.scenario import Steps, scenario
from tests.differences.wire import Wire

INITIAL = api.CommandSubscribe


def written(broker: Broker, word: str = "t", persistent: bool = True) -> tuple[str, Wire]:
    """Return a topic with m0 to m4, a batch, and m5, and the connection that holds their message IDs."""
    topic = broker.topic(word, persistent=persistent)
    p = broker.wire("p")
    p.producer(topic)
    p.publish([*numbered(5), batch("b0", "b1", "b2"), "m5"])
    broker.forget()
    return topic, p


@scenario
def durable_and_not_of_one_name(broker: Broker) -> Steps:
    topic = broker.topic()
    a, b = broker.wire("a"), broker.wire("b")
    a.subscribe(topic, 1, "Shared", sub="d")
    b.subscribe(topic, 1, "Shared", sub="d", durable=False)
    yield "durable, then not", broker.frames()
    a.close_consumer()
    b.subscribe(topic, 2, "Shared", sub="d", durable=False)
    yield "durable without consumers, then not", broker.frames()
    a.subscribe(topic, 3, "Shared", sub="n", durable=False, start_message_id=EARLIEST)
    b.subscribe(topic, 3, "Shared", sub="n")
    yield "not durable, then durable", broker.frames()
    b.subscribe(topic, 4, "Shared", sub="n", durable=False, start_message_id=LATEST)
    yield "not durable, then a second", broker.frames()
    a.close_consumer(3)
    yield "the first of two closes", broker.subscription(topic, "isDurable", sub="n")
    b.close_consumer(4)
    broker.settle()
    yield "both closed", broker.subscription(topic, "isDurable", sub="n")
    b.subscribe(topic, 5, "Shared", sub="n")
    yield "then durable", broker.frames()
    a.subscribe(topic, 6, "Exclusive", sub="r", durable=False, start_message_id=EARLIEST)
    a.unsubscribe(6)
    yield "one that is not durable unsubscribes", broker.frames()


@scenario
def readers(broker: Broker) -> Steps:
    topic, p = written(broker)
    a = broker.wire("a")
    starts = {
        "earliest": EARLIEST,
        "latest": LATEST,
        "m2": p.ids["m2"],
        "the last": p.ids["m5"],
        "in the batch, index 1": at(p.ids["[b0 b1 b2]"], batch_index=1, batch_size=3),
        "the batch, index -1": p.ids["[b0 b1 b2]"],
        "behind the end": at(p.ids["m5"], entryId=100),
        "no such ledger": at(p.ids["m5"], ledgerId=1 << 40),
        "ledger 0": at(p.ids["m5"], ledgerId=0, entryId=0),
    }
    # A reader whose start message does not exist starts at the initial position.
    for name, position in (("Latest", INITIAL.Latest), ("Earliest", INITIAL.Earliest)):
        for number, (what, start) in enumerate(starts.items()):
            sub = f"{name}{number}"
            a.subscribe(topic, number, sub=sub, durable=False, start_message_id=start, initialPosition=position)
            a.flow(100, number)
            yield f"from {what}, else {name}", broker.frames()
            a.close_consumer(number)
            broker.forget()
    a.subscribe(topic, 50, sub="r50", durable=False)
    a.flow(100, 50)
    yield "without a start, Earliest", broker.frames()
    a.subscribe(topic, 51, sub="r51", durable=False, initialPosition=INITIAL.Latest)
    a.flow(100, 51)
    yield "without a start, Latest", broker.frames()
    p.publish(["new"])
    yield "one more", broker.shares(2)


@scenario
def initial_positions(broker: Broker) -> Steps:
    topic, p = written(broker)
    a = broker.wire("a")
    a.subscribe(topic, 1, sub="latest", initialPosition=INITIAL.Latest)
    a.subscribe(topic, 2, sub="earliest")
    a.subscribe(topic, 3, sub="with-id", start_message_id=p.ids["m2"])
    a.subscribe(topic, 4, sub="with-id-latest", start_message_id=p.ids["m2"], initialPosition=INITIAL.Latest)
    a.subscribe(topic, 5, sub="rollback", start_message_rollback_duration_sec=3600, initialPosition=INITIAL.Latest)
    for number in range(1, 6):
        a.flow(100, number)
    broker.settle()
    yield "new subscriptions", broker.shares()
    for number in (1, 2):
        a.close_consumer(number)
    a.subscribe(topic, 11, sub="latest")
    a.subscribe(topic, 12, sub="earliest", initialPosition=INITIAL.Latest)
    a.flow(100, 11)
    a.flow(100, 12)
    yield "the position counts at creation only", broker.shares()


@scenario
def rollbacks(broker: Broker) -> Steps:
    topic, _ = written(broker)
    a, b = broker.wire("a"), broker.wire("b")
    for kind in ("Exclusive", "Shared"):
        a.subscribe(topic, 1, kind, sub=kind, initialPosition=INITIAL.Latest)
        yield f"{kind}: without", broker.frames()
        b.subscribe(topic, 2, kind, sub=kind, start_message_rollback_duration_sec=3600)
        b.flow(100, 2)
        yield f"{kind}: with, while another is there", broker.frames()
        a.close_consumer()
        b.close_consumer(2)
        b.subscribe(topic, 3, kind, sub=kind, start_message_rollback_duration_sec=3600)
        b.flow(100, 3)
        yield f"{kind}: with, alone", broker.frames()
        b.ack([b.ids["m3"]])
        b.close_consumer(3)
        b.subscribe(topic, 4, kind, sub=kind, start_message_rollback_duration_sec=3600)
        b.flow(100, 4)
        yield f"{kind}: with, after an acknowledgement", broker.frames()
        b.close_consumer(4)
        broker.forget()
    a.subscribe(topic, 5, sub="r", durable=False, start_message_id=LATEST, start_message_rollback_duration_sec=3600)
    a.flow(100, 5)
    yield "a reader", broker.frames()


@scenario
def seeks(broker: Broker) -> Steps:
    topic, p = written(broker)
    a = broker.wire("a")
    whole = p.ids["[b0 b1 b2]"]
    targets = {
        "m2": p.ids["m2"],
        "earliest": EARLIEST,
        "latest": LATEST,
        "the batch": whole,
        "the batch, index 1": at(whole, batch_index=1, batch_size=3),
        "the batch, ack_set 110": at(whole, ack_set=[0b110], batch_size=3),
        "the batch, ack_set 100": at(whole, ack_set=[0b100], batch_size=3),
        "the last": p.ids["m5"],
        "behind the end": at(p.ids["m5"], entryId=100),
        "no such ledger": at(p.ids["m5"], ledgerId=1 << 40),
        "ledger 0, a trimmed id": at(p.ids["m5"], ledgerId=0, entryId=3),
    }
    for number, (what, target) in enumerate(targets.items()):
        a.subscribe(topic, number)
        a.seek(number, target)
        yield f"to {what}", broker.frames()
        a.subscribe(topic, number)
        a.flow(100, number)
        yield f"to {what}: then", broker.frames()
        yield f"to {what}: backlog", broker.subscription(topic, "msgBacklog")
        a.close_consumer(number)
        broker.forget()


@scenario
def seeks_by_time(broker: Broker) -> Steps:
    topic = broker.topic()
    p, a = broker.wire("p"), broker.wire("a")
    p.producer(topic)
    p.publish(numbered(2))
    time.sleep(0.05)
    middle = time.time_ns() // 1_000_000
    time.sleep(0.05)
    p.publish(numbered(2, 2))
    broker.forget()
    for number, (what, when) in enumerate({"the middle": middle, "1": 1, "tomorrow": middle + 86_400_000}.items()):
        a.subscribe(topic, number)
        a.seek(number, time_ms=when)
        a.subscribe(topic, number)
        a.flow(100, number)
        yield f"to {what}", broker.frames()
        a.close_consumer(number)
        broker.forget()
    a.subscribe(topic, 9)
    a.ask("SEEK", api.CommandSeek(consumer_id=9, request_id=0), "9")
    yield "to nowhere", broker.frames()
    a.seek(9, EARLIEST, middle)
    yield "to both", broker.frames()


@scenario
def seeks_of_several(broker: Broker) -> Steps:
    topic, p = written(broker)
    a, b = broker.wire("a"), broker.wire("b")
    for kind in ("Shared", "Failover", "Key_Shared"):
        a.subscribe(topic, 1, kind, sub=kind, name="a")
        b.subscribe(topic, 1, kind, sub=kind, name="b")
        yield f"{kind}: two join", broker.frames(1.5)
        a.seek(1, p.ids["m3"])
        yield f"{kind}: one of two seeks", broker.frames()
        b.flow(100)
        broker.settle(1.5)
        yield f"{kind}: the other asks for messages", broker.frames()
        b.subscribe(topic, 2, kind, sub=kind, name="b")
        b.flow(100, 2)
        yield f"{kind}: the other comes back", broker.frames(1.5)
        b.close_consumer()
        b.close_consumer(2)
        broker.forget()
    a.subscribe(topic, 5, sub="twice")
    broker.forget()
    a.seek(5, EARLIEST, wait=False)
    a.seek(5, LATEST, wait=False)
    a.last_message_id(5)
    yield "two seeks at once", [frame.partition(":")[2] for frame in broker.frames().get("a", [])]


@scenario
def seeks_of_readers(broker: Broker) -> Steps:
    topic, p = written(broker)
    a = broker.wire("a")
    a.subscribe(topic, 1, sub="r", durable=False, start_message_id=LATEST)
    a.flow(100)
    a.seek(1, p.ids["m3"])
    yield "a reader seeks", broker.frames()
    a.subscribe(topic, 1, sub="r", durable=False, start_message_id=p.ids["m3"])
    a.flow(100)
    yield "and comes back", broker.frames()


@scenario
def last_message_ids(broker: Broker) -> Steps:
    topic = broker.topic()
    p, a = broker.wire("p"), broker.wire("a")
    a.subscribe(topic)
    a.last_message_id()
    yield "empty topic", broker.frames()
    p.producer(topic)
    p.publish(numbered(2))
    a.last_message_id()
    yield "two messages", broker.frames()
    p.publish([batch("b0", "b1", "b2")])
    a.last_message_id()
    yield "a batch", broker.frames()
    a.flow(10)
    broker.shares(3)
    a.ack([a.ids["m1"]], cumulative=True)
    broker.settle()
    a.last_message_id()
    yield "two are acknowledged", broker.frames()
    a.ack([a.ids["[b0 b1 b2]"]])
    broker.settle()
    a.last_message_id()
    yield "all are", broker.frames()
    part = broker.topic("parts", partitions=2)
    p.producer(f"{part}-partition-1", 2)
    p.publish(["x"], 2)
    a.subscribe(f"{part}-partition-1", 2)
    a.last_message_id(2)
    yield "a partition", broker.frames()
    light = broker.topic("light", persistent=False)
    a.subscribe(light, 3)
    a.last_message_id(3)
    yield "a non-persistent topic", broker.frames()


@scenario
def readers_of_the_official_client(broker: Broker) -> Steps:
    import pulsar

    topic = broker.topic()
    client = broker.client()
    producer = client.create_producer(topic)
    ids = [producer.send(f"m{number}".encode()) for number in range(4)]
    for what, start, inclusive in (
        ("earliest", pulsar.MessageId.earliest, False),
        ("latest", pulsar.MessageId.latest, False),
        ("latest, inclusive", pulsar.MessageId.latest, True),
        ("m1", ids[1], False),
        ("m1, inclusive", ids[1], True),
    ):
        reader = client.create_reader(topic, start, start_message_id_inclusive=inclusive)
        got = []
        while reader.has_message_available():
            got.append(reader.read_next(5000).data().decode())
        yield what, got
        reader.seek(ids[2])
        got = []
        while reader.has_message_available():
            got.append(reader.read_next(5000).data().decode())
        yield f"{what}: then a seek to m2", got
        reader.close()
