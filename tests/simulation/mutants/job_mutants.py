"""Planted bugs in dead letter jobs, for ``test_mutants``."""

from __future__ import annotations

from typing import Any

import pytest

from pulsarbox.broker.persistence.group_commit import GroupCommit
from pulsarbox.broker.replay.runner import EntryStep, JobRun
from tests.simulation.mutants.registry import mutant


@mutant("risen", seeds=(704, 4421))
def a_job_says_how_far_it_is_after_its_commit(patch: pytest.MonkeyPatch) -> None:
    """The progress and the replay are committed separately: a crash in between replays a message twice."""

    def send(self: JobRun, steps: list[EntryStep], before: Any, now: Any) -> None:
        self._before = before
        for step in steps:
            step.subscription.job_moves += 1
            self._commits.move(step.subscription.cursor, self, step)

    original = JobRun.moved

    def moved(self: JobRun, moves: list[EntryStep], now: Any) -> None:
        original(self, moves, now)
        self._store_progress()

    patch.setattr(JobRun, "_send", send)
    patch.setattr(JobRun, "moved", moved)


@mutant("risen", "no-exception", seeds=(200, 1901))
def what_a_job_could_not_store_counts_as_done(patch: pytest.MonkeyPatch) -> None:
    def not_moved(self: JobRun, moves: list[EntryStep], now: Any) -> None:
        self._before = None
        self._arrived(moves)
        self._again(now.monotonic)

    patch.setattr(JobRun, "not_moved", not_moved)


@mutant("risen", "backlog", "recovered", "acked-stays", seeds=(200, 326))
def a_job_acknowledges_after_its_commit_alone(patch: pytest.MonkeyPatch) -> None:
    original = GroupCommit.move

    def move(self: GroupCommit, cursor: Any, mover: Any, each: Any) -> None:
        if not isinstance(each, EntryStep):
            original(self, cursor, mover, each)
            return
        self.open.moves.setdefault(mover, []).append(each)
        self.open.urgent = True

    patch.setattr(GroupCommit, "move", move)
