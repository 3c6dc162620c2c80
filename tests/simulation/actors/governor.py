"""An operator that sets, changes and removes policies of namespaces, topics and groups, and advances the clock."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pulsarbox.broker.policies.kinds.auto_creation import AUTO_SUBSCRIPTIONS
from pulsarbox.broker.policies.kinds.backlog_quota import BACKLOG_AGE, BACKLOG_SIZE
from pulsarbox.broker.policies.kinds.counts import (
    MAX_CONSUMERS,
    MAX_CONSUMERS_PER_SUBSCRIPTION,
    MAX_PRODUCERS,
    MAX_SUBSCRIPTIONS,
)
from pulsarbox.broker.policies.kinds.deduplication import DEDUPLICATION
from pulsarbox.broker.policies.kinds.dispatch_rate import DISPATCH_RATE, SUBSCRIPTION_DISPATCH_RATE
from pulsarbox.broker.policies.kinds.message_ttl import MESSAGE_TTL
from pulsarbox.broker.policies.kinds.publish_rate import PUBLISH_RATE
from pulsarbox.broker.policies.kinds.resource_group import RESOURCE_GROUP, group_key
from pulsarbox.broker.policies.kinds.retention import RETENTION
from pulsarbox.broker.policies.kinds.subscribe_rate import SUBSCRIBE_RATE
from pulsarbox.broker.policies.kinds.subscription_expiration import SUBSCRIPTION_EXPIRATION
from pulsarbox.broker.policies.kinds.subscription_types import SUBSCRIPTION_TYPES
from pulsarbox.broker.policies.kinds.unacked import MAX_UNACKED_PER_CONSUMER, MAX_UNACKED_PER_SUBSCRIPTION
from pulsarbox.broker.policies.policy import Policy
from pulsarbox.clock import Now
from pulsarbox.names import parse_topic
from pulsarbox.storage.catalog import namespace_key, policies_key
from tests.simulation.model.rulebook import Rulebook

if TYPE_CHECKING:
    from tests.simulation.box import SimulatedBox
    from tests.simulation.model.model import Model

FOLLOWS: Final = ("producer_request_hold", "producer_exception", "consumer_backlog_eviction")
GROUPS: Final = ("gold", "silver")
MOVES: Final = (500, 2_000, 15_000, 15_000, 70_000, 400_000, 864_000_000)
"""Steps by which the clock is advanced, in milliseconds."""


class Step(NamedTuple):
    """A policy to set at random, and its values."""

    policy: Policy[Any]
    value: Callable[[Random], Any]
    weight: int = 2


def _rate(random: Random) -> dict[str, Any]:
    return {
        "dispatchThrottlingRateInMsg": random.choice((-1, 3, 10, 40)),
        "dispatchThrottlingRateInByte": random.choice((-1, -1, 2_000)),
        "ratePeriodInSecond": random.choice((1, 1, 2)),
        "relativeToPublishRate": random.random() < 0.15,
    }


def _quotas(random: Random) -> dict[str, Any]:
    quotas = {
        "destination_storage": {
            "limitSize": random.choice((2_000, 10_000, 40_000)),
            "limitTime": -1,
            "policy": random.choice(FOLLOWS),
        },
        "message_age": {
            "limitSize": -1,
            "limitTime": random.choice((3, 20, 300)),
            "policy": random.choice(FOLLOWS),
        },
    }
    chosen = random.choice((["destination_storage"], ["message_age"], list(quotas)))
    return {kind: quotas[kind] for kind in chosen}


def _retention(random: Random) -> dict[str, int]:
    minutes, megabytes = random.choice(((0, 0), (1, -1), (1, 1), (5, 1), (-1, 1), (-1, -1)))
    return {"retentionTimeInMinutes": minutes, "retentionSizeInMB": megabytes}


def _publish_rate(random: Random) -> dict[str, int]:
    return {"publishThrottlingRateInMsg": random.choice((5, 15, 60)), "publishThrottlingRateInByte": -1}


def _subscribe_rate(random: Random) -> dict[str, int]:
    return {
        "subscribeThrottlingRatePerConsumer": random.choice((-1, 1, 2)),
        "ratePeriodInSecond": random.choice((1, 5)),
    }


def _types(random: Random) -> list[str]:
    types = ["Exclusive", "Failover", "Key_Shared", "Shared"]
    return random.choice(([], types, random.sample(types, 3)))


def _group(random: Random) -> str:
    return random.choice(GROUPS)


def _count(*limits: int) -> Callable[[Random], int]:
    return lambda random: random.choice((0, *limits))


STEPS: Final = (
    Step(RETENTION, _retention, 4),
    Step(MESSAGE_TTL, _count(2, 10, 60, 600), 4),
    Step(BACKLOG_SIZE, _quotas, 6),
    Step(DISPATCH_RATE, _rate, 3),
    Step(SUBSCRIPTION_DISPATCH_RATE, _rate, 3),
    Step(PUBLISH_RATE, _publish_rate),
    Step(SUBSCRIBE_RATE, _subscribe_rate),
    Step(MAX_PRODUCERS, _count(1, 2)),
    Step(MAX_CONSUMERS, _count(2, 5)),
    Step(MAX_CONSUMERS_PER_SUBSCRIPTION, _count(1, 2)),
    Step(MAX_SUBSCRIPTIONS, _count(2, 4), 1),
    Step(MAX_UNACKED_PER_CONSUMER, _count(5, 30)),
    Step(MAX_UNACKED_PER_SUBSCRIPTION, _count(8, 40)),
    Step(SUBSCRIPTION_TYPES, _types, 1),
    Step(AUTO_SUBSCRIPTIONS, lambda random: {"allowAutoSubscriptionCreation": random.random() < 0.5}, 1),
    Step(SUBSCRIPTION_EXPIRATION, _count(1, 5)),
    Step(DEDUPLICATION, lambda random: random.random() < 0.7),
    Step(RESOURCE_GROUP, _group),
)
RULED: Final = (*(step.policy for step in STEPS), BACKLOG_AGE)
"""The policies to set. Both backlog quotas share one value."""
KEEPING: Final = (RETENTION,)
"""Policies not removed while retained messages are read: readers do not receive messages that expire meanwhile."""


class Governor:
    """The policy operator. A separate random generator preserves the world's history."""

    def __init__(self, box: SimulatedBox, model: Model, topics: tuple[str, ...], seed: int, *, delayed: bool) -> None:
        self._random = Random(f"{seed} governor")
        self._box = box
        self._model = model
        self._topics = topics
        self.book = Rulebook(box.world, lambda: box.settings, RULED, topics)
        self._delayed = delayed
        """Whether messages are delayed, so quotas may exclude them."""
        self.stopped = False
        self.done = {"policy set": 0, "policy removed": 0, "clock moved": 0}
        self._pace = self._random.choice((0.2, 0.5, 1.0))
        """Mean seconds between steps."""
        chosen = self._random.sample(STEPS, self._random.choice((3, 6, len(STEPS))))
        self._steps = [step for step in chosen for _ in range(step.weight)]
        self._always: tuple[Policy[Any], Any] | None = None
        """The only policy to set, and its value."""
        """Few policies exercise each policy more deeply than all of them."""

    @property
    def deduplicates(self) -> bool:
        """Whether deduplication may be enabled."""
        return any(step.policy is DEDUPLICATION for step in self._steps)

    def set_only(self, policy: Policy[Any], value: Any) -> None:
        """Restrict the operator to one policy, set early for all topics and rarely afterwards; disable clock moves."""
        self._steps = [step for step in STEPS if step.policy is policy]
        self._always, self._pace = (policy, value), 3.0

    def start(self) -> None:
        """Schedule the first step."""
        self._later()
        if self._always is not None:
            for topic in self._topics:
                self._put(topic, *self._always, of_topic=True)
            self._box.turn()

    def _later(self) -> None:
        self._box.world.after(self._random.expovariate(1 / self._pace), self._act)

    def _act(self) -> None:
        if self.stopped:
            return
        self._later()
        if not self._box.running:
            return
        chance = 1.0 if self._always is not None else self._random.random()
        if chance < 0.12:
            self._move_clock()
        elif chance < 0.18:
            self._set_group()
        else:
            self._set()
        self._box.turn()

    def _move_clock(self) -> None:
        by = self._random.choice(MOVES)
        self._box.world.note("the clock is moved by", by)
        self.done["clock moved"] += 1
        self._box.advance(by)

    def _set_group(self) -> None:
        name = self._random.choice(GROUPS)
        rates = {
            "dispatchRateInMsgs": self._random.choice((0, 5, 30)),
            "publishRateInMsgs": self._random.choice((0, 5, 30)),
        }
        number = 0
        for key, value in rates.items():
            number = self.book.set(group_key(name), key, value)
        self.book.group_since[name] = self._box.world.monotonic
        self._box.world.note("group", name, rates)
        self._box.broker.put_resource_group(name, rates, self._box.world.now)
        self._promise(number)

    def _set(self) -> None:
        step, topic = self._random.choice(self._steps), self._random.choice(self._topics)
        value = None if self._random.random() < 0.3 else step.value(self._random)
        if self._delayed and step.policy is BACKLOG_SIZE and value is not None:
            for quota in value.values():
                quota["excludeDelayed"] = self._random.random() < 0.6
        of_topic = bool(step.policy.topic_key) and self._random.random() < 0.6
        self.done["policy removed" if value is None else "policy set"] += 1
        self._put(topic, step.policy, value, of_topic=of_topic, everywhere=self._random.random() < 0.15)

    def _put(self, topic: str, policy: Policy[Any], value: Any, *, of_topic: bool, everywhere: bool = False) -> None:
        box, name = self._box, parse_topic(topic)
        now = box.world.now
        box.world.note("set", policy.name, value, topic if of_topic else name.namespace, everywhere)
        if of_topic:
            key = policies_key(str(name.base))
            number = self.book.set(key, policy.topic_key, value, everywhere=everywhere)
            box.broker.policies.set_topic(name, policy.topic_key, value, now, everywhere=everywhere)
        else:
            place = policy.row.namespace
            if place is not None and place.by_cluster and value is not None:
                value = {box.settings.clusterName: value}
            number = self.book.set(namespace_key(name.namespace), policy.namespace_key, value)
            box.broker.tenants.set_policy(name.namespace, policy.namespace_key, value, now)
        self._promise(number)

    def _promise(self, number: int) -> None:
        """Mark a version as durable after its commit."""
        life = self._box.life

        def committed(now: Now) -> None:
            if self._box.running and self._box.life == life:
                self.book.durable(number)

        self._box.broker.commits.after_commit(committed)

    def lift(self, *, but: tuple[Policy[Any], ...] = ()) -> None:
        """Remove all policies except ``but``."""
        for topic in self._topics:
            name = parse_topic(topic)
            for policy in RULED:
                if policy in but:
                    continue
                own = self.book.rows.get(policies_key(str(name.base)), {})
                if policy.topic_key in own:
                    self._put(topic, policy, None, of_topic=True)
                if policy.topic_key in own.get("globalPolicies", {}):
                    self._put(topic, policy, None, of_topic=True, everywhere=True)
                if policy.namespace_key in self.book.rows.get(namespace_key(name.namespace), {}):
                    self._put(topic, policy, None, of_topic=False)
        self._box.turn()
