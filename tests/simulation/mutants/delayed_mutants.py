"""Planted bugs in delayed delivery, for ``test_mutants``."""

from __future__ import annotations

from typing import Any

import pytest

from pulsarbox.broker.dispatch import delayed as of_dispatch
from pulsarbox.broker.dispatch.delayed import Delayed
from pulsarbox.broker.dispatch.entry_source import EntrySource
from pulsarbox.broker.persistence.group_commit import GroupCommit
from pulsarbox.broker.subscription.subscription import Subscription
from pulsarbox.storage.delayed_index import Delays
from pulsarbox.storage.record import Position
from pulsarbox.storage.recovery import Store
from tests.simulation.mutants.registry import mutant

SEEDS = (34, 79, 14, 174)
"""Seeds that together detect every bug below."""


@mutant("not-before", seeds=SEEDS)
def delays_do_not_count(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Subscription, "_set_delayed", lambda self, sub_type: None)


@mutant("not-before", seeds=SEEDS)
def all_of_a_chunk_comes_with_its_first(patch: pytest.MonkeyPatch) -> None:
    original = Delayed._pull_chunk

    def pull_chunk(self: Delayed, key: Any, cutoff: int, passed: Any, found: Any) -> int:
        return original(self, key, of_dispatch.NEVER, passed, found)

    patch.setattr(Delayed, "_pull_chunk", pull_chunk)


@mutant("liveness", seeds=SEEDS)
def nobody_rings_when_one_is_due(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Delayed, "wait", lambda self, now: None)


@mutant("liveness", seeds=SEEDS)
def what_was_passed_by_is_forgotten_when_something_is_sent(patch: pytest.MonkeyPatch) -> None:
    original = Delayed.next_entries

    def take(self: Delayed, *arguments: Any) -> Any:
        entries = original(self, *arguments)
        if entries:
            self._heap.clear()
            self._next.clear()
        return entries

    patch.setattr(Delayed, "next_entries", take)


@mutant("one-holder", "acked-stays", "held", "tally", seeds=(39,))
def what_is_due_is_taken_from_the_table_and_from_the_log(patch: pytest.MonkeyPatch) -> None:
    """The source dispatches an entry again that the table of delayed entries has already dispatched."""
    original = Delayed.next_entries

    def take(self: Delayed, max_entries: int, max_messages: int, max_bytes: Any, passed: Any, now: Any) -> Any:
        ahead = self._ledger.last_confirmed
        return original(self, max_entries, max_messages, max_bytes, Position(ahead[0], ahead[1] + 1), now)

    patch.setattr(Delayed, "next_entries", take)


@mutant("liveness", seeds=SEEDS)
def the_mark_goes_on_past_what_was_not_pulled(patch: pytest.MonkeyPatch) -> None:
    original = Delayed._pull

    def pull(self: Delayed, cutoff: int, passed: Any) -> None:
        original(self, cutoff, passed)
        self._mark = max(self._mark, (cutoff, of_dispatch.NEVER, of_dispatch.NEVER))

    patch.setattr(Delayed, "_pull", pull)


@mutant("delays-kept", "recovered", seeds=SEEDS)
def checkpoints_leave_delays_out(patch: pytest.MonkeyPatch) -> None:
    original = GroupCommit._checkpoint

    def checkpoint(self: GroupCommit, position: int) -> None:
        for delays in self._dirty_delays:
            delays._changed.clear()
        original(self, position)

    patch.setattr(GroupCommit, "_checkpoint", checkpoint)


@mutant("delays-kept", "recovered", seeds=SEEDS)
def a_failed_commit_keeps_its_delays(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Delays, "roll_back", lambda self, last: False)


@mutant("delays-kept", "recovered", seeds=(49,))
def the_log_is_replayed_without_delays(patch: pytest.MonkeyPatch) -> None:
    original = Store._replay_runs

    def replay_runs(self: Store, batch: bytes) -> None:
        self._delayed.clear()
        original(self, batch)

    patch.setattr(Store, "_replay_runs", replay_runs)


@mutant("not-before", "liveness", "why", seeds=SEEDS)
def reading_ahead_passes_by(patch: pytest.MonkeyPatch) -> None:
    """A skipped entry may fall due before the source reaches it."""

    def holds_back(self: Delayed, position: Any) -> bool:
        return False

    original = EntrySource._answer

    def answer(self: EntrySource, generation: int, first: Any, entries: Any, error: Any, now: Any) -> None:
        wall = now.wall
        original(self, generation, first, [entry for entry in entries if entry[9] <= wall], error, now)

    patch.setattr(Delayed, "holds_back", holds_back)
    patch.setattr(EntrySource, "_answer", answer)
