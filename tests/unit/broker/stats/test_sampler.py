"""Sampling of topics and subscriptions: rates, backlogs, loaded and unloaded topics."""

import pytest

from pulsarbox.broker.stats import sampler as module
from pulsarbox.broker.stats import unloaded_topic_stats
from pulsarbox.broker.stats.topic_samples import SubscriptionSample, TopicSample
from pulsarbox.broker.topic.topic import PersistentTopic
from pulsarbox.names import OFFLOADED_PROPERTY, parse_topic
from tests.unit.broker.playbook import TOPIC, Box, Client
from tests.unit.broker.replay.playbook import pairs


def look(box: Box) -> None:
    """Sample all topics that are due."""
    while not box.broker.samples.step(box.now, 1):
        pass
    while not box.broker.samples.stored.step(1):
        pass


def topic_of(box: Box, name: str = TOPIC) -> TopicSample:
    """Return the sample of a topic, loaded or unloaded."""
    found = [each for each in box.broker.samples.every() if each.name == name]
    assert len(found) == 1
    return found[0]


def subscription_of(box: Box, name: str = "s") -> SubscriptionSample:
    """Return the sample of a subscription of TOPIC."""
    return topic_of(box).subscriptions[name]


def a_second(box: Box) -> None:
    """Advance by one second."""
    box.advance(1.0)
    look(box)


def publishing(box: Box, client: Client) -> None:
    """Create a producer, and a subscription without consumers."""
    client.subscribe()
    client.producer()
    look(box)


def test_the_backlog_grows_as_fast_as_is_published() -> None:
    box = Box()
    client = box.client()
    publishing(box, client)
    for i in range(8):
        for j in range(10):
            client.send(10 * i + j)
        a_second(box)
    found = subscription_of(box)
    assert (found.backlog, found.in_rate, found.out_rate, found.change) == (80, 10.0, 0.0, 10.0)
    assert found.drain is None
    assert found.trend[-1] > found.trend[-2] > 0
    totals = box.broker.samples.totals
    assert (totals.publish_rate, totals.deliver_rate, totals.backlog) == (10.0, 0.0, 80)
    assert (totals.topics, totals.subscriptions) == (1, 1)
    assert (topic_of(box).producers, topic_of(box).consumers, found.consumers) == (1, 1, 1)


def test_what_nobody_subscribes_to_counts_as_well() -> None:
    box = Box()
    client = box.client()
    client.producer()
    look(box)
    for i in range(6):
        client.send(i)
        a_second(box)
    totals = box.broker.samples.totals
    assert (topic_of(box).in_rate, totals.publish_rate) == (1.0, 1.0)
    assert totals.size == topic_of(box).size > 0
    for _ in range(6):
        a_second(box)
    assert totals.publish_rate == 0.0


def test_a_backlog_that_is_sent_and_acknowledged_drains() -> None:
    box = Box()
    client = box.client()
    publishing(box, client)
    ids = client.publish(100)
    look(box)
    for i in range(8):
        client.flow(5)
        client.ack(*ids[5 * i : 5 * i + 5])
        a_second(box)
    found = subscription_of(box)
    assert (found.backlog, found.out_rate, found.change) == (60, 5.0, -5.0)
    assert found.drain == 12.0
    assert found.unacked == 0
    assert box.broker.samples.totals.deliver_bytes > 0


def test_many_are_looked_at_some_at_a_time_and_less_often() -> None:
    box = Box()
    client = box.client()
    for i in range(30):
        client.subscribe(topic=f"{TOPIC}{i}", consumer_id=i)
    samples = box.broker.samples
    steps = 0
    while not samples.step(box.now, 10):
        steps += 1
    assert (steps, samples.passes, len(samples.topics)) == (3, 1, 30)
    assert samples.step(box.now, 10), "it is not time to look again"
    box.advance(module.PERIOD_SECONDS)
    assert not samples.step(box.now, 10)


def test_who_asks_is_told_of_what_was_made_just_now() -> None:
    box = Box()
    client = box.client()
    client.subscribe()
    look(box)
    box.advance(module.FRESH_SECONDS)
    client.subscribe(topic=f"{TOPIC}-new", consumer_id=2)
    samples = box.broker.samples
    assert samples.step(box.now, 10) and samples.passes == 1, "nobody asks"
    samples.watch(box.now)
    look(box)
    assert (samples.passes, len(samples.topics)) == (2, 2)
    samples.watch(box.now)
    assert samples.step(box.now, 10) and samples.passes == 2, "that was just now"
    samples.totals.subscriptions = module.FEW
    box.advance(module.FRESH_SECONDS)
    assert samples.step(box.now, 10) and samples.passes == 2, "there are many"


@pytest.mark.parametrize(("watched", "a_second"), [(True, module.WATCHED_A_SECOND), (False, module.UNWATCHED_A_SECOND)])
def test_no_more_is_looked_at_a_second_however_many_there_are(watched: bool, a_second: int) -> None:
    box = Box()
    samples = box.broker.samples
    if watched:
        samples.watch(box.now)
    samples.totals.subscriptions = 50_000
    assert samples.period(box.now) == 50_000 / a_second


def test_topics_that_are_not_in_memory_are_known_once_somebody_watches() -> None:
    box = Box(brokerUnloadIdleTopicsAfterSeconds=10)
    client = box.client()
    client.subscribe()
    client.publish(7)
    client.cnx.closed(box.now)
    box = box.restart()
    look(box)
    assert not list(box.broker.samples.every()), "nobody has asked"
    box.broker.samples.watch(box.now)
    look(box)
    found = topic_of(box)
    assert found.topic is None
    assert (found.backlog, found.subscriptions["s"].backlog, found.size > 0) == (7, 7, True)
    assert box.broker.topics.loaded(parse_topic(TOPIC)) is None, "it was not brought into memory"
    assert box.broker.samples.stored.complete


def backlogs(box: Box, seconds: int) -> list[float | None]:
    """Return the points of the graph after several more seconds."""
    for _ in range(seconds):
        box.broker.samples.tick(box.now)
        while not box.broker.samples.step(box.now, 100):
            pass
        box.advance(1.0)
    return box.broker.samples.series.values()["backlog"][-seconds:]


def test_a_backlog_that_nobody_watches_stays_in_the_graphs_and_in_the_history() -> None:
    box = Box(brokerUnloadIdleTopicsAfterSeconds=10)
    client = box.client()
    client.subscribe()
    client.publish(7)
    assert backlogs(box, 3)[-1] == 7
    client.cnx.closed(box.now)
    assert set(backlogs(box, 20)) == {7}
    assert box.broker.topics.loaded(parse_topic(TOPIC)) is None
    box = box.restart()
    assert backlogs(box, 700)[1:] == [7] * 599
    assert topic_of(box).backlog == 7


def test_of_very_many_topics_graphs_have_gaps_where_nobody_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unloaded_topic_stats, "KEPT_ALWAYS", 3)
    box = Box()
    box.broker.topics.create_partitioned(parse_topic(TOPIC), 9, box.now)
    box.turn()
    box = box.restart()
    monkeypatch.setattr(unloaded_topic_stats, "A_SECOND", 2)
    assert set(backlogs(box, 600)) == {None}
    backlogs(box, 5)
    assert not box.broker.samples.stored.topics, "they are let go"
    box.broker.samples.watch(box.now)
    look(box)
    assert set(backlogs(box, 600)) == {0}
    assert set(backlogs(box, 5)[-3:]) == {None}


def test_a_topic_that_comes_into_memory_and_leaves_it_is_there_once_all_the_time() -> None:
    box = Box(brokerUnloadIdleTopicsAfterSeconds=10)
    first = box.client()
    first.subscribe()
    first.publish(3)
    first.cnx.closed(box.now)
    box = box.restart()
    box.broker.samples.watch(box.now)
    look(box)
    client = box.client()
    client.subscribe()
    assert topic_of(box).name == TOPIC
    a_second(box)
    assert topic_of(box).topic is not None
    client.publish(2)
    client.cnx.closed(box.now)
    a_second(box)
    box.broker.samples.watch(box.now)
    box.advance(60.0)
    assert box.broker.topics.loaded(parse_topic(TOPIC)) is None
    look(box)
    assert topic_of(box).topic is None
    assert topic_of(box).backlog == 5
    box.broker.topics.delete(parse_topic(TOPIC), box.now, force=True)
    box.turn()
    look(box)
    assert not list(box.broker.samples.every())


def test_partitions_that_are_made_as_rows_are_seen() -> None:
    box = Box()
    box.broker.samples.watch(box.now)
    look(box)
    box.broker.topics.create_partitioned(parse_topic(TOPIC), 4, box.now)
    box.turn()
    look(box)
    assert sorted(each.name for each in box.broker.samples.every()) == [f"{TOPIC}-partition-{i}" for i in range(4)]


def test_what_nobody_watches_any_more_is_let_go() -> None:
    box = Box()
    box.client().publish(1)
    box = box.restart()
    samples = box.broker.samples
    samples.watch(box.now)
    look(box)
    assert samples.stored.topics
    box.advance(601.0)
    samples.stored.tidy(box.now)
    assert not samples.stored.topics
    samples.watch(box.now)
    look(box)
    assert samples.stored.topics


def test_a_subscription_that_was_deleted_and_made_again_begins_anew() -> None:
    box = Box()
    client = box.client()
    client.subscribe()
    client.publish(5)
    look(box)
    before = subscription_of(box)
    client.request("unsubscribe", consumer_id=1)
    client.subscribe(initialPosition=0)
    client.subscribe("other", consumer_id=2)
    a_second(box)
    assert subscription_of(box) is not before
    client.request("unsubscribe", consumer_id=2)
    a_second(box)
    assert list(topic_of(box).subscriptions) == ["s"]


def test_looks_between_passes_are_not_lost_to_the_totals() -> None:
    box = Box()
    client = box.client()
    client.subscribe()
    client.producer()
    look(box)
    for _ in range(4):
        a_second(box)
    assert topic_of(box).sample(box.now.monotonic) is None, "it rests"
    client.flow(5)
    for i in range(3):
        client.send(i)
    topic = topic_of(box)
    topic.refresh_one(topic.subscriptions["s"], box.now.monotonic)
    topic.refresh(box.now.monotonic)
    a_second(box)
    totals = box.broker.samples.totals
    assert (totals.backlog, totals.unacked) == (3, 3)
    assert totals.deliver_bytes > 0
    assert subscription_of(box).out_rate == 3.0, "the rest before it does not dilute it"
    client.cnx.closed(box.now)
    for _ in range(6):
        a_second(box)
    assert (totals.unacked, totals.deliver_rate, totals.publish_rate) == (0, 0.0, 0.0)
    box.broker.topics.delete(parse_topic(TOPIC), box.now, force=True)
    assert (totals.backlog, totals.topics, totals.subscriptions, totals.size) == (0, 0, 0, 0)


def test_offloaded_ledgers_count_in_memory_and_after_a_restart() -> None:
    box = Box()
    client = box.client()
    ranges = pairs({OFFLOADED_PROPERTY: "0-1000"})
    client.subscribe("pulsarbox-offload-12ab34cd", subscription_properties=ranges)
    client.publish(3)
    look(box)
    totals = box.broker.samples.totals
    assert totals.offloaded == 0, "the open ledger is not offloaded"
    topic = box.broker.topics.loaded(parse_topic(TOPIC))
    assert isinstance(topic, PersistentTopic)
    topic.ledgers.close(0, box.now)
    client.publish(2)
    a_second(box)
    assert 0 < totals.offloaded == topic_of(box).offloaded < totals.size
    offloaded = totals.offloaded
    client.subscribe("offload-of-another", subscription_properties=ranges)
    a_second(box)
    assert totals.offloaded == offloaded, "a property of other subscriptions says nothing"
    client.cnx.closed(box.now)
    box = box.restart()
    box.broker.samples.watch(box.now)
    look(box)
    assert topic_of(box).topic is None
    assert box.broker.samples.stored.totals.offloaded == offloaded


def test_without_the_subscription_of_the_offload_nothing_is_offloaded() -> None:
    box = Box()
    client = box.client()
    client.subscribe("pulsarbox-offload-12ab34cd", subscription_properties=pairs({OFFLOADED_PROPERTY: "0-1000"}))
    client.publish(3)
    topic = box.broker.topics.loaded(parse_topic(TOPIC))
    assert isinstance(topic, PersistentTopic)
    topic.ledgers.close(0, box.now)
    client.publish(2)
    look(box)
    totals = box.broker.samples.totals
    assert totals.offloaded > 0
    topic.remove_subscription(topic.subscriptions["pulsarbox-offload-12ab34cd"], box.now)
    a_second(box)
    assert totals.offloaded == 0
