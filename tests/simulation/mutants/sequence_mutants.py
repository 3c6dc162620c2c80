"""Planted bugs in deduplication, for ``test_mutants``."""

from __future__ import annotations

from typing import Any, cast

import pytest

from pulsarbox.broker.connection.cnx import ServerCnx
from pulsarbox.broker.persistence.group_commit import GroupCommit
from pulsarbox.broker.topic.deduplication import Deduplication
from pulsarbox.broker.topic.producer import AttachedProducer
from pulsarbox.storage import sequence_ids
from pulsarbox.storage.record import Begun, pack_sequence
from pulsarbox.storage.recovery import Store
from pulsarbox.storage.sequence_ids import LastSequence, SequenceIds
from tests.simulation.mutants.registry import mutant


@mutant("once")
def duplicates_are_stored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Deduplication, "_is_new", lambda *_: True)


@mutant("once", "recovered")
def sequence_ids_are_not_in_the_journal(patch: pytest.MonkeyPatch) -> None:
    original = SequenceIds.take_changes

    def take_changes(self: SequenceIds, wall: int) -> list[bytes]:
        original(self, wall)
        return []

    patch.setattr(SequenceIds, "take_changes", take_changes)


@mutant("once", "recovered")
def checkpoints_leave_sequence_ids_out(patch: pytest.MonkeyPatch) -> None:
    original = GroupCommit._checkpoint

    def checkpoint(self: GroupCommit, position: int) -> None:
        self._dirty_sequences.clear()
        original(self, position)

    patch.setattr(GroupCommit, "_checkpoint", checkpoint)


@mutant("once", "recovered", seeds=(82,))
def unloading_forgets_sequence_ids(patch: pytest.MonkeyPatch) -> None:
    original = Store.unload

    def unload(self: Store, stored: Any) -> None:
        stored.sequences._dirty.clear()
        original(self, stored)

    patch.setattr(Store, "unload", unload)


@mutant("once", "recovered")
def a_failed_commit_counts_as_persisted(patch: pytest.MonkeyPatch) -> None:
    original = SequenceIds.roll_back

    def roll_back(self: SequenceIds) -> None:
        self.confirm()
        original(self)

    patch.setattr(SequenceIds, "roll_back", roll_back)


@mutant("once", "recovered", seeds=(22,))
def a_failed_commit_keeps_its_sequence_ids(patch: pytest.MonkeyPatch) -> None:
    """Only the log retains them: the error appears when the log is replayed."""
    original = GroupCommit.failed

    def failed(self: GroupCommit, batch: Any, now: Any, error: Exception) -> None:
        kept = [part for part in batch.parts if part[0] == 7]
        original(self, batch, now, error)
        for part in kept:
            self.open.batch.add(part)

    patch.setattr(GroupCommit, "failed", failed)


@mutant("order")
def receipts_of_duplicates_overtake(patch: pytest.MonkeyPatch) -> None:
    original = AttachedProducer.published

    def published(self: AttachedProducer, messages: int, size: int) -> None:
        original(self, messages, size)
        if not size:  # a duplicate
            commits = cast(ServerCnx, self.cnx).broker.commits
            commits.open.receipts.reverse()

    patch.setattr(AttachedProducer, "published", published)


@mutant("once", seeds=(1062,))
def chunks_are_not_recognised(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Deduplication, "_has_chunk", lambda *_: (False, False))


@mutant("once", seeds=(1062,))
def chunks_are_not_in_the_journal(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(sequence_ids, "pack_sequence", lambda record: pack_sequence(record._replace(begun=None)))


@mutant("once", seeds=(117,))
def a_failed_commit_keeps_its_chunks(patch: pytest.MonkeyPatch) -> None:
    original = SequenceIds.roll_back

    def roll_back(self: SequenceIds) -> None:
        begun = {name: last.begun for name, last in self._under_way.items()} | self._open_begun
        original(self)
        for name, each in begun.items():
            if each is not None:
                last = self.persisted.get(name, LastSequence(sequence_ids.NOTHING, 0))
                self.persisted[name] = last._replace(begun=each)

    patch.setattr(SequenceIds, "roll_back", roll_back)


@mutant("once", seeds=(2,))
def the_first_chunk_stands_for_all(patch: pytest.MonkeyPatch) -> None:
    original = SequenceIds.push_chunk

    def push_chunk(self: SequenceIds, name: str, begun: Begun) -> None:
        original(self, name, begun)
        self.open[name] = begun.sequence_id

    patch.setattr(SequenceIds, "push_chunk", push_chunk)


@mutant("order")
def producers_are_sent_away_before_the_answers(patch: pytest.MonkeyPatch) -> None:
    original = AttachedProducer.refuse

    def refuse(self: AttachedProducer, sequence_id: int, error: Any, now: Any) -> None:
        pending, self.pending = self.pending, 0
        self.disconnect(now)
        self.pending = pending
        original(self, sequence_id, error, now)

    patch.setattr(AttachedProducer, "refuse", refuse)
