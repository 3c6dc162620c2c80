"""Producer access modes: admission, waiting and fencing."""

from typing import Final

from tests.differences.broker import NO_STATS, Broker
from tests.differences.scenario import Steps, scenario

MODES: Final = ("Shared", "Exclusive", "WaitForExclusive", "ExclusiveWithFencing")


def pairs(broker: Broker, persistent: bool) -> Steps:
    for first in MODES:
        for second in MODES:
            topic = broker.topic(f"{first}-{second}".lower(), persistent=persistent)
            a, b = broker.wire("a"), broker.wire("b")
            a.producer(topic, mode=first, name="one")
            b.producer(topic, mode=second, name="two")
            yield f"{first}, then {second}", broker.frames()
            a.publish(["x"])
            yield f"{first}, then {second}: the first sends", broker.frames()
            a.close_producer()
            yield f"{first}, then {second}: the first closes", broker.frames()
            a.close()
            b.close()


@scenario
def all_pairs(broker: Broker) -> Steps:
    yield from pairs(broker, persistent=True)


@scenario
def all_pairs_on_non_persistent(broker: Broker) -> Steps:
    yield from pairs(broker, persistent=False)


@scenario
def the_waiting_take_turns(broker: Broker) -> Steps:
    topic = broker.topic()
    wires = [broker.wire(label) for label in "abcd"]
    for number, wire in enumerate(wires):
        wire.producer(topic, mode="WaitForExclusive", name=f"n{3 - number}")
    yield "four of them", broker.frames()
    wires[0].close_producer()
    yield "the holder closes", broker.frames()
    wires[2].close_producer()
    yield "one closes while it waits", broker.frames()
    wires[1].close()
    yield "the next holder's connection ends", broker.frames()
    wires[3].publish(["x"])
    yield "the last of them sends", broker.frames()
    wires[3].close_producer()
    late = broker.wire("e")
    late.producer(topic, mode="Exclusive", name="late")
    yield "then an Exclusive one", broker.frames()


@scenario
def one_waits_and_is_fenced(broker: Broker) -> Steps:
    topic = broker.topic()
    a, b, c, d = (broker.wire(label) for label in "abcd")
    a.producer(topic, mode="Exclusive", name="holder")
    b.producer(topic, mode="WaitForExclusive", name="waiter-1")
    c.producer(topic, mode="WaitForExclusive", name="waiter-2")
    yield "a holder and two waiting", broker.frames()
    d.producer(topic, mode="ExclusiveWithFencing", name="fencer")
    yield "one that fences", broker.frames()
    d.publish(["x"])
    yield "it sends", broker.frames()
    a.producer(topic, 2, mode="Exclusive", name="holder", topic_epoch=0, epoch=1)
    yield "the holder comes back with its old epoch", broker.frames()
    b.producer(topic, 2, mode="WaitForExclusive", name="waiter-1", topic_epoch=0, epoch=1)
    yield "a waiting one comes back with the old epoch", broker.frames()
    b.producer(topic, 3, mode="WaitForExclusive", name="waiter-1")
    yield "a waiting one comes back without an epoch", broker.frames()
    a.producer(topic, 1, mode="Exclusive", name="holder", epoch=1)
    yield "the holder comes back under its id", broker.frames()
    c.publish(["x"])
    yield "a waiting one that was fenced sends", broker.frames()
    a.publish(["x"])
    yield "the holder that was fenced sends", broker.frames()
    d.close()
    yield "the one that fenced goes", broker.frames()


@scenario
def fencing_of_shared_ones(broker: Broker) -> Steps:
    topic = broker.topic()
    a, b, c = (broker.wire(label) for label in "abc")
    a.producer(topic, 1, name="s1")
    a.producer(topic, 2, name="s2")
    b.producer(topic, mode="WaitForExclusive", name="w")
    yield "two Shared, one waiting", broker.frames()
    c.producer(topic, mode="ExclusiveWithFencing", name="f")
    yield "one that fences", broker.frames()
    a.producer(topic, 1, name="s1", epoch=1)
    yield "a fenced Shared one comes back", broker.frames()
    a.close_producer(1)
    yield "a fenced one closes", broker.frames()
    a.publish(["x"], 2, wait=False)
    yield "a fenced one sends", broker.frames()


@scenario
def epochs_of_reconnects(broker: Broker) -> Steps:
    topic = broker.topic()
    a, b = broker.wire("a"), broker.wire("b")
    a.producer(topic, mode="Exclusive", name="one")
    yield "first", broker.frames()
    a.close()
    broker.settle()
    a = broker.wire("a")
    a.producer(topic, mode="Exclusive", name="one", topic_epoch=0, epoch=1)
    yield "back with epoch 0", broker.frames()
    a.close_producer()
    b.producer(topic, mode="Exclusive", name="two")
    yield "another without epoch", broker.frames()
    b.close_producer()
    a.producer(topic, 2, mode="Exclusive", name="one", topic_epoch=0, epoch=2)
    yield "the first with its old epoch", broker.frames()
    a.producer(topic, 3, mode="Exclusive", name="one", topic_epoch=7)
    yield "one with an epoch of the future", broker.frames()
    a.close_producer(3)
    a.producer(topic, 4, mode="Exclusive", name="one")
    yield "one without epoch", broker.frames()
    a.close_producer(4)
    a.producer(topic, 5, mode="ExclusiveWithFencing", name="one", topic_epoch=0)
    yield "one that fences with an old epoch", broker.frames()
    a.producer(topic, 6, mode="Shared", name="one", topic_epoch=0)
    yield "a Shared one with an old epoch", broker.frames()
    broker.admin("PUT", f"{topic.replace('://', '/')}/unload")
    b.producer(topic, 7, mode="ExclusiveWithFencing", name="after")
    yield "after an unload", broker.frames().get("b")


@scenario
def a_wait_is_over_when_all_shared_ones_went(broker: Broker) -> Steps:
    topic = broker.topic()
    a, b, c = (broker.wire(label) for label in "abc")
    a.producer(topic, 1, name="s1")
    a.producer(topic, 2, name="s2")
    b.producer(topic, mode="WaitForExclusive", name="w")
    yield "two Shared, one waiting", broker.frames()
    a.close_producer(1)
    yield "one Shared closes", broker.frames()
    c.producer(topic, 1, name="s3")
    yield "another Shared comes while one waits", broker.frames()
    c.producer(topic, 2, mode="Exclusive", name="e")
    yield "an Exclusive comes while one waits", broker.frames()
    a.close_producer(2)
    yield "the other Shared closes", broker.frames()
    c.close_producer(1)
    yield "the last Shared closes", broker.frames()


@scenario
def names_while_one_waits(broker: Broker) -> Steps:
    topic = broker.topic()
    a, b, c = (broker.wire(label) for label in "abc")
    a.producer(topic, mode="Exclusive", name="same")
    b.producer(topic, mode="WaitForExclusive", name="same")
    yield "a waiting one of the holder's name", broker.frames()
    b.producer(topic, 2, mode="WaitForExclusive", name="other")
    c.producer(topic, 1, mode="WaitForExclusive", name="other")
    yield "two waiting ones of one name", broker.frames()
    b.producer(topic, 2, mode="WaitForExclusive", name="other", epoch=1)
    yield "a waiting one asks again under its id", broker.frames()
    c.producer(topic, 2, mode="WaitForExclusive")
    yield "a waiting one without a name", broker.frames()
    a.producer(topic, mode="Exclusive", name="same", epoch=1)
    yield "the holder asks again with a higher epoch", broker.frames()
    a.producer(topic, 2, mode="Exclusive", name="same", epoch=2)
    yield "the holder asks again under another id", broker.frames()
    b.publish(["x"], 2, wait=False)
    yield "a waiting one sends", broker.frames()
    a.close()
    yield "the holder goes", broker.frames()
    c.close_producer()
    yield "and the next", broker.frames()


@scenario
def on_a_partition(broker: Broker) -> Steps:
    topic = broker.topic(partitions=2)
    a, b = broker.wire("a"), broker.wire("b")
    for number in range(2):
        a.producer(f"{topic}-partition-{number}", number, mode="Exclusive", name="one")
    yield "Exclusive on both partitions", broker.frames()
    b.producer(f"{topic}-partition-1", mode="WaitForExclusive", name="two")
    yield "one waits for partition 1", broker.frames()
    a.close_producer(0)
    yield "partition 0 is free", broker.frames()
    a.close_producer(1)
    yield "partition 1 is free", broker.frames()
    b.producer(topic, 2, mode="Exclusive", name="whole")
    yield "a producer of the whole topic", broker.frames()


@scenario
def topic_stats(broker: Broker) -> Steps:
    topic = broker.topic()
    a, b = broker.wire("a"), broker.wire("b")
    a.producer(topic, mode="Exclusive", name="one")
    b.producer(topic, mode="WaitForExclusive", name="two")
    broker.settle()
    stats = broker.stats(topic)
    if NO_STATS in stats:
        yield "producers", stats
        return
    yield (
        "producers",
        [
            {name: each.get(name, "absent") for name in ("producerName", "accessMode", "producerId")}
            for each in stats["publishers"]
        ],
    )
    yield "waitingPublishers, topicEpoch", [stats.get(name, "absent") for name in ("waitingPublishers", "topicEpoch")]
