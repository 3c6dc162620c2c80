"""Key_Shared: assignment of keys to consumers, the key of a message, and blocked keys."""

import base64
from typing import Any, Final

from pulsarbox.protocol import PulsarApi_pb2 as api
from tests.differences.broker import Broker
from tests.differences.messages import Draft, batch, keyed, numbered
from tests.differences.scenario import Steps, scenario
from tests.differences.wire import Wire

KEYS: Final = [f"key{number}" for number in range(24)]


def auto(out_of_order: bool | None = None) -> Any:
    return api.KeySharedMeta(keySharedMode=api.AUTO_SPLIT, allowOutOfOrderDelivery=out_of_order)


def sticky(*ranges: tuple[int, int], out_of_order: bool | None = None) -> Any:
    meta = api.KeySharedMeta(keySharedMode=api.STICKY, allowOutOfOrderDelivery=out_of_order)
    for start, end in ranges:
        meta.hashRanges.add(start=start, end=end)
    return meta


def join(wire: Wire, topic: str, number: int = 1, permits: int = 1000, **fields: Any) -> None:
    fields.setdefault("keySharedMeta", auto())
    wire.subscribe(topic, number, "Key_Shared", **fields)
    if permits:
        wire.flow(permits, number)


def ack_all(wire: Wire, payloads: list[str], number: int = 1) -> None:
    wire.ack([wire.ids[each] for each in payloads], number)


@scenario
def keys_of_named_consumers(broker: Broker) -> Steps:
    topic = broker.topic()
    p = broker.wire("p")
    p.producer(topic, name="p")
    names = ["alpha", "beta", "gamma", "delta", "epsilon"]
    wires: list[Wire] = []
    for name in names:
        wires.append(broker.wire(name))
        join(wires[-1], topic, name=name)
        broker.settle()
        p.publish([keyed(key) for key in KEYS])
        shares = broker.shares(len(KEYS))
        for wire in wires:
            ack_all(wire, shares.get(f"{wire.label}1", []))
        yield f"{len(wires)} consumers, the last {name}", shares
    for wire in wires[:3]:
        wire.close_consumer()
        broker.settle()
        p.publish([keyed(key) for key in KEYS])
        shares = broker.shares(len(KEYS))
        for each in wires:
            ack_all(each, shares.get(f"{each.label}1", []))
        yield f"{wire.label} closes", shares


@scenario
def consumers_of_one_name(broker: Broker) -> Steps:
    topic = broker.topic()
    p, a = broker.wire("p"), broker.wire("a")
    p.producer(topic, name="p")
    for number in (1, 2, 3):
        join(a, topic, number, name="same")
    broker.forget()
    p.publish([keyed(key) for key in KEYS])
    yield "three consumers of one name", broker.shares(len(KEYS))
    yield "their ranges", broker.subscription(topic, "keySharedMode", "allowOutOfOrderDelivery")
    b = broker.wire("b")
    join(b, topic, 1, name="")
    yield "one without a name", broker.frames()


@scenario
def ranges_in_stats(broker: Broker) -> Steps:
    topic = broker.topic()
    a = broker.wire("a")
    for number, name in enumerate(("alpha", "beta", "gamma")):
        join(a, topic, number, name=name)
    broker.settle()
    told = broker.subscription(topic, "type", "consumers.keyHashRanges", "consumers.keyHashRangeArrays")
    yield (
        "ranges of three consumers",
        {
            name: {who: _short(ranges) for who, ranges in each.items()} if isinstance(each, dict) else each
            for name, each in told.items()
        },
    )


def _short(ranges: Any) -> Any:
    return [len(ranges), *ranges[:4]] if isinstance(ranges, list) else ranges


@scenario
def what_makes_a_key(broker: Broker) -> Steps:
    topic = broker.topic()
    p = broker.wire("p")
    p.producer(topic, name="p")
    # Sticky consumers: the receiving consumer reveals the key's hash.
    a = broker.wire("a")
    step = 65536 // 64
    for number in range(64):
        join(a, topic, number, keySharedMeta=sticky((number * step, (number + 1) * step - 1)))
    broker.forget()
    encoded = base64.b64encode(b"key1").decode()
    p.publish(
        [
            keyed("key1", "a partition key"),
            Draft("an ordering key", metadata={"ordering_key": b"key1"}),
            Draft("both", metadata={"ordering_key": b"key1", "partition_key": "key2"}),
            Draft("base64", metadata={"partition_key": encoded, "partition_key_b64_encoded": True}),
            Draft("base64, not said so", metadata={"partition_key": encoded}),
            Draft("empty key", metadata={"partition_key": ""}),
            Draft("empty ordering key", metadata={"ordering_key": b"", "partition_key": "key2"}),
            Draft("null key", metadata={"null_partition_key": True, "partition_key": "key2"}),
            Draft("no key 8"),
            Draft("no key 9"),
            Draft("no key 10"),
            batch("batch", "of", "11"),
            Draft(batch=("batch", "with", "key1"), metadata={"partition_key": "key1"}),
        ]
    )
    yield "by 64ths of the hash", broker.shares(13)


@scenario
def a_key_that_is_not_base64(broker: Broker) -> Steps:
    topic = broker.topic()
    p, a = broker.wire("p"), broker.wire("a")
    p.producer(topic, name="p")
    join(a, topic, name="alpha")
    join(a, topic, 2, name="beta")
    broker.forget()
    p.publish([Draft("wrong", metadata={"partition_key": "???", "partition_key_b64_encoded": True}), keyed("key1")])
    yield "two messages", broker.frames()


@scenario
def sticky_ranges(broker: Broker) -> Steps:
    topic = broker.topic()
    a, b, p = broker.wire("a"), broker.wire("b"), broker.wire("p")
    p.producer(topic, name="p")
    broker.forget()
    wrong: dict[str, Any] = {
        "no ranges": sticky(),
        "start behind end": sticky((10, 5)),
        "negative start": sticky((-1, 5)),
        "end 65536": sticky((0, 65536)),
        "far out": sticky((70000, 80000)),
        "overlap within": sticky((0, 10), (5, 20)),
        "touching within": sticky((0, 10), (10, 20)),
        "one value": sticky((7, 7)),
    }
    for number, (what, meta) in enumerate(wrong.items()):
        join(a, topic, number, 0, keySharedMeta=meta)
        yield what, broker.frames()
        a.close_consumer(number)
        broker.forget()
    join(a, topic, 100, keySharedMeta=sticky((0, 9999), (30000, 39999)))
    yield "two ranges", broker.frames()
    for what, meta in {
        "same": sticky((0, 9999), (30000, 39999)),
        "inside": sticky((100, 200)),
        "around": sticky((0, 65535)),
        "left edge": sticky((9999, 10000)),
        "right edge": sticky((20000, 30000)),
        "free": sticky((10000, 29999)),
    }.items():
        join(b, topic, 1, keySharedMeta=meta)
        yield f"another: {what}", broker.frames()
    p.publish([keyed(key) for key in KEYS])
    yield "keys of absent ranges wait", broker.shares()
    yield "backlog", broker.subscription(topic, "msgBacklog", "keySharedMode", "consumers.keyHashRanges")
    join(b, topic, 2, keySharedMeta=sticky((40000, 65535)))
    yield "the absent range comes", broker.shares()
    p.publish([keyed("after", "after")])
    yield "and one more", broker.shares(1)


@scenario
def policies_that_differ(broker: Broker) -> Steps:
    topic = broker.topic()
    a, b = broker.wire("a"), broker.wire("b")
    join(a, topic, keySharedMeta=auto())
    yield "AUTO_SPLIT first", broker.frames()
    join(b, topic, keySharedMeta=sticky((0, 65535)))
    yield "then STICKY", broker.frames()
    join(b, topic, keySharedMeta=auto(out_of_order=True))
    yield "then out of order", broker.frames()
    b.subscribe(topic, 2, "Key_Shared")
    yield "then without policy", broker.frames()
    b.subscribe(topic, 3, "Shared")
    yield "then Shared", broker.frames()
    a.close_consumer()
    b.close_consumer(2)
    broker.forget()
    join(b, topic, 4, keySharedMeta=sticky((0, 65535), out_of_order=True))
    yield "all gone, then STICKY out of order", broker.frames()
    join(a, topic, 2, keySharedMeta=sticky((0, 10)))
    yield "then STICKY in order", broker.frames()
    join(a, topic, 3, keySharedMeta=auto())
    yield "then AUTO_SPLIT", broker.frames()
    a.subscribe(topic, 4, "Key_Shared")
    yield "then without policy", broker.frames()
    b.close_consumer(4)
    broker.forget()
    a.subscribe(topic, 5, "Key_Shared")
    yield "without policy first", broker.frames()
    yield "stats", broker.subscription(topic, "keySharedMode", "allowOutOfOrderDelivery", "type")
    b.subscribe(topic, 5, "Key_Shared", sub="compacted", read_compacted=True, keySharedMeta=auto())
    yield "of the compacted view", broker.frames()


def drained(broker: Broker, out_of_order: bool | None) -> Steps:
    topic = broker.topic()
    p, a, b = broker.wire("p"), broker.wire("a"), broker.wire("b")
    meta = auto(out_of_order)
    p.producer(topic, name="p")
    join(a, topic, name="alpha", keySharedMeta=meta)
    broker.forget()
    p.publish([keyed(key, f"{key}-1") for key in KEYS[:8]])
    first = broker.shares(8)
    yield "alpha alone", first
    join(b, topic, name="beta", keySharedMeta=meta)
    broker.forget()
    p.publish([keyed(key, f"{key}-2") for key in KEYS[:8]])
    yield "beta joins, nothing is acknowledged", broker.shares(2)
    yield "draining", broker.subscription(
        topic, "drainingHashesCount", "drainingHashesClearedTotal", "drainingHashesUnackedMessages",
        "consumers.drainingHashesCount", "consumers.unackedMessages", "msgInReplay",
    )  # fmt: skip
    yield "draining hashes", broker.subscription(topic, "consumers.drainingHashes")
    for key in KEYS[:8]:
        ack_all(a, [f"{key}-1"])
        yield f"{key}-1 is acknowledged", broker.shares()
    yield "draining", broker.subscription(topic, "drainingHashesCount", "drainingHashesClearedTotal")


@scenario
def drains_in_order(broker: Broker) -> Steps:
    yield from drained(broker, None)


@scenario
def drains_out_of_order(broker: Broker) -> Steps:
    yield from drained(broker, out_of_order=True)


@scenario
def one_leaves_with_unacked(broker: Broker) -> Steps:
    topic = broker.topic()
    p, a, b = broker.wire("p"), broker.wire("a"), broker.wire("b")
    p.producer(topic, name="p")
    join(a, topic, name="alpha")
    join(b, topic, name="beta")
    broker.forget()
    p.publish([keyed(key, f"{key}-1") for key in KEYS[:8]])
    yield "both", broker.shares(8)
    p.publish([keyed(key, f"{key}-2") for key in KEYS[:8]])
    broker.shares(8)
    a.close_consumer()
    b.until_messages(4)
    yield "alpha closes", broker.frames()
    join(a, topic, 2, name="alpha")
    broker.forget()
    p.publish([keyed(key, f"{key}-3") for key in KEYS[:8]])
    yield "alpha is back, beta holds its keys", broker.shares()
    b.close()
    a.until_messages(20)
    yield "beta's connection ends", broker.frames()


@scenario
def negative_acknowledgements(broker: Broker) -> Steps:
    topic = broker.topic()
    p, a, b = broker.wire("p"), broker.wire("a"), broker.wire("b")
    p.producer(topic, name="p")
    join(a, topic, name="alpha")
    broker.forget()
    p.publish([keyed("key1", f"key1-{number}") for number in range(4)] + [keyed("key2", "key2-0")])
    broker.shares(5)
    a.redeliver([a.ids["key1-1"]])
    yield "one of them", broker.frames()
    a.redeliver([a.ids["key1-2"], a.ids["key1-0"]])
    yield "two of them", broker.frames()
    a.redeliver()
    yield "all", broker.frames()
    join(b, topic, name="beta")
    join(b, topic, 2, name="gamma")
    broker.forget()
    a.redeliver([a.ids["key1-0"]])
    yield "of a drained key, one", broker.frames()
    a.redeliver()
    yield "of a drained key, all", broker.frames()


@scenario
def a_slow_consumer_holds_its_keys_only(broker: Broker) -> Steps:
    topic = broker.topic()
    p, a, b = broker.wire("p"), broker.wire("a"), broker.wire("b")
    p.producer(topic, name="p")
    join(a, topic, 1, 2, name="alpha")
    join(b, topic, 1, 100, name="beta")
    broker.forget()
    p.publish([keyed(key, f"{key}-{number}") for number in range(2) for key in KEYS[:12]])
    yield "alpha has two permits", broker.shares(10)
    a.flow(3)
    yield "alpha gets three more", broker.shares(3)
    a.flow(100)
    yield "alpha gets a hundred more", broker.shares(9)


@scenario
def acknowledgements(broker: Broker) -> Steps:
    topic = broker.topic()
    p, a = broker.wire("p"), broker.wire("a")
    p.producer(topic, name="p")
    join(a, topic, name="alpha")
    broker.forget()
    p.publish(numbered(5))
    broker.shares(5)
    a.ack([a.ids["m3"]], cumulative=True, receipt=True)
    yield "cumulative", broker.frames()
    yield "backlog", broker.subscription(topic, "msgBacklog", "unackedMessages")
    a.ack([a.ids["m3"]], receipt=True)
    yield "individual", broker.frames()
    yield "backlog", broker.subscription(topic, "msgBacklog", "unackedMessages")


@scenario
def on_non_persistent(broker: Broker) -> Steps:
    topic = broker.topic(persistent=False)
    p, a, b = broker.wire("p"), broker.wire("a"), broker.wire("b")
    p.producer(topic, name="p")
    join(a, topic, name="alpha")
    join(b, topic, name="beta")
    yield "two consumers", broker.frames()
    p.publish([keyed(key) for key in KEYS])
    yield "keys", broker.shares(len(KEYS))
    c = broker.wire("c")
    join(c, topic, keySharedMeta=sticky((0, 65535)))
    yield "then STICKY", broker.frames()
    join(c, topic, sub="other", keySharedMeta=sticky())
    yield "STICKY without ranges", broker.frames()
    join(c, topic, 2, sub="other", keySharedMeta=sticky((10, 20)))
    join(c, topic, 3, sub="other", keySharedMeta=sticky((15, 30)))
    yield "STICKY that overlaps", broker.frames()
