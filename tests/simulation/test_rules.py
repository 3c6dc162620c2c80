"""Rules that say neither too much nor too little, each in a history made for it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from pulsarbox.broker.expiry import Expiry
from pulsarbox.broker.policies.deduplication import DEDUPLICATION
from pulsarbox.broker.policies.message_ttl import MESSAGE_TTL
from pulsarbox.broker.policies.subscription_expiration import SUBSCRIPTION_EXPIRATION
from pulsarbox.config import Settings
from pulsarbox.storage.catalog import policies_key
from tests.simulation.box import Box, Limits
from tests.simulation.consumers import EXCLUSIVE, Keeper, SimulatedReader
from tests.simulation.disk import SimulatedDisk
from tests.simulation.history import Violation
from tests.simulation.model import Model
from tests.simulation.once_checker import Once
from tests.simulation.policy_checkers import Expired
from tests.simulation.producers import SimulatedProducer
from tests.simulation.rulebook import Rulebook
from tests.simulation.views import NOWHERE, ConnView, Pending, ProducerView
from tests.simulation.world import World

TOPIC = "persistent://public/default/one"
SLOW = Settings(
    ttlDurationDefaultInSeconds=2,
    dispatchThrottlingRatePerTopicInMsg=2,
    brokerClock="virtual",
    brokerDeleteInactiveTopicsEnabled=False,
)
"""What a reader is given is older than that, soon."""


def test_a_duplicate_may_be_answered_long_after_deduplication_was_turned_off() -> None:
    model = Model(World(0))
    model.box = cast(Box, SimpleNamespace(settings=Settings(brokerDeduplicationEnabled=True)))
    model.book = Rulebook(model.world, lambda: model.box.settings, (DEDUPLICATION,), (TOPIC,))
    producer = ProducerView(ConnView(cast(Any, None)), 1, "p", model.topic(TOPIC))
    rule = Once(model)
    model.world.monotonic = 2.0
    model.book.set(policies_key(TOPIC), DEDUPLICATION.topic_key, False)
    model.world.monotonic = 5.0  # a publish rate has held its receipt back
    rule.settled(producer, Pending(7, [], 1.0), NOWHERE, True)
    with pytest.raises(Violation, match="a duplicate without deduplication"):
        rule.settled(producer, Pending(8, [], 3.0), NOWHERE, True)


def read_slowly(*, beside: bool) -> tuple[int, int]:
    """A reader gets what a producer publishes in two seconds, two messages a second; ``beside`` it there is a
    subscription that nobody uses. Gives how many entries it got, and how many there are."""
    world = World(0)
    model, disk = Model(world), SimulatedDisk(world, "memory")
    box = model.box = Box(world, SLOW, model, disk, Limits(1 << 20, 50_000))
    model.book = Rulebook(world, lambda: box.settings, (MESSAGE_TTL, SUBSCRIPTION_EXPIRATION), (TOPIC,))
    rule = Expired(model)
    rule.every = 1 << 30  # what is delivered is all that it looks at
    model.checkers = [rule]
    box.start()
    if beside:
        Keeper(world, box, "keeper", TOPIC, "keeper", EXCLUSIVE).start()
    producer = SimulatedProducer(world, box, "producer", TOPIC, named=True, padding=0)
    reader = SimulatedReader(world, box, "reader", TOPIC, "reader", EXCLUSIVE)
    reader.calm = True
    producer.start()
    reader.start()
    world.run(until=2)
    producer.stopped = True
    world.run(until=200)
    disk.close()
    return len(reader.past), len(model.topic(TOPIC).order)


def test_who_only_reads_gets_what_no_durable_subscription_has_to_lose() -> None:
    got, there = read_slowly(beside=False)
    assert got == there > 0
    got, there = read_slowly(beside=True)
    assert 0 < got < there


def test_a_reader_beside_a_durable_subscription_gets_nothing_that_has_expired(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Expiry, "look", lambda self, now: 0)
    monkeypatch.setattr(Expiry, "published", lambda self, entry: None)
    with pytest.raises(Violation, match=r"delivered after it has expired: .* reader"):
        read_slowly(beside=True)
