"""Shared: distribution, priorities, limits, and acknowledgement of another consumer's messages."""

from functools import partial

from tests.differences.broker import Broker
from tests.differences.messages import Draft, at, batch, numbered
from tests.differences.scenario import Steps, scenario
from tests.differences.wire import Wire


def consumers(broker: Broker, topic: str, *permits: int) -> list[Wire]:
    """Subscribe one consumer per connection, in order of joining."""
    wires = []
    for number in range(len(permits)):
        wire = broker.wire("abcdefgh"[number])
        wire.subscribe(topic, 1, "Shared", name=f"n{number}")
        wires.append(wire)
    for wire, each in zip(wires, permits, strict=True):
        if each:
            wire.flow(each)
    return wires


def filled(broker: Broker, count: int, word: str = "t", persistent: bool = True) -> str:
    """Return a topic with a subscription and a backlog, without consumers."""
    topic = broker.topic(word, persistent=persistent)
    p = broker.wire("p")
    p.subscribe(topic, 1, "Shared")
    p.close_consumer()
    p.producer(topic)
    p.publish(numbered(count))
    broker.forget()
    p.close()
    return topic


def sizes(shares: dict[str, list[str]]) -> dict[str, int]:
    """Return the number of messages per consumer instead of the messages."""
    return {who: len(got) for who, got in shares.items()}


def runs(shares: dict[str, list[str]]) -> dict[str, str]:
    """Return payloads m0, m1, ... as ranges."""
    told = {}
    for who, got in shares.items():
        ranges: list[list[int]] = []
        for number in (int(payload[1:]) for payload in got):
            if ranges and number == ranges[-1][1] + 1:
                ranges[-1][1] = number
            else:
                ranges.append([number, number])
        told[who] = " ".join(f"{first}-{last}" for first, last in ranges)
    return told


@scenario
def one_by_one(broker: Broker) -> Steps:
    topic = broker.topic()
    p = broker.wire("p")
    p.producer(topic)
    consumers(broker, topic, 100, 100, 100)
    broker.forget()
    for number in range(9):
        p.publish([f"m{number}"])
        broker.settle()
    yield "nine messages, each alone", broker.shares(9)


@scenario
def shares_of_a_backlog(broker: Broker) -> Steps:
    for permits in ((10,), (100, 100), (10, 30), (1000, 1000, 1000), (5, 5, 5)):
        topic = filled(broker, 120, f"{len(permits)}x{permits[0]}")
        p = broker.wire("x")
        for number in range(len(permits)):
            p.subscribe(topic, number, "Shared", name=f"n{number}")
        for number, each in enumerate(permits):
            p.flow(each, number)
        shares = broker.shares(min(120, sum(permits)))
        yield f"120 entries, permits {permits}: in all", sum(map(len, shares.values()))
        p.close()


@scenario
def rounds_of_twenty(broker: Broker) -> Steps:
    topic = broker.topic()
    p = broker.wire("p")
    p.producer(topic)
    wires = consumers(broker, topic, 0, 0)
    # Backlog of ninety messages. The second consumer's permits arrive first and are too few to start a large read.
    p.publish(numbered(90))
    broker.forget()
    wires[0].flow(90)
    yield "one has ninety permits", sizes(broker.shares(90))
    wires[1].flow(200)
    wires[0].flow(200)
    broker.settle()
    wires[0].redeliver()
    yield "all come again, both have permits", runs(broker.shares(90))


@scenario
def priority_levels(broker: Broker) -> Steps:
    topic = broker.topic()
    p, a = broker.wire("p"), broker.wire("a")
    p.producer(topic)
    for number, level in enumerate((1, 0, 1, 2, None)):
        a.subscribe(topic, number, "Shared", name=f"n{number}", priority_level=level)
    broker.forget()
    for number, permits in enumerate((4, 3, 4, 10, 2)):
        a.flow(permits, number)
    broker.settle()
    for number in range(20):
        p.publish([f"m{number}"])
        broker.settle(0.05)
    yield "levels 1, 0, 1, 2, none with permits 4, 3, 4, 10, 2", broker.shares(20)
    a.flow(1, 1)
    broker.settle()
    p.publish(["n0", "n1"])
    yield "one permit for level 0, and two messages", broker.shares(2)


@scenario
def acknowledged_by_another(broker: Broker) -> Steps:
    topic = broker.topic()
    p = broker.wire("p")
    p.producer(topic)
    a, b = consumers(broker, topic, 10, 0)
    p.publish(numbered(5))
    broker.shares(5)
    fields = ("msgBacklog", "unackedMessages", "consumers.unackedMessages")
    yield "before", broker.subscription(topic, *fields)
    b.ack([a.ids["m1"]], receipt=True)
    yield "b acknowledges what a holds", broker.frames()
    yield "after", broker.subscription(topic, *fields)
    b.redeliver([a.ids["m2"]])
    yield "b asks for what a holds", broker.frames()
    b.flow(10)
    a.redeliver([a.ids["m1"], a.ids["m2"]])
    yield "a gives back both", broker.shares(1)
    b.ack([a.ids["m3"]], cumulative=True, receipt=True)
    yield "b acknowledges cumulatively", broker.frames()
    yield "after that", broker.subscription(topic, *fields)
    a.consumer_stats()
    b.consumer_stats()
    yield "CONSUMER_STATS", broker.frames()


@scenario
def permits_of_batches(broker: Broker) -> Steps:
    topic = broker.topic()
    p = broker.wire("p")
    p.producer(topic)
    (a,) = consumers(broker, topic, 5)
    p.publish([batch("a", "b", "c", "d"), batch("e", "f", "g", "h"), batch("i", "j")])
    yield "five permits, batches of 4, 4, 2", broker.shares()
    a.consumer_stats()
    yield "permits", broker.frames()
    a.flow(3)
    yield "three more", broker.shares()
    first = a.ids["[a b c d]"]
    a.ack([at(first, ack_set=[0b1100], batch_size=4)], receipt=True)
    yield "two of the first are acknowledged", broker.frames()
    a.consumer_stats()
    yield "unacked", broker.frames()
    a.redeliver([first])
    yield "the first comes again", broker.frames()
    a.flow(2)
    yield "two permits", broker.frames()
    a.consumer_stats()
    yield "permits after it", broker.frames()
    a.flow(1)
    yield "one more permit", broker.frames()


@scenario
def chunks(broker: Broker) -> Steps:
    topic = broker.topic()
    p = broker.wire("p")
    p.producer(topic)
    consumers(broker, topic, 100, 100)
    broker.forget()
    drafts = []
    for chunk in range(3):
        fields = {"chunk_id": chunk, "num_chunks_from_msg": 3, "total_chunk_msg_size": 6}
        drafts += [Draft(f"{uuid}{chunk}", metadata={"uuid": uuid, **fields}) for uuid in ("u", "v")]
        drafts.append(Draft(f"plain{chunk}"))
    for draft in drafts:
        p.publish([draft])
        broker.settle()
    # The distribution between two chunks depends on the timing of Pulsar's threads. Only the grouping of chunks is
    # guaranteed.
    shares = broker.shares(9)
    for word in ("u", "v"):
        yield f"chunks of {word}, by consumer", sorted(filter(None, map(partial(starting, word), shares.values())))
    yield "plain ones", sorted(payload for got in shares.values() for payload in starting("plain", got))


def starting(word: str, payloads: list[str]) -> list[str]:
    """Return the payloads with a prefix, in order of arrival."""
    return [payload for payload in payloads if payload.startswith(word)]


@scenario
def leaves_with_unacked(broker: Broker) -> Steps:
    topic = broker.topic()
    p = broker.wire("p")
    p.producer(topic)
    a, b = consumers(broker, topic, 10, 0)
    p.publish(numbered(6))
    broker.shares(6)
    a.ack([a.ids["m1"]])
    b.flow(10)
    broker.forget()
    a.redeliver([a.ids["m3"]])
    yield "m3 is given back", broker.frames()
    a.close()
    yield "the connection ends", broker.frames()
    yield (
        "stats",
        broker.subscription(topic, "msgBacklog", "unackedMessages", "msgInReplay", "consumers.availablePermits"),
    )


@scenario
def on_non_persistent(broker: Broker) -> Steps:
    topic = broker.topic(persistent=False)
    p = broker.wire("p")
    p.producer(topic)
    a, b = consumers(broker, topic, 3, 100)
    broker.forget()
    for number in range(10):
        p.publish([f"m{number}"])
        broker.settle()
    yield "permits 3 and 100", broker.shares(10)
    a.ack([b.ids["m1"]], receipt=True)
    yield "acknowledged", broker.frames()
    b.redeliver()
    yield "asked again", broker.frames()
    b.consumer_stats()
    yield "CONSUMER_STATS", broker.frames()
    yield "stats", broker.subscription(topic, "type", "msgBacklog", "msgDropRate", "consumers.unackedMessages")
