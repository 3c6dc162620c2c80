"""Planted bugs in moving dead letters, for ``test_mutants``."""

from __future__ import annotations

from typing import Any

import pytest

from pulsarbox.broker.dead_letter import redelivery_limit
from pulsarbox.broker.dead_letter.redelivery_limit import RedeliveryLimit
from pulsarbox.broker.persistence import group_commit
from pulsarbox.broker.persistence.group_commit import GroupCommit
from pulsarbox.storage.cursor import ManagedCursor
from pulsarbox.storage.format import MOVED, RecordKind
from tests.simulation.mutants.registry import mutant

SEEDS = (60, 25, 4, 53, 18, 32, 39, 46)
"""Seeds with the most dead letters."""


@mutant("backlog", "buried", "recovered", "acked-stays", seeds=SEEDS)
def a_move_is_acknowledged_after_its_commit_alone(patch: pytest.MonkeyPatch) -> None:
    """The move and its acknowledgement are committed separately: a crash in between moves the message twice."""

    def move(self: GroupCommit, cursor: Any, letters: Any, each: Any) -> None:
        self.open.moves.setdefault(letters, []).append(each)
        self.open.urgent = True

    patch.setattr(GroupCommit, "move", move)


@mutant("no-exception", "liveness", "acked-stays", "backlog", "buried", "recovered", seeds=SEEDS)
def a_failed_commit_keeps_the_acknowledgement_of_a_move(patch: pytest.MonkeyPatch) -> None:
    original = group_commit._other_records

    def other_records(batch: Any) -> list[bytes]:
        heads = [part for part in batch.covered if part[0] == RecordKind.ACKED and part[1] & MOVED]
        return [*original(batch), *heads]

    patch.setattr(group_commit, "_other_records", other_records)


@mutant("liveness", seeds=(67,))
def what_could_not_be_moved_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RedeliveryLimit, "not_moved", lambda self, moves, now: [self._arrived(move) for move in moves])


@mutant("buried", seeds=SEEDS)
def one_more_delivery_than_allowed(patch: pytest.MonkeyPatch) -> None:
    original = ManagedCursor.redelivery_count

    def count(self: ManagedCursor, position: Any) -> int:
        return max(original(self, position) - 1, 0)

    def take_out(self: RedeliveryLimit, *arguments: Any) -> Any:
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(ManagedCursor, "redelivery_count", count)
            return found(self, *arguments)

    found = RedeliveryLimit.move_exceeding
    patch.setattr(RedeliveryLimit, "move_exceeding", take_out)


@mutant("why", "liveness", seeds=SEEDS)
def nobody_goes_on_when_the_disk_has_caught_up(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(redelivery_limit, "MOVING_MAX", 1)
    original = RedeliveryLimit.moved

    def moved(self: RedeliveryLimit, moves: Any, now: Any) -> None:
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(type(self._subscription), "dispatch", lambda *_: None)
            original(self, moves, now)

    patch.setattr(RedeliveryLimit, "moved", moved)
