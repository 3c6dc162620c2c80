"""Planted bugs in policies, for ``test_mutants``: precedence, deletion, and admission."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from pulsarbox.broker.backlog.quota_enforcement import QuotaEnforcement
from pulsarbox.broker.dispatch.unacked_limits import Unacked
from pulsarbox.broker.handlers import subscribe
from pulsarbox.broker.limits.box_limits import BoxLimits, ResourceGroupLimits
from pulsarbox.broker.limits.subscribe_throttle import SubscribeLimiter
from pulsarbox.broker.limits.token_bucket import TokenBucket
from pulsarbox.broker.persistence.group_commit import GroupCommit
from pulsarbox.broker.policies import policies, precedence
from pulsarbox.broker.policies.kinds.retention import DISABLED, Retention
from pulsarbox.broker.policies.policy import Policy
from pulsarbox.broker.subscription.consumer import Consumer
from pulsarbox.broker.subscription.subscription import Subscription
from pulsarbox.broker.topic.admission_policies import Admission
from pulsarbox.broker.topic.maintenance import ledger_lifecycle
from pulsarbox.broker.topic.maintenance.subscription_expiration import SubscriptionExpiration
from pulsarbox.broker.topic.topic import PersistentTopic
from pulsarbox.storage.catalog import Row
from tests.simulation.mutants import kept_mutants
from tests.simulation.mutants.registry import mutant

mutant("retained", "trimmed", seeds=(12,))(kept_mutants.retention_asks_the_fastest_subscription)
mutant("retained", "trimmed", seeds=(10,))(kept_mutants.retention_keeps_what_it_need_not)
mutant("reason", seeds=(10,))(kept_mutants.messages_expire_in_half_their_time)
mutant("expired", "quotas", seeds=(58,))(kept_mutants.the_next_deadline_is_forgotten_after_an_expiry)
mutant("expired", "quotas", "retained", seeds=(1256,))(kept_mutants.a_changed_policy_is_told_to_nobody)
mutant("quotas", "one-reply", seeds=(12,))(kept_mutants.held_producers_are_not_told_that_the_backlog_fell)
mutant("quotas", "one-reply", seeds=(595,))(kept_mutants.a_changed_quota_is_not_taken)
mutant("quotas", seeds=(698,))(kept_mutants.the_quota_is_looked_at_when_producers_come_and_not_before)
mutant("reason", seeds=(58,))(kept_mutants.an_eviction_takes_all)
mutant("quotas", seeds=(58,))(kept_mutants.an_eviction_takes_too_little)


@mutant("levels", seeds=(195,))
def the_namespace_wins_over_the_topic(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(policies, "levels_of", lambda topic, namespace: precedence.levels_of(topic, namespace)[::-1])


@mutant("levels", "recovered", seeds=(172,))
def policies_are_in_memory_only(patch: pytest.MonkeyPatch) -> None:
    original = GroupCommit.put_row

    def put_row(self: GroupCommit, key: str, row: Row | None) -> None:
        if key.startswith("policies/"):
            self._store.catalog.note(key, row)
        else:
            original(self, key, row)

    patch.setattr(GroupCommit, "put_row", put_row)


@mutant("levels", seeds=(390,))
def what_a_namespace_says_is_remembered_for_ever(patch: pytest.MonkeyPatch) -> None:
    original = policies.Policies._changed

    def changed(self: policies.Policies, topics: Any, now: Any) -> None:
        before = dict(self.of_namespaces)
        original(self, topics, now)
        self.of_namespaces.update(before)

    patch.setattr(policies.Policies, "_changed", changed)


@mutant("retained", seeds=(10,))
def what_is_acknowledged_goes_at_once(patch: pytest.MonkeyPatch) -> None:
    original = ledger_lifecycle.trimmable

    def trimmable(
        ledger: Any, slowest: Any, retention: Retention, now_ms: int, **options: Any
    ) -> ledger_lifecycle.Trim:
        return original(ledger, slowest, DISABLED, now_ms, **options)

    patch.setattr(ledger_lifecycle, "trimmable", trimmable)


@mutant("reason", "backlog", "acked-stays", seeds=(298,))
def subscriptions_expire_while_they_are_used(patch: pytest.MonkeyPatch) -> None:
    def used(self: SubscriptionExpiration, subscription: Subscription, now: Any) -> None:
        self._note(subscription)

    patch.setattr(SubscriptionExpiration, "consumers_left", used)


@mutant("expired", seeds=(298,))
def subscriptions_never_expire(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SubscriptionExpiration, "look", lambda self, now: 0)


@mutant("quotas", seeds=(495,))
def whoever_is_refused_is_let_in(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(QuotaEnforcement, "_check_blocked", lambda self, *, again: None)
    patch.setattr(QuotaEnforcement, "refuses", lambda self, now: False)


@mutant("quotas", seeds=(12,))
def a_quota_refuses_long_before_its_limit(patch: pytest.MonkeyPatch) -> None:
    original = QuotaEnforcement._full_at

    def full_at(self: QuotaEnforcement) -> int:
        return original(self) - self.size.limit // 2

    patch.setattr(QuotaEnforcement, "_full_at", full_at)


@mutant("admitted", seeds=(290,))
def producers_are_not_counted(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Admission, "check_producer", lambda self, *, encrypted: None)


@mutant("admitted", seeds=(15,))
def consumers_of_a_topic_are_not_counted(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Admission, "check_consumer", lambda self: None)


@mutant("admitted", seeds=(76,))
def consumers_of_a_subscription_are_not_counted(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Admission, "check_consumer_of", lambda self, subscription, sub_type: None)


@mutant("admitted", seeds=(290,))
def subscriptions_are_not_counted(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Admission, "check_subscription", lambda self, present: None)


@mutant("admitted", seeds=(70,))
def every_type_is_enabled(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(subscribe, "check_type_enabled", lambda policies, settings, sub_type: None)


@mutant("admitted", seeds=(555,))
def clients_make_subscriptions_that_they_may_not(patch: pytest.MonkeyPatch) -> None:
    always = Policy("auto-subscription-creation", lambda value: True)
    patch.setattr(subscribe, "AUTO_SUBSCRIPTIONS", always)


@mutant("unacked-limits", seeds=(130,))
def limits_of_unacknowledged_messages_change_for_nobody(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Subscription, "limit_unacked", lambda self, now: None)


@mutant("unacked-limits", seeds=(710,))
def another_limit_lets_those_go_who_have_reached_one(patch: pytest.MonkeyPatch) -> None:
    original = Unacked.limit

    def limit(self: Unacked, per_consumer: int, per_subscription: int, consumers: Iterable[Consumer]) -> bool:
        changed = original(self, per_consumer, per_subscription, consumers)
        for consumer in consumers if changed else ():
            consumer.blocked = 0 < per_consumer <= consumer.unacked
        return changed

    patch.setattr(Unacked, "limit", limit)


@mutant("once", seeds=(496,))
def deduplication_is_turned_on_for_nobody(patch: pytest.MonkeyPatch) -> None:
    original = PersistentTopic._deduplicates

    def deduplicates(self: PersistentTopic) -> bool:
        return original(self) and self.core.settings.brokerDeduplicationEnabled

    patch.setattr(PersistentTopic, "_deduplicates", deduplicates)


@mutant("once", seeds=(252,))
def deduplication_is_turned_off_for_nobody(patch: pytest.MonkeyPatch) -> None:
    original = PersistentTopic._deduplicates

    def deduplicates(self: PersistentTopic) -> bool:
        return original(self) or self.core.settings.brokerDeduplicationEnabled

    patch.setattr(PersistentTopic, "_deduplicates", deduplicates)


@mutant("once", seeds=(876,))
def a_topic_in_memory_is_not_told_that_it_deduplicates(patch: pytest.MonkeyPatch) -> None:
    original = PersistentTopic.update_deduplication

    def update(self: PersistentTopic) -> None:
        if self.deduplication is not None or not hasattr(self, "_told"):
            original(self)
        self._told = True  # type: ignore[attr-defined]

    patch.setattr(PersistentTopic, "update_deduplication", update)


@mutant("rates", seeds=(255,))
def each_topic_has_the_groups_rate_for_itself(patch: pytest.MonkeyPatch) -> None:
    def group(self: BoxLimits, name: str, now: Any) -> ResourceGroupLimits | None:
        row = self._catalog.get(f"resourcegroup/{name}")
        if row is None:
            return None
        made = ResourceGroupLimits(name, self.limiter)
        self._set(made, row, now)
        return made

    patch.setattr(BoxLimits, "group", group)


@mutant("rates", seeds=(390,))
def a_limit_that_is_set_anew_gives_everything(patch: pytest.MonkeyPatch) -> None:
    original = TokenBucket.change

    def change(self: TokenBucket, limit: Any, at: int, more: Any = None) -> None:
        original(self, limit, at, more)
        self.left_messages, self.left_bytes = limit.messages, limit.bytes

    patch.setattr(TokenBucket, "change", change)


@mutant("admitted", first=90_000)
def subscribe_rates_are_ignored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SubscribeLimiter, "check", lambda self, who, at: None)
