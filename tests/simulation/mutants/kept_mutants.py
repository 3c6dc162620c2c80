"""Planted bugs in retention, expiry, quotas and their deadlines, for ``test_kept``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pulsarbox.broker.backlog import message_expiry
from pulsarbox.broker.backlog.message_expiry import ExpiryLimits, MessageExpiry
from pulsarbox.broker.backlog.quota_enforcement import QuotaEnforcement
from pulsarbox.broker.policies.kinds.backlog_quota import Quota
from pulsarbox.broker.policies.unloaded_topics import PolicyWalks
from pulsarbox.broker.subscription.position_search import find_first
from pulsarbox.broker.topic.maintenance import ledger_lifecycle
from pulsarbox.broker.topic.maintenance.deadline_index import TopicDeadline
from pulsarbox.broker.topic.maintenance.ledger_lifecycle import TopicLedgers
from pulsarbox.broker.topic.maintenance.maintenance_schedule import TopicMaintenance
from tests.simulation.mutants.registry import Mutant, Patch

KEPT_MUTANTS: dict[str, Mutant] = {}


def mutant(*rules: str, seeds: tuple[int, ...] = ()) -> Callable[[Patch], Patch]:
    """Register a bug with the rules that may detect it, and seeds that detect it quickly."""

    def register(patch: Patch) -> Patch:
        KEPT_MUTANTS[patch.__name__] = Mutant(patch, frozenset(rules), seeds)
        return patch

    return register


@mutant("reason")
def retention_asks_the_fastest_subscription(patch: pytest.MonkeyPatch) -> None:
    def fastest(self: TopicLedgers) -> Any:
        cursors = self._stored.cursors.values()
        return sorted(cursors, key=lambda cursor: cursor.mark_delete)[-1:]

    patch.setattr(TopicLedgers, "_cursors", property(fastest))


@mutant("disk")
def retention_keeps_what_it_need_not(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ledger_lifecycle, "trimmable", lambda *arguments, **options: ledger_lifecycle.Trim((), 0))


@mutant("disk")
def the_last_ledger_stays(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(TopicLedgers, "_close_unneeded", lambda self, now: 0)


@mutant("reason")
def messages_expire_in_half_their_time(patch: pytest.MonkeyPatch) -> None:
    original = message_expiry.limits_of

    def limits_of(ttl: int, age: Quota, *, enforced: bool) -> ExpiryLimits:
        return original(ttl // 2, age, enforced=enforced)

    patch.setattr(message_expiry, "limits_of", limits_of)


@mutant("expired", "quota")
def the_next_deadline_is_forgotten_after_an_expiry(patch: pytest.MonkeyPatch) -> None:
    original = MessageExpiry._finish

    def finish(self: MessageExpiry, again_at: int, now: Any) -> None:
        original(self, 0, now)

    patch.setattr(MessageExpiry, "_finish", finish)


@mutant("expired", "quota")
def deadlines_are_in_memory_only(patch: pytest.MonkeyPatch) -> None:
    original = TopicDeadline._put

    def put(self: TopicDeadline, wall: int) -> None:
        commits = self._commits
        kept, commits.put_row = commits.put_row, lambda key, row: None  # type: ignore[method-assign]
        try:
            original(self, wall)
        finally:
            commits.put_row = kept  # type: ignore[method-assign]

    patch.setattr(TopicDeadline, "_put", put)


@mutant("expired", "quota", seeds=(142,))
def a_changed_policy_is_told_to_nobody(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(TopicMaintenance, "run", lambda self, now: None)
    patch.setattr(PolicyWalks, "_walk", lambda self, names, now: None)


@mutant("reason", seeds=(7,))
def a_search_runs_ahead_into_what_is_confirmed_meanwhile(patch: pytest.MonkeyPatch) -> None:
    def run_ahead(topic: Any, after: Any, is_it: Any, found: Any, *arguments: Any, **more: Any) -> None:
        behind = topic.ledger.next(*topic.ledger.last_confirmed)

        def ahead(position: Any, now: Any) -> None:
            found(topic.ledger.next(*topic.ledger.last_confirmed) if position == behind else position, now)

        find_first(topic, after, is_it, ahead, *arguments, **more)

    patch.setattr(message_expiry, "find_first", run_ahead)


@mutant("held", seeds=(7,))
def held_producers_are_not_told_that_the_backlog_fell(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(QuotaEnforcement, "moved", lambda self, now: None)


@mutant("held", "full", "quota")
def a_changed_quota_is_not_taken(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(QuotaEnforcement, "check_quotas", lambda self, now: None)


@mutant("full")
def the_quota_is_looked_at_when_producers_come_and_not_before(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(QuotaEnforcement, "refuses", lambda self, now: False)
    patch.setattr(QuotaEnforcement, "confirmed", lambda self, now: None)


@mutant("reason")
def an_eviction_takes_all(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Quota, "target", property(lambda self: 0))


@mutant("quota")
def an_eviction_takes_too_little(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Quota, "target", property(lambda self: self.limit * 2))
