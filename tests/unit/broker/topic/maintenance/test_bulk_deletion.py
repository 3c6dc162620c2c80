"""Stepwise deletion of a namespace or partitioned topic, with no new topics admitted meanwhile."""

from collections.abc import Iterator
from itertools import islice

import pytest

from pulsarbox.broker.topic.maintenance.bulk_deletion import Step
from pulsarbox.errors import Conflict, NamespaceNotFound, NotFound, PreconditionFailed, TopicNotFound
from pulsarbox.names import parse_topic
from pulsarbox.storage.catalog import namespace_key, partitions_key
from tests.unit.broker.playbook import Box

SPACE = "public/gone"
TOPICS = f"persistent://{SPACE}"
PARTITIONED = parse_topic(f"{TOPICS}/p")


def filled(topics: int = 5, partitions: int = 3) -> Box:
    box = Box()
    box.broker.tenants.create_namespace(SPACE, None)
    for number in range(topics):
        box.broker.topics.create(parse_topic(f"{TOPICS}/t-{number}"), box.now)
    box.broker.topics.create_partitioned(PARTITIONED, partitions, box.now)
    box.turn()
    return box


def take(box: Box, steps: Iterator[Step], count: int | None = None) -> int:
    """Run up to ``count`` steps, by default all, each in its own turn. Return their number."""
    taken = 0
    for step in islice(steps, count):
        step(box.now)
        box.turn()
        taken += 1
    return taken


def test_a_namespace_goes_topic_by_topic_and_nothing_comes_meanwhile() -> None:
    box = filled()
    topics, tenants = box.broker.topics, box.broker.tenants
    steps = box.broker.removal.of_namespace(SPACE, force=True)
    assert take(box, steps, 4) == 4
    assert len(topics.names(SPACE)) == 4, "one a step"
    assert tenants.has_namespace(SPACE)
    with pytest.raises(Conflict, match="Namespace public/gone is being deleted"):
        box.broker.removal.of_namespace(SPACE, force=True)
    for name in (f"{TOPICS}/new", f"{TOPICS}/p-partition-0", f"non-persistent://{SPACE}/n"):
        with pytest.raises(NamespaceNotFound, match="is being deleted"):
            topics.open(parse_topic(name), box.now)
        with pytest.raises(Conflict, match="is being deleted"):
            topics.create(parse_topic(name), box.now)
    with pytest.raises(Conflict, match="is being deleted"):
        topics.create_partitioned(parse_topic(f"{TOPICS}/q"), 2, box.now)
    topics.open(parse_topic("persistent://public/default/t"), box.now)
    assert take(box, steps) == 6, "four topics, what was said of p, and the namespace"
    assert not tenants.has_namespace(SPACE)
    assert not [key for key in box.broker.catalog.keys("") if SPACE in key]
    tenants.create_namespace(SPACE, None)
    topics.open(parse_topic(f"{TOPICS}/new"), box.now)


def test_a_namespace_that_has_something_is_deleted_by_force_alone() -> None:
    box = filled(topics=0)
    removal, topics = box.broker.removal, box.broker.topics
    with pytest.raises(Conflict, match="Cannot delete non empty namespace"):
        removal.of_namespace(SPACE, force=False)
    for number in range(3):
        topics.delete(PARTITIONED.partition(number), box.now, force=False)
    with pytest.raises(Conflict, match="Cannot delete non empty namespace"):
        removal.of_namespace(SPACE, force=False)
    take(box, removal.of_partitioned(PARTITIONED, force=False))
    take(box, removal.of_namespace(SPACE, force=False))
    with pytest.raises(NotFound):
        removal.of_namespace(SPACE, force=False)


def test_a_crash_on_the_way_leaves_what_is_still_to_be_deleted() -> None:
    box = filled()
    take(box, box.broker.removal.of_namespace(SPACE, force=True), 3)
    again = box.restart()
    assert len(again.broker.topics.names(SPACE)) == 5
    assert namespace_key(SPACE) in again.broker.catalog
    again.broker.topics.open(parse_topic(f"{TOPICS}/new"), again.now)
    take(again, again.broker.removal.of_namespace(SPACE, force=True))
    assert not [key for key in again.broker.catalog.keys("") if SPACE in key]


def test_partitions_go_one_by_one_and_none_comes_back() -> None:
    box = filled(topics=0)
    topics, removal = box.broker.topics, box.broker.removal
    client = box.client()
    client.producer(1, str(PARTITIONED.partition(0)))
    with pytest.raises(PreconditionFailed, match="1 connected producers"):
        removal.of_partitioned(PARTITIONED, force=False)
    steps = removal.of_partitioned(PARTITIONED, force=True)
    assert take(box, steps, 1) == 1
    assert client.names() == ["close_producer"]
    with pytest.raises(TopicNotFound):
        topics.open(PARTITIONED.partition(0), box.now)
    topics.make_partition(PARTITIONED, 0, box.now)
    assert not topics.exists(PARTITIONED.partition(0))
    with pytest.raises(Conflict, match="is being deleted"):
        removal.of_partitioned(PARTITIONED, force=True)
    assert take(box, steps) == 3, "two partitions, and what was said of them together"
    assert partitions_key(str(PARTITIONED)) not in box.broker.catalog
    topics.create_partitioned(PARTITIONED, 2, box.now)
    assert len(topics.names(SPACE)) == 2


def test_who_has_come_since_is_not_thrown_off_without_force() -> None:
    box = filled(topics=0)
    steps = box.broker.removal.of_partitioned(PARTITIONED, force=False)
    assert take(box, steps, 1) == 1
    box.client().producer(1, str(PARTITIONED.partition(2)))
    with pytest.raises(PreconditionFailed, match="connected"):
        take(box, steps)
    del steps
    assert box.broker.topics.exists(PARTITIONED.partition(2))
    topic = box.broker.topics.open(PARTITIONED.partition(0), box.now)
    assert topic.name == PARTITIONED.partition(0), "it is deleted no more, so it may have its partitions again"
