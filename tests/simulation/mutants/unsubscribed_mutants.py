"""Planted bugs in unsubscribed retention, for ``test_unsubscribed``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pulsarbox.broker.backlog import unsubscribed_index
from pulsarbox.broker.backlog.unsubscribed_index import UnsubscribedIndex
from pulsarbox.broker.backlog.unsubscribed_messages import TopicUnsubscribed
from pulsarbox.broker.backlog.unsubscribed_trimming import UnsubscribedTrimming
from pulsarbox.broker.dead_letter.retention_warning import is_subscribed
from pulsarbox.broker.policies.kinds.retention import UNLIMITED, Retention
from pulsarbox.broker.topic.maintenance import ledger_lifecycle
from pulsarbox.broker.topic.registry import Topics
from tests.simulation.mutants.registry import Mutant, Patch

UNSUBSCRIBED_MUTANTS: dict[str, Mutant] = {}


def mutant(*rules: str, seeds: tuple[int, ...] = ()) -> Callable[[Patch], Patch]:
    """Register a bug with the rules that may detect it, and seeds that detect it quickly."""

    def register(patch: Patch) -> Patch:
        UNSUBSCRIBED_MUTANTS[patch.__name__] = Mutant(patch, frozenset(rules), seeds)
        return patch

    return register


@mutant("kept")
def ledgers_are_trimmed_as_in_pulsar(patch: pytest.MonkeyPatch) -> None:
    original = ledger_lifecycle.trimmable
    patch.setattr(
        ledger_lifecycle, "trimmable", lambda *given, **named: original(*given, **(named | {"retained": None}))
    )


@mutant("kept")
def a_topic_that_holds_messages_is_inactive(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(TopicUnsubscribed, "holds", property(lambda self: False))


@mutant("kept", seeds=(19,))
def a_deleted_subscription_covers_what_comes_later(patch: pytest.MonkeyPatch) -> None:
    original = TopicUnsubscribed.unsubscribe

    def unsubscribe(self: TopicUnsubscribed, now: Any) -> None:
        original(self, now)
        if not is_subscribed(self._stored):
            self.covered = self.covered._replace(ledger_id=1 << 40)

    patch.setattr(TopicUnsubscribed, "unsubscribe", unsubscribe)


@mutant("old")
def messages_have_all_the_time(patch: pytest.MonkeyPatch) -> None:
    def retention(self: Any, info: Any) -> Retention:
        return Retention(UNLIMITED, UNLIMITED)

    patch.setattr(ledger_lifecycle.TopicLedgers, "_retention_of", retention)


@mutant("limit")
def the_size_has_no_limit(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(UnsubscribedIndex, "is_over", property(lambda self: False))


@mutant("limit")
def topics_that_are_not_in_memory_are_not_trimmed(patch: pytest.MonkeyPatch) -> None:
    original = Topics.trim_unsubscribed

    def trim(self: Topics, name: str, now: Any) -> bool:
        return self.in_memory(name) and original(self, name, now)

    patch.setattr(Topics, "trim_unsubscribed", trim)


@mutant("share")
def the_oldest_goes_first_however_little_its_topic_holds(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(unsubscribed_index, "_class_of", lambda size: 1)


@mutant("count", "limit")
def a_start_does_not_count(patch: pytest.MonkeyPatch) -> None:
    def add_up(self: UnsubscribedIndex, now: Any) -> None:
        self._added = None

    patch.setattr(UnsubscribedIndex, "_add_up", add_up)
    patch.setattr(UnsubscribedTrimming, "_count_replayed", lambda self, now: None)


@mutant("count")
def what_the_log_has_behind_the_last_row_is_not_counted(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(UnsubscribedTrimming, "_count_replayed", lambda self, now: None)


@mutant("count")
def a_deleted_topic_stays_counted(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(UnsubscribedIndex, "forget", lambda self, stored: None)


@mutant("count", "limit")
def a_topic_is_counted_once(patch: pytest.MonkeyPatch) -> None:
    original = TopicUnsubscribed.count

    def count(self: TopicUnsubscribed, now: Any) -> None:
        original(self, now)
        self.count_at = 1 << 62

    patch.setattr(TopicUnsubscribed, "count", count)
