"""Planted bugs in storage, for ``test_mutants``: trimming, unloading, reclaiming, redelivery counts."""

from __future__ import annotations

from typing import Any

import pytest

from pulsarbox.broker.persistence.housekeeping import Housekeeping
from pulsarbox.broker.topic.maintenance import ledger_lifecycle
from pulsarbox.broker.topic.maintenance.ledger_lifecycle import TopicLedgers
from pulsarbox.broker.topic.topic import PersistentTopic
from pulsarbox.storage import memory_engine
from pulsarbox.storage.compression import encoder
from pulsarbox.storage.cursor import ManagedCursor
from pulsarbox.storage.entry_read import Answer
from pulsarbox.storage.memory_engine import MemoryEngine
from pulsarbox.storage.packing import live_records
from pulsarbox.storage.recovery import Store
from tests.simulation.mutants.registry import mutant


@mutant("trimmed")
def trimming_forgets_one_cursor(patch: pytest.MonkeyPatch) -> None:
    original = TopicLedgers.trim

    def trim(self: TopicLedgers, now: Any) -> list[int]:
        cursors = self._stored.cursors
        slowest = min(cursors.values(), key=lambda cursor: cursor.mark_delete, default=None)
        if slowest is None:
            return original(self, now)
        del cursors[slowest.cursor_id]
        try:
            return original(self, now)
        finally:
            cursors[slowest.cursor_id] = slowest

    patch.setattr(TopicLedgers, "trim", trim)


def _trim_as_if(patch: pytest.MonkeyPatch, furthest: Any) -> None:
    original = TopicLedgers.trim

    def trim(self: TopicLedgers, now: Any) -> list[int]:
        marks = [(cursor, cursor.mark_delete) for cursor in self._stored.cursors.values()]
        for cursor, mark in marks:
            cursor.mark_delete = max([mark, *furthest(cursor)])
        try:
            return original(self, now)
        finally:
            for cursor, mark in marks:
                cursor.mark_delete = mark

    patch.setattr(TopicLedgers, "trim", trim)


@mutant("trimmed")
def trimming_takes_partly_acknowledged_batches_for_whole(patch: pytest.MonkeyPatch) -> None:
    _trim_as_if(patch, lambda cursor: list(cursor.batch_acks))


@mutant("trimmed")
def trimming_takes_redelivered_entries_for_acknowledged(patch: pytest.MonkeyPatch) -> None:
    _trim_as_if(patch, lambda cursor: list(cursor.redeliveries))


@mutant("trimmed", "no-exception")
def the_ledger_that_grows_is_trimmed(patch: pytest.MonkeyPatch) -> None:
    original = ledger_lifecycle.trimmable

    def trimmable(ledger: Any, cursors: Any, *arguments: Any, **options: Any) -> Any:
        trim = original(ledger, cursors, *arguments, **options)
        done = ledger.current.entries and all(cursor.mark_delete >= ledger.last_confirmed for cursor in cursors)
        return trim._replace(ledgers=(*trim.ledgers, ledger.current.ledger_id)) if done else trim

    patch.setattr(ledger_lifecycle, "trimmable", trimmable)


@mutant("trimmed")
def nothing_is_trimmed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ledger_lifecycle, "trimmable", lambda *arguments, **options: ledger_lifecycle.Trim((), 0))


@mutant("unsubscribed")
def messages_without_a_subscription_are_trimmed(patch: pytest.MonkeyPatch) -> None:
    original = ledger_lifecycle.trimmable

    def trimmable(*arguments: Any, **options: Any) -> Any:
        return original(*arguments, **(options | {"retained": None}))

    patch.setattr(ledger_lifecycle, "trimmable", trimmable)


@mutant("recovered", "reloaded", "acked-stays", "backlog", "redelivery-counts")
def unloading_forgets_what_changed(patch: pytest.MonkeyPatch) -> None:
    original = Store.unload

    def unload(self: Store, stored: Any) -> None:
        for cursor in stored.cursors.values():
            cursor._dirty.clear()
        original(self, stored)

    patch.setattr(Store, "unload", unload)


@mutant("unloaded")
def topics_stay_in_memory(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PersistentTopic, "can_unload", lambda self: False)


@mutant("given-back")
def dropped_ledgers_are_not_told_to_the_engine(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Housekeeping, "ledger_dropped", lambda self, ledger_id, now: None)


@mutant("liveness", "nothing-lost", "no-exception", "order")
def packing_drops_what_is_alive(patch: pytest.MonkeyPatch) -> None:
    original = live_records.live_entries

    def take_apart(value: Any, alive: Any) -> Any:
        entries = original(value, alive)
        ledgers = {live.ledger_id for live in entries}
        return [live for live in entries if len(ledgers) < 2 or live.ledger_id != min(ledgers)]

    patch.setattr(memory_engine, "live_entries", take_apart)


@mutant("no-exception", "recovered")
def batches_that_no_checkpoint_covers_are_removed(patch: pytest.MonkeyPatch) -> None:
    original = MemoryEngine.reclaim

    def reclaim(self: MemoryEngine) -> Any:
        mark, self.disk.mark = self.disk.mark, self.disk.next_position - 1
        try:
            return original(self)
        finally:
            self.disk.mark = mark

    patch.setattr(MemoryEngine, "reclaim", reclaim)


@mutant("liveness", "nothing-lost", "no-exception", "order", "backlog", seeds=(25, 26))
def a_compressed_entry_says_that_it_is_shorter(patch: pytest.MonkeyPatch) -> None:
    original = encoder._put

    def put(live: Any, body: bytes, compressed: Any) -> None:
        original(live, body, compressed._replace(size=compressed.size - 1))

    patch.setattr(encoder, "_put", put)


@mutant("liveness", "nothing-lost", "no-exception", "order", "backlog", seeds=(25, 26))
def compressed_entries_are_given_as_they_stand(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Answer, "_unpack", lambda self: self._compressed.clear())


@mutant("recovered", "redelivery-counts")
def redelivery_counts_are_not_in_the_journal(patch: pytest.MonkeyPatch) -> None:
    original = ManagedCursor.take_changes

    def take_changes(self: ManagedCursor) -> list[bytes]:
        self._fresh_counts.clear()
        return original(self)

    patch.setattr(ManagedCursor, "take_changes", take_changes)


@mutant("recovered", "trimmed")
def replay_keeps_trimmed_ledgers(patch: pytest.MonkeyPatch) -> None:
    original = Store._apply_ledger

    def apply(self: Store, stored: Any, ledger_id: int, value: bytes | None) -> None:
        if value is not None:
            original(self, stored, ledger_id, value)

    patch.setattr(Store, "_apply_ledger", apply)


@mutant("given-back")
def replay_does_not_tell_what_was_dropped(patch: pytest.MonkeyPatch) -> None:
    original = Store._apply_ledger

    def apply(self: Store, stored: Any, ledger_id: int, value: bytes | None) -> None:
        original(self, stored, ledger_id, value)
        self.dropped.clear()

    patch.setattr(Store, "_apply_ledger", apply)
