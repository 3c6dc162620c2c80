"""Non-persistent topics: recipients by subscription type, and dropped messages."""

from typing import Any

import pytest

from pulsarbox.broker.topic.non_persistent import NonPersistentTopic
from pulsarbox.names import parse_topic
from pulsarbox.protocol.PulsarApi_pb2 import AUTO_SPLIT, STICKY, CommandSubscribe, IntRange, KeySharedMeta
from tests.unit.broker.playbook import Box, Client

TOPIC = "non-persistent://public/default/t"
SHARED, FAILOVER, KEY_SHARED = CommandSubscribe.Shared, CommandSubscribe.Failover, CommandSubscribe.Key_Shared


def join(box: Box, kind: Any, name: str = "c", permits: int = 100, *, topic: str = TOPIC, **fields: Any) -> Client:
    client = box.client()
    reply = client.subscribe(topic=topic, subType=kind, consumer_name=name, **fields)
    assert not hasattr(reply, "error"), reply
    if kind == FAILOVER and client.inbox:
        assert not client.take("active_consumer_change").is_active, "who is chosen is not told"
    client.flow(permits)
    return client


def refused(box: Box, kind: Any, **fields: Any) -> tuple[int, str]:
    reply = box.client().subscribe(topic=TOPIC, subType=kind, consumer_name="refused", **fields)
    return reply.error, reply.message


class Sender:
    """A producer that reports the recipients of each message."""

    def __init__(self, box: Box, *clients: Client, topic: str = TOPIC) -> None:
        self.clients = clients
        self.client = box.client()
        self.client.producer(topic=topic)
        self.sent = 0

    def send(self, **metadata: Any) -> str:
        """Publish a message and return the letters of its recipients; the first client is a."""
        self.sent += 1
        self.client.send(self.sent, **metadata)
        self.client.take("send_receipt")
        got = ""
        for letter, client in zip("abcdef", self.clients, strict=False):
            for name in client.names():
                assert name == "message"
                got += letter
        return got

    def several(self, count: int) -> str:
        return " ".join(self.send() or "-" for _ in range(count))


def dropped(box: Box) -> int:
    topic = box.broker.topics.loaded(parse_topic(TOPIC))
    assert isinstance(topic, NonPersistentTopic)
    return topic.subscriptions["s"].dropped


def keys(mode: Any = AUTO_SPLIT, *ranges: tuple[int, int], ooo: bool = False) -> KeySharedMeta:
    found = [IntRange(start=start, end=end) for start, end in ranges]
    return KeySharedMeta(keySharedMode=mode, hashRanges=found, allowOutOfOrderDelivery=ooo)


def test_exclusive_takes_one() -> None:
    box = Box()
    one = join(box, CommandSubscribe.Exclusive, permits=2)
    assert refused(box, CommandSubscribe.Exclusive) == (5, "Exclusive consumer is already connected")
    assert one.names() == ["ping"], "it has to show that it is alive"
    assert Sender(box, one).several(3) == "a a -"
    assert dropped(box) == 1


def test_failover_has_the_first_by_priority_and_name() -> None:
    box = Box()
    b = join(box, FAILOVER, "b")
    a = join(box, FAILOVER, "a")
    top = join(box, FAILOVER, "z", priority_level=0)
    sender = Sender(box, a, b, top)
    assert sender.several(2) == "a a"
    a.cnx.closed(box.now)
    box.turn()
    assert sender.several(1) == "b", "at once"
    join(box, FAILOVER, "0", priority_level=1)
    assert sender.several(1) == "b"


def test_failover_tells_only_who_comes_and_is_not_chosen() -> None:
    """Recorded from Pulsar 4.2.4: the notification precedes SUCCESS, and no consumer is notified of becoming active."""
    box = Box()
    b, a, c = (box.client() for _ in range(3))
    for client, name in ((b, "b"), (a, "a"), (c, "c")):
        fields = {"topic": TOPIC, "subscription": "s", "subType": FAILOVER, "consumer_name": name}
        client.ask("subscribe", consumer_id=1, request_id=9, **fields)
    a.cnx.closed(box.now)
    box.advance(2)
    assert (b.names(), a.names(), c.names()) == (["success"], ["success"], ["active_consumer_change", "success"])


def test_failover_on_partitions_and_with_a_ring() -> None:
    box = Box()
    topic = TOPIC + "-partition-1"
    box.broker.topics.create_partitioned(parse_topic(TOPIC), 2, box.now)
    a, b = (join(box, FAILOVER, name, topic=topic) for name in "ab")
    assert Sender(box, a, b, topic=topic).several(2) == "b b"
    box = Box(activeConsumerFailoverConsistentHashing=True)
    clients = [join(box, FAILOVER, f"consumer-{i}") for i in range(4)]
    assert Sender(box, *clients).several(2) == "d d"


def test_failover_drops_what_the_active_one_has_no_room_for() -> None:
    box = Box()
    a, b = join(box, FAILOVER, "a", 1), join(box, FAILOVER, "b")
    assert Sender(box, a, b).several(2) == "a -"
    assert dropped(box) == 1


def test_shared_takes_turns_by_priority_level() -> None:
    """The example in Pulsar's own documentation of consumer selection."""
    box = Box()
    five = join(box, SHARED, permits=1, priority_level=1)
    others = [join(box, SHARED, permits=permits) for permits in (2, 1, 1)]
    four = join(box, SHARED, permits=2, priority_level=1)
    assert Sender(box, *others, five, four).several(8) == "a b c a d e e -"
    assert dropped(box) == 1


def test_shared_passes_over_who_has_no_room() -> None:
    box = Box()
    a, b, c = join(box, SHARED), join(box, SHARED, permits=0), join(box, SHARED)
    sender = Sender(box, a, b, c)
    assert sender.several(4) == "a c a c"
    c.cnx.closed(box.now)
    assert sender.several(2) == "a a"


def test_there_is_no_limit_of_unacknowledged_messages() -> None:
    box = Box(maxUnackedMessagesPerConsumer=1, maxUnackedMessagesPerSubscription=1)
    assert Sender(box, join(box, SHARED)).several(3) == "a a a"


def test_key_shared_goes_by_the_key_with_each_selector() -> None:
    for ring, expected in ((True, "a b"), (False, "b a")):
        box = Box(subscriptionKeySharedUseConsistentHashing=ring)
        a, b = join(box, KEY_SHARED, "alpha"), join(box, KEY_SHARED, "beta")
        sender = Sender(box, a, b)
        assert " ".join(sender.send(partition_key=key) for key in ("key2", "key3")) == expected


def test_key_shared_keys() -> None:
    """The ordering key precedes the partition key, and Base64 is decoded. Default: producer name and sequence ID."""
    box = Box()
    a = join(box, KEY_SHARED, keySharedMeta=keys(STICKY, (14772, 14772)))  # the slot of key2
    b = join(box, KEY_SHARED, keySharedMeta=keys(STICKY, (0, 14771), (14773, 65535)))
    sender = Sender(box, a, b)
    assert sender.send(partition_key="key2") == "a"
    assert sender.send(partition_key="key1") == "b"
    assert sender.send(partition_key="key1", ordering_key=b"key2") == "a"
    assert sender.send(partition_key="a2V5Mg==", partition_key_b64_encoded=True) == "a"
    assert sender.send(partition_key="a2V5Mg==") == "b"
    assert sender.send() == "b"


def test_key_shared_drops_what_the_owner_has_no_room_for_and_what_nobody_owns() -> None:
    box = Box()
    a = join(box, KEY_SHARED, permits=1, keySharedMeta=keys(STICKY, (14772, 14772)))
    b = join(box, KEY_SHARED, keySharedMeta=keys(STICKY, (14773, 65535)))
    sender = Sender(box, a, b)
    assert [sender.send(partition_key="key2") for _ in range(2)] == ["a", ""]
    assert sender.send(partition_key="key1") == ""
    assert dropped(box) == 2
    a.flow(1)
    assert sender.send(partition_key="key2") == "a"


def test_sticky_ranges_that_cannot_be_given() -> None:
    box = Box()
    empty = refused(box, KEY_SHARED, keySharedMeta=keys(STICKY))
    assert empty == (19, "Ranges for KeyShared policy must not be empty.")
    topic = box.broker.topics.loaded(parse_topic(TOPIC))
    assert isinstance(topic, NonPersistentTopic)
    assert topic.subscriptions == {}, "who is refused leaves nothing behind"
    one = join(box, KEY_SHARED, "holder", keySharedMeta=keys(STICKY, (0, 10)))
    assert refused(box, KEY_SHARED, keySharedMeta=keys(STICKY, (10, 20))) == (
        19,
        f"Range conflict with consumer Consumer{{subscription=NonPersistentSubscription{{topic={TOPIC}, name=s}}, "
        "consumerId=1, consumerName=holder, address=127.0.0.1:1}",
    )
    assert one.names() == ["ping"]
    one.cnx.closed(box.now)
    join(box, KEY_SHARED, keySharedMeta=keys(STICKY, (10, 20)))


DIFFERENT = "Subscription is of different type. "


@pytest.mark.parametrize(
    ("here", "wanted", "text"),
    [
        (
            (SHARED, keys()),
            (KEY_SHARED, keys()),
            "Active subscription type of 'Shared' is different than the connecting consumer's type 'Key_Shared'.",
        ),
        (
            (KEY_SHARED, keys()),
            (KEY_SHARED, keys(STICKY, (0, 1))),
            "Active subscription key_shared mode of 'AUTO_SPLIT' is different than the connecting consumer's key_shared"
            " mode 'STICKY'.",
        ),
        (
            (KEY_SHARED, keys(STICKY, (0, 1))),
            (KEY_SHARED, None),
            "Active subscription key_shared mode of 'STICKY' is different than the connecting consumer's key_shared"
            " mode 'AUTO_SPLIT'.",
        ),
        (
            (KEY_SHARED, keys(ooo=True)),
            (KEY_SHARED, None),
            "Active subscription allows out of order delivery while the connecting consumer does not allow it.",
        ),
        (
            (KEY_SHARED, keys()),
            (KEY_SHARED, keys(ooo=True)),
            "Active subscription does not allow out of order delivery while the connecting consumer allows it.",
        ),
    ],
)
def test_consumers_that_do_not_fit(here: Any, wanted: Any, text: str) -> None:
    box = Box()
    first = join(box, here[0], keySharedMeta=here[1])
    assert refused(box, wanted[0], keySharedMeta=wanted[1]) == (5, DIFFERENT + text)
    first.cnx.closed(box.now)
    join(box, wanted[0], keySharedMeta=wanted[1])


def test_without_terms_it_is_auto_split_in_order() -> None:
    box = Box()
    join(box, KEY_SHARED, "a")
    join(box, KEY_SHARED, "b", keySharedMeta=keys())
