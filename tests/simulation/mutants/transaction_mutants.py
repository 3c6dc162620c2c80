"""Planted bugs in transactions, for ``test_mutants``, including those that the simulation found in the box."""

from __future__ import annotations

from functools import partial
from itertools import islice
from typing import Any

import pytest

from pulsarbox.broker.transactions import coordinator, topic_outcome
from pulsarbox.broker.transactions.coordinator import Coordinator
from pulsarbox.broker.transactions.epoch_commit import Epochs
from pulsarbox.broker.transactions.pending_acks import PendingAcks
from pulsarbox.broker.transactions.transaction import ABORTED, COMMITTED
from pulsarbox.storage.catalog import PENDING, Catalog
from pulsarbox.storage.recovery import Store, StoredTopic
from pulsarbox.storage.transaction_acks import ClaimedSets, TransactionAcks
from pulsarbox.storage.transactions import OpenEntries
from tests.simulation.mutants import registry as mutants
from tests.simulation.workload import TRANSACTING

mutant = partial(mutants.mutant, first=TRANSACTING)
"""Register a bug that only seeds with transactions can detect."""


@mutant("outcome", "unseen", "backlog", "recovered")
def an_abort_forgets_all_topics_but_one(patch: pytest.MonkeyPatch) -> None:
    original = Coordinator._touched

    def touched(self: Coordinator, txn: Any, now: Any) -> Any:
        topics = original(self, txn, now)
        return islice(topics, 1) if txn.ending == ABORTED else topics

    patch.setattr(Coordinator, "_touched", touched)


@mutant("acked-stays", "backlog", "pledged", "liveness", "recovered")
def a_commit_leaves_the_acknowledgements_out(patch: pytest.MonkeyPatch) -> None:
    def commit(self: PendingAcks, txn: Any, now: Any) -> None:
        for claim in self.claims.entries.values():
            claim.drop(txn.id)
        self._forget(txn.id)

    patch.setattr(PendingAcks, "commit", commit)


@mutant("outcome", "unseen", "recovered")
def recovery_forgets_what_is_open(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Store, "_replay_open", lambda self, header: None)


@mutant("outcome", "unseen", "recovered")
def checkpoints_leave_what_is_open_out(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(OpenEntries, "dirty_rows", lambda self: {})


@mutant("unseen")
def readers_go_one_entry_too_far(patch: pytest.MonkeyPatch) -> None:
    def limited(self: StoredTopic, at: tuple[int, int]) -> None:
        self.ledger.read_limit = (at[0], at[1] + 1)

    patch.setattr(StoredTopic, "_limited", limited)


@mutant("outcome")
def a_time_out_commits(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(coordinator, "ABORTED", COMMITTED)


@mutant("unseen", "backlog", "recovered")
def a_cursor_that_is_set_back_forgets_what_was_aborted(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(StoredTopic, "skip_aborted", lambda self, cursor: None)


@mutant("outcome", "unseen", "backlog", "recovered")
def what_is_aborted_is_in_memory_only(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(topic_outcome, "aborted_rows", lambda topic_id, runs: {})


@mutant("pledged", "outcome")
def a_restart_forgets_acknowledgements(patch: pytest.MonkeyPatch) -> None:
    original = Catalog.items

    def items(self: Catalog, prefix: str, after: str = "", before: str = "") -> Any:
        return iter(()) if prefix == PENDING else original(self, prefix, after, before)

    patch.setattr(Catalog, "items", items)


@mutant("pledged", "acked-stays")
def what_is_acknowledged_is_sent_until_the_commit(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(TransactionAcks, "has", lambda self, at: False)
    patch.setattr(ClaimedSets, "get", lambda self, at: self._partly(at))


@mutant("liveness")
def an_abort_sends_nothing_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PendingAcks, "_send_again", lambda self, at, dispatcher, life, now: None)


@mutant("epochs")
def an_epoch_is_noted_after_its_transactions(patch: pytest.MonkeyPatch) -> None:
    original = Epochs._settled

    def settled(self: Epochs, sink: str, owner: str | None, now: Any) -> None:
        commits, rows = self._commits, []
        kept, commits.put_row = commits.put_row, lambda key, row: rows.append((key, row))  # type: ignore[method-assign]
        original(self, sink, owner, now)
        commits.put_row = kept  # type: ignore[method-assign]
        for key, row in rows:
            commits.after_commit(lambda when, key=key, row=row: commits.put_row(key, row))  # type: ignore[misc]

    patch.setattr(Epochs, "_settled", settled)


@mutant("outcome")
def an_end_is_told_before_it_is_durable(patch: pytest.MonkeyPatch) -> None:
    original = Coordinator.end

    def end(self: Coordinator, txn_id: Any, outcome: str, who: Any, answer: Any, now: Any) -> None:
        ended = self._transactions.ended.get(txn_id)
        if ended is not None and ended.state == outcome and ended.connection is not who:
            answer(None, now)
        else:
            original(self, txn_id, outcome, who, answer, now)

    patch.setattr(Coordinator, "end", end)


@mutant("one-reply")
def who_asks_twice_is_answered_once(patch: pytest.MonkeyPatch) -> None:
    original = Coordinator._has_ended

    def has_ended(self: Coordinator, txn: Any, topics: Any, now: Any) -> None:
        txn.waiting = list(dict(txn.waiting).items())
        original(self, txn, topics, now)

    patch.setattr(Coordinator, "_has_ended", has_ended)
