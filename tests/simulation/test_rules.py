"""Rules are neither too strict nor too lax, each checked in a dedicated history."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from pulsarbox.broker.backlog.message_expiry import MessageExpiry
from pulsarbox.broker.policies.kinds.backlog_quota import BACKLOG_AGE, BACKLOG_SIZE
from pulsarbox.broker.policies.kinds.deduplication import DEDUPLICATION
from pulsarbox.broker.policies.kinds.message_ttl import MESSAGE_TTL
from pulsarbox.broker.policies.kinds.subscription_expiration import SUBSCRIPTION_EXPIRATION
from pulsarbox.broker.policies.policy import Policy
from pulsarbox.config import Settings
from pulsarbox.names import parse_topic
from pulsarbox.storage.catalog import policies_key
from tests.simulation.actors.consumers import EXCLUSIVE, SHARED, Keeper, SimulatedConsumer, SimulatedReader
from tests.simulation.actors.governor import RULED
from tests.simulation.actors.misfits import Vandal
from tests.simulation.actors.producers import SimulatedProducer
from tests.simulation.box import Limits, SimulatedBox
from tests.simulation.disk import SimulatedDisk
from tests.simulation.model.history import Violation
from tests.simulation.model.model import Model
from tests.simulation.model.rulebook import Rulebook
from tests.simulation.model.views import NOWHERE, ConnView, Pending, ProducerView
from tests.simulation.rules.checkers import OneReply
from tests.simulation.rules.once_checker import Once
from tests.simulation.rules.policy_checkers import Expired, Quotas, Reasons
from tests.simulation.world import World

TOPIC = "persistent://public/default/one"
SLOW = Settings(
    ttlDurationDefaultInSeconds=2,
    dispatchThrottlingRatePerTopicInMsg=2,
    brokerClock="virtual",
    brokerDeleteInactiveTopicsEnabled=False,
)
"""The rate soon delays messages beyond their TTL before a reader receives them."""


def test_a_duplicate_may_be_answered_long_after_deduplication_was_turned_off() -> None:
    model = Model(World(0))
    model.box = cast(SimulatedBox, SimpleNamespace(settings=Settings(brokerDeduplicationEnabled=True)))
    model.book = Rulebook(model.world, lambda: model.box.settings, (DEDUPLICATION,), (TOPIC,))
    producer = ProducerView(ConnView(cast(Any, None)), 1, "p", model.topic(TOPIC))
    rule = Once(model)
    model.world.monotonic = 2.0
    model.book.set(policies_key(TOPIC), DEDUPLICATION.topic_key, False)
    model.world.monotonic = 5.0  # a publish rate has delayed its receipt
    rule.settled(producer, Pending(7, [], 1.0), NOWHERE, True)
    with pytest.raises(Violation, match="a duplicate without deduplication"):
        rule.settled(producer, Pending(8, [], 3.0), NOWHERE, True)


def world_of(settings: Settings, *policies: Policy[Any]) -> Model:
    """Return the model of a started box in a world without faults or rules."""
    world = World(0)
    model = Model(world)
    box = model.box = SimulatedBox(world, settings, model, SimulatedDisk(world, "memory"), Limits(1 << 20, 50_000))
    model.book = Rulebook(world, lambda: box.settings, policies, (TOPIC,))
    box.start()
    return model


def publish(model: Model, seconds: float, *, delayed: float = 0.0) -> None:
    """Publish for ``seconds``; ``delayed`` is the share of delayed messages."""
    producer = SimulatedProducer(model.world, model.box, "producer", TOPIC, named=True, padding=0)
    producer.delayed = delayed
    producer.start()
    model.world.run(until=model.world.monotonic + seconds)
    producer.stopped = True
    producer.give_up()


def keep(model: Model) -> None:
    """Create a subscription that never consumes."""
    Keeper(model.world, model.box, "keeper", TOPIC, "keeper", EXCLUSIVE).start()


def read_slowly(*, beside: bool) -> tuple[int, int]:
    """Read two seconds of a producer's messages at two per second. ``beside`` adds an unused subscription.

    Return the number of entries received and published.
    """
    model = world_of(SLOW, MESSAGE_TTL, SUBSCRIPTION_EXPIRATION)
    world, rule = model.world, Expired(model)
    rule.every = 1 << 30  # check deliveries only
    model.checkers = [rule]
    if beside:
        keep(model)
    reader = SimulatedReader(world, model.box, "reader", TOPIC, "reader", EXCLUSIVE)
    reader.calm = True
    reader.start()
    publish(model, 2)
    world.run(until=400)
    model.box.disk.close()
    return len(reader.past), len(model.topic(TOPIC).order)


def test_who_only_reads_gets_what_no_durable_subscription_has_to_lose() -> None:
    got, there = read_slowly(beside=False)
    assert got == there > 0
    got, there = read_slowly(beside=True)
    assert 0 < got < there


def test_a_reader_beside_a_durable_subscription_gets_nothing_that_has_expired(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MessageExpiry, "expire_due", lambda self, now: 0)
    monkeypatch.setattr(MessageExpiry, "published", lambda self, entry: None)
    with pytest.raises(Violation, match=r"delivered after it has expired: .* reader"):
        read_slowly(beside=True)


def test_what_a_subscription_had_not_acknowledged_may_go_with_it() -> None:
    """Whole ledgers are trimmed with the subscription, and the rule for acknowledgements by the box ignores them."""
    settings = Settings(
        subscriptionExpirationTimeMinutes=1,
        managedLedgerMaxEntriesPerLedger=2,
        brokerClock="virtual",
        brokerDeleteInactiveTopicsEnabled=False,
    )
    model = world_of(settings, MESSAGE_TTL, BACKLOG_AGE, BACKLOG_SIZE, SUBSCRIPTION_EXPIRATION)
    model.checkers, model.spares = [Reasons(model)], True
    keep(model)
    publish(model, 3)
    model.world.run(until=90)
    model.box.disk.close()
    assert (model.expired_subscriptions, model.let_go) == (1, 0)
    assert model.trims > 1


def go_back_to_what_was_evicted() -> int:
    """Acknowledge all undelayed messages, then seek back under an age quota that excludes delayed messages. Return the
    number of evicted messages.
    """
    settings = Settings(brokerClock="virtual", brokerDeleteInactiveTopicsEnabled=False, keepAliveIntervalSeconds=1)
    model = world_of(settings, *RULED)
    world, box, book, rule = model.world, model.box, model.book, Quotas(model)
    assert book is not None
    rule.every = 1
    model.checkers, model.spares = [rule], True
    consumer = SimulatedConsumer(world, box, "consumer", TOPIC, "s", SHARED)
    consumer.calm = True
    consumer.start()
    world.run(until=1)
    quota = {"limitSize": -1, "limitTime": 5, "policy": "consumer_backlog_eviction", "excludeDelayed": True}
    book.set(policies_key(TOPIC), BACKLOG_AGE.topic_key, {"message_age": quota})
    name = parse_topic(TOPIC)
    box.broker.policies.set_topic(name, BACKLOG_AGE.topic_key, {"message_age": quota}, world.now)
    publish(model, 3, delayed=0.5)
    world.run(until=12)
    consumer.request("SEEK", consumer_id=1, message_id=consumer._id(consumer.past[0], 0))
    consumer.stopped = True
    world.run(until=30)
    box.disk.close()
    return model.let_go


def test_what_comes_back_with_a_seek_is_evicted_again() -> None:
    assert go_back_to_what_was_evicted() > 0


def test_a_seek_that_is_not_seen_to_bring_old_messages_back_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MessageExpiry, "started_again", lambda self: None)
    with pytest.raises(Violation, match="too old, and not evicted"):
        go_back_to_what_was_evicted()


def test_who_asks_twice_before_it_is_answered_has_two_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    model = world_of(Settings())
    model.checkers = [OneReply(model)]
    model.world.faults.commit_delay = 2.0
    monkeypatch.setattr(model.world.random, "randrange", lambda *bounds: bounds[-1] - 1)  # always a new transaction
    Vandal(model.world, model.box, "vandal", TOPIC).start()
    model.world.run(until=10)
    model.box.disk.close()
    assert model.box.broker.transactions.created > 2
