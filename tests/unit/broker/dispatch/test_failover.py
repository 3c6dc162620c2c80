"""Selection of the active consumer of a Failover subscription, and notification of the others."""

from bisect import bisect_left
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarbox.broker.dispatch.blocked_reason import Reason
from pulsarbox.broker.dispatch.failover import choose_active, rank
from pulsarbox.broker.dispatch.selectors.selector import key_hash
from pulsarbox.names import parse_topic
from pulsarbox.protocol.PulsarApi_pb2 import CommandSubscribe
from tests.unit.broker.playbook import TOPIC, Box, Client

FAILOVER = CommandSubscribe.Failover
PARTITIONED = "persistent://public/default/p"
PARTITION_0 = PARTITIONED + "-partition-0"


@dataclass(frozen=True)
class Someone:
    name: str
    priority_level: int = 0


def ranked(*consumers: Someone) -> list[Someone]:
    return sorted(consumers, key=rank)


def test_partitions_are_shared_out_among_the_first_priority_level() -> None:
    a, b, c = Someone("a", 1), Someone("b"), Someone("c")
    consumers = ranked(a, c, b)
    assert consumers == [b, c, a]
    assert [choose_active(consumers, topic=TOPIC, partition=i) for i in range(5)] == [b, c, b, c, b]
    assert choose_active([], topic=TOPIC, partition=0) is None


def test_names_are_compared_as_java_does() -> None:
    astral, private_use = Someone("\U0001f600"), Someone("\ue000")
    assert ranked(private_use, astral) == [astral, private_use]


@given(
    names=st.lists(st.text(max_size=4), min_size=1, max_size=5),
    topic=st.text(max_size=5),
    partition=st.integers(-1, 3),
)
def test_the_ring(names: list[str], topic: str, partition: int) -> None:
    """Compare with an explicit hash ring, built as in Pulsar."""
    consumers = ranked(*(Someone(name) for name in names), Someone("later", 1))
    ring = {key_hash(f"{each.name}{i}".encode()): each for each in consumers[:-1] for i in range(100)}
    points = sorted(ring)
    index = bisect_left(points, key_hash(topic.encode()))
    expected = ring[points[index if index < len(points) else 0]]
    assert choose_active(consumers, topic=topic, partition=-1) == expected
    assert choose_active(consumers, topic=topic, partition=partition, consistent_hashing=True) == expected


@pytest.mark.parametrize(
    ("topic", "active"),
    [("one", [0, 1, 1, 1, 1]), ("two", [0, 0, 0, 0, 0]), ("three", [0, 0, 0, 0, 0]), ("four", [0, 1, 2, 2, 2])],
)
def test_the_ring_of_a_broker(topic: str, active: list[int]) -> None:
    """Assignment as recorded from Pulsar 4.2.4 while consumers n0 to n4 join one by one."""
    name = f"persistent://public/default/differences-failover.the_ring-{topic}"
    consumers = [Someone(f"n{i}") for i in range(5)]
    chosen = [choose_active(consumers[: i + 1], topic=name, partition=-1) for i in range(5)]
    assert chosen == [consumers[i] for i in active]


def partitioned(**settings: Any) -> Box:
    """Build a box that contains PARTITION_0."""
    box = Box(**settings)
    box.broker.topics.create_partitioned(parse_topic(PARTITIONED), 1, box.now)
    return box


def join(box: Box, name: str, *, topic: str = PARTITION_0, version: int = 21, **fields: Any) -> Client:
    """Join with a consumer that has permits. On the default partition, the first consumer by name is active."""
    client = box.client(version=version)
    reply = client.subscribe(subType=FAILOVER, consumer_name=name, topic=topic, **fields)
    assert not hasattr(reply, "error"), reply
    client.flow(100)
    return client


def told(client: Client) -> list[bool]:
    """Consume the received frames, which must be notifications. Return whether each reports an active consumer."""
    return [client.take("active_consumer_change").is_active for _ in range(len(client.inbox))]


def test_the_first_is_served_and_told_after_the_delay() -> None:
    box = partitioned()
    sent = box.client().publish(2, PARTITION_0)
    one = join(box, "a")
    box.advance(0.9)
    assert one.inbox == [], "neither notice nor message"
    box.advance(0.2)
    assert one.take("active_consumer_change").is_active
    assert one.received() == sent


def test_who_comes_and_stays_behind_is_told_at_once_and_nobody_else() -> None:
    box = partitioned(activeConsumerFailoverDelayTimeMillis=0)
    one = join(box, "a")
    assert told(one) == [True]
    two = join(box, "b")
    assert (told(one), told(two)) == ([], [False])
    two.ask("close_consumer", consumer_id=1, request_id=7)
    box.advance(2)
    assert told(one) == []


def test_who_comes_and_goes_ahead_waits_while_the_other_gets_nothing_more() -> None:
    box = partitioned()
    one = join(box, "b", priority_level=1)
    box.advance(1)
    assert told(one) == [True]
    sent = box.client().publish(1, PARTITION_0)
    assert one.received() == sent
    two = join(box, "c")
    sent += box.client().publish(1, PARTITION_0)
    one.ask("redeliverUnacknowledgedMessages", consumer_id=1)
    two.ask("redeliverUnacknowledgedMessages", consumer_id=1)
    assert one.inbox == two.inbox == []
    three = join(box, "d")
    assert told(three) == [False], "it changes nothing"
    one.ack(sent[0])
    box.advance(1)
    assert told(one) == [False]
    assert told(three) == [False]
    assert two.take("active_consumer_change").is_active
    assert two.received() == sent[1:], "what the other has acknowledged meanwhile does not come again"


def test_all_are_told_when_the_active_one_goes() -> None:
    box = partitioned()
    one, two, three = (join(box, name) for name in "abc")
    box.advance(1)
    assert (told(one), told(two), told(three)) == ([True], [False, False], [False, False])
    sent = box.client().publish(2, PARTITION_0)
    assert one.received() == sent
    one.cnx.closed(box.now)
    box.advance(0.9)
    assert two.inbox == []
    box.advance(0.1)
    assert two.take("active_consumer_change").is_active
    assert two.received() == sent
    assert told(three) == [False]


def test_changes_within_the_delay_are_one() -> None:
    box = partitioned()
    one = join(box, "b")
    box.advance(0.5)
    two = join(box, "a")
    box.advance(0.5)
    assert (told(one), told(two)) == ([False], [True])
    two.cnx.closed(box.now)
    two = join(box, "a")
    box.advance(1)
    assert (told(one), told(two)) == ([False], [True]), "told again, although nothing has changed in between"


def test_all_gone_within_the_delay() -> None:
    box = partitioned()
    one = join(box, "a")
    one.cnx.closed(box.now)
    other = box.client()
    assert not hasattr(other.subscribe(topic=PARTITION_0), "error"), "of another type now"
    other.flow(10)
    sent = box.client().publish(2, PARTITION_0)
    assert other.received() == sent
    box.advance(2)
    assert other.received() == [], "the delay of the other type has no effect"


def test_old_clients_are_not_told() -> None:
    box = partitioned(activeConsumerFailoverDelayTimeMillis=0)
    old, new = join(box, "a", version=11), join(box, "b", version=12)
    assert (told(old), told(new)) == ([], [False])


@pytest.mark.parametrize("ring_everywhere", [False, True])
def test_topics_without_partitions_have_a_ring(ring_everywhere: bool) -> None:
    box = partitioned(activeConsumerFailoverDelayTimeMillis=0, activeConsumerFailoverConsistentHashing=ring_everywhere)
    names = [f"consumer-{i}" for i in range(4)]
    for topic in (TOPIC, PARTITION_0):
        clients = {name: join(box, name, topic=topic) for name in names}
        index = 0 if topic == PARTITION_0 else -1
        ring = ranked(*(Someone(name) for name in names))
        expected = choose_active(ring, topic=topic, partition=index, consistent_hashing=ring_everywhere)
        assert expected is not None
        active = [name for name, client in clients.items() if (told(client) or [False])[-1]]
        assert active == [expected.name]


def test_the_delay_is_the_reason_why_nothing_is_sent() -> None:
    box = partitioned()
    box.client().publish(2, PARTITION_0)
    join(box, "a")
    topic = box.broker.topics.find(parse_topic(PARTITION_0), box.now)
    [subscription] = topic.subscriptions.values()  # type: ignore[union-attr]
    assert subscription.blocked_reason().reason == Reason.TAKING_OVER
    box.advance(1.1)
    assert subscription.blocked_reason().reason == Reason.END_OF_LOG
