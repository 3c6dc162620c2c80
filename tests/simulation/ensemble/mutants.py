"""Planted bugs in ensembles, for ``test_ensemble``."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pulsarbox.errors import EntryDamaged, PersistenceError
from pulsarbox.protocol.checksum import crc32c
from pulsarbox.storage.engine import Checkpoint
from pulsarbox.storage.ensemble import engine, opening
from pulsarbox.storage.ensemble.commit import Commit
from pulsarbox.storage.ensemble.engine import EnsembleEngine
from pulsarbox.storage.ensemble.keeping.rejoin import Rejoining
from pulsarbox.storage.ensemble.member import PackedBatch, Piece
from pulsarbox.storage.ensemble.member_table import MemberTable, Slot
from pulsarbox.storage.ensemble.memory_member import MemoryMember
from pulsarbox.storage.ensemble.opening import EnsembleOpening
from pulsarbox.storage.ensemble.recovery import merged
from pulsarbox.storage.format import BATCH_HEADER
from tests.simulation.ensemble.ensemble_run import entry_of
from tests.simulation.ensemble.replica import ReplicaMember
from tests.simulation.mutants.registry import Mutant, Patch

MUTANTS: dict[str, Mutant] = {}
REPLICA_MUTANTS: dict[str, Mutant] = {}
"""Bugs of ensembles with a replica."""


def mutant(*rules: str, seeds: tuple[int, ...] = ()) -> Callable[[Patch], Patch]:
    """Register a bug with the rules that may detect it, and the seeds to run first."""

    def register(patch: Patch) -> Patch:
        MUTANTS[patch.__name__] = Mutant(patch, frozenset(rules), seeds)
        return patch

    return register


@mutant("quorum")
def a_batch_is_confirmed_with_a_copy_too_few(patch: pytest.MonkeyPatch) -> None:
    original = Commit._needed
    patch.setattr(Commit, "_needed", lambda self, batch: max(1, original(self, batch) - 1))


@mutant("quorum")
def a_part_of_a_batch_is_confirmed_with_a_copy_too_few(patch: pytest.MonkeyPatch) -> None:
    original = Commit._report

    def report(self: Commit, batch: Any, needed: int, copied: Any) -> None:
        wrapped = None if copied is None else lambda batch, copies: copied(batch, copies + 1)
        original(self, batch, needed, wrapped)

    patch.setattr(Commit, "_report", report)


@mutant("whole-batches", "no-exception")
def a_part_of_a_batch_is_adopted(patch: pytest.MonkeyPatch) -> None:
    def parts(sources: Any, mark: int, last: int) -> Iterator[bytes]:
        for position, value in enumerate(merged(sources, mark, last), mark + 1):
            half = value[BATCH_HEADER.size : BATCH_HEADER.size + (len(value) - BATCH_HEADER.size) // 2]
            yield value if position < last else value[: BATCH_HEADER.size] + half

    patch.setattr(engine, "merged", parts)


@mutant("whole-batches", "nothing-lost", "checkpoints", "starts", seeds=(15,))
def the_oldest_membership_is_in_force(patch: pytest.MonkeyPatch) -> None:
    def in_force(known: Any) -> Any:
        return min((each.membership for each in known), key=lambda each: each.generation)

    patch.setattr(opening, "in_force", in_force)


@mutant("whole-batches", "nothing-lost", "checkpoints", "order", seeds=(69,))
def the_log_of_a_fenced_directory_is_valid(patch: pytest.MonkeyPatch) -> None:
    original = EnsembleOpening._assign

    def assign(self: EnsembleOpening, slot: Any, content: Any, records: Any, *, begun: bool) -> None:
        original(self, slot, content, {key: each._replace(left_at=0) for key, each in records.items()}, begun=begun)

    patch.setattr(EnsembleOpening, "_assign", assign)


@mutant("generation", "whole-batches", "nothing-lost")
def the_generation_is_not_raised_when_a_directory_leaves(patch: pytest.MonkeyPatch) -> None:
    original = MemberTable.leave

    def leave(self: MemberTable, slot: Any, state: str, why: str) -> bool:
        with patch.context() as inner:
            inner.setattr(MemberTable, "raise_generation", lambda self: None)
            return original(self, slot, state, why)

    patch.setattr(MemberTable, "leave", leave)


@mutant("checkpoints", "whole-batches", "nothing-lost", "starts", "no-exception", seeds=(13,))
def a_checkpoint_is_written_to_one_directory_only(patch: pytest.MonkeyPatch) -> None:
    def checkpoint(self: EnsembleEngine, checkpoint: Checkpoint) -> None:
        for slot in self.table.belonging:
            try:
                slot.member.checkpoint(checkpoint)
            except PersistenceError:
                continue
            return
        raise PersistenceError("no directory answers")

    patch.setattr(EnsembleEngine, "checkpoint", checkpoint)


@mutant("starts", "nothing-lost", seeds=(350,))
def the_last_batch_is_not_copied_at_a_start(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(EnsembleOpening, "_copy_last", lambda self, log: None)


@mutant("order", "nothing-lost", "repaired", seeds=(39,))
def a_damaged_copy_is_copied(patch: pytest.MonkeyPatch) -> None:
    original = MemoryMember.pieces

    def pieces(self: MemoryMember, ledger_id: int, first: int, end: int, max_bytes: int) -> list[Piece]:
        try:
            return original(self, ledger_id, first, end, max_bytes)
        except EntryDamaged as error:
            text = (error.body or b"")[6:]
            entry = entry_of(ledger_id, first, text)
            position = self.disk.position_of(self.disk.find(ledger_id, first)[0].position)
            return [Piece(position, [entry._replace(checksum=crc32c(text))])]

    patch.setattr(MemoryMember, "pieces", pieces)


def mutant_of_replicas(*rules: str) -> Callable[[Patch], Patch]:
    """Register a bug of replicas, as ``mutant``."""

    def register(patch: Patch) -> Patch:
        REPLICA_MUTANTS[patch.__name__] = Mutant(patch, frozenset(rules), ())
        return patch

    return register


@mutant_of_replicas("quorum")
def a_commit_counts_although_the_connection_has_ended(patch: pytest.MonkeyPatch) -> None:
    original = ReplicaMember.commit

    def commit(self: ReplicaMember, batch: PackedBatch) -> None:
        with contextlib.suppress(PersistenceError):
            original(self, batch)

    patch.setattr(ReplicaMember, "commit", commit)


@mutant_of_replicas("repaired", "checkpoints", "whole-batches", "nothing-lost")
def a_replica_that_is_back_is_used_as_it_is(patch: pytest.MonkeyPatch) -> None:
    original = Rejoining._bring_up_to_date

    def bring_up_to_date(self: Rejoining, slot: Slot) -> None:
        if slot.member.is_remote:
            self._table.join(slot)
        else:
            original(self, slot)

    patch.setattr(Rejoining, "_bring_up_to_date", bring_up_to_date)
