"""The checkers can fail: the matching rule detects each planted bug in the core."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from pulsarbox.broker.connection.cnx import ServerCnx
from pulsarbox.broker.connection.opening import Opening, _nothing
from pulsarbox.broker.connection.outbox import Outbox
from pulsarbox.broker.connection.pending_opening import Kind
from pulsarbox.broker.dispatch.entry_source import EntrySource
from pulsarbox.broker.dispatch.multiple_consumers import MultipleConsumersDispatcher
from pulsarbox.broker.dispatch.shared import SharedDispatcher
from pulsarbox.broker.dispatch.single_active import SingleActiveDispatcher
from pulsarbox.broker.persistence.group_commit import GroupCommit
from pulsarbox.broker.subscription.acknowledgement import AcknowledgementHandling
from pulsarbox.broker.subscription.consumer import Consumer
from pulsarbox.clock import Now
from pulsarbox.storage.cursor import ManagedCursor
from pulsarbox.storage.ledger import ManagedLedger
from pulsarbox.storage.record import Acked, BatchAcked, MarkDelete
from pulsarbox.storage.recovery import Store
from tests.simulation import quickest
from tests.simulation.model.history import Violation
from tests.simulation.mutants.registry import MUTANTS, Mutant, mutant
from tests.simulation.workload import Run
from tests.tools.campaigns import chosen

SEEDS = 60
STEPS = 2500
SHORT_STEPS = 500
QUICKEST = quickest.read()
"""The histories to run first."""
GOOD_SEEDS = (6, 3, 1, 5, 4, 2, 0, 7, 23, 33, 28, 17, 29, 160, 303)
"""Seeds to run next: together they detect every bug below; 23, 33 and 28 those of rates, the last ones those of
deduplication. All other seeds follow: a change of the simulation then costs only time.
"""


@mutant("liveness")
def what_a_consumer_held_is_forgotten_when_it_goes(patch: pytest.MonkeyPatch) -> None:
    original = MultipleConsumersDispatcher.remove

    def remove(self: MultipleConsumersDispatcher, consumer: Consumer, now: Any, *, lost: bool = False) -> None:
        consumer.release_all()
        original(self, consumer, now, lost=lost)

    patch.setattr(MultipleConsumersDispatcher, "remove", remove)


@mutant("permits")
def permits_are_never_used_up(patch: pytest.MonkeyPatch) -> None:
    original = Consumer.deliver

    def deliver(self: Consumer, *arguments: Any) -> None:
        before = self.permits
        original(self, *arguments)
        self.permits = before

    patch.setattr(Consumer, "deliver", deliver)


@mutant("visibility")
def receipts_leave_before_the_commit(patch: pytest.MonkeyPatch) -> None:
    original = GroupCommit.take

    def take(self: GroupCommit, now: Any) -> Any:
        batch = original(self, now)
        if batch is not None and self.in_flight is not None:
            for producer, sequence_id, highest, ledger_id, entry_id in self.in_flight.receipts:
                producer.receipt(sequence_id, highest, ledger_id, entry_id, now)
            self.in_flight.receipts.clear()
        return batch

    patch.setattr(GroupCommit, "take", take)


@mutant("visibility", "backlog")
def entries_are_delivered_before_the_commit(patch: pytest.MonkeyPatch) -> None:
    original = ManagedLedger.append

    def append(self: ManagedLedger, entry: Any) -> None:
        original(self, entry)
        if self.current.ledger_id == entry.ledger_id:
            self.confirm([entry])

    patch.setattr(ManagedLedger, "append", append)


@mutant("recovered", "nothing-lost", "no-exception", "backlog")
def recovery_forgets_the_last_batch(patch: pytest.MonkeyPatch) -> None:
    original = Store.__init__

    def init(self: Store, recovery: Any) -> None:
        batches = list(recovery.batches)
        original(self, recovery._replace(batches=iter(batches[:-1])))

    patch.setattr(Store, "__init__", init)


@mutant("recovered", "acked-stays")
def single_acks_are_not_in_the_journal(patch: pytest.MonkeyPatch) -> None:
    original = ManagedCursor.take_changes

    def take_changes(self: ManagedCursor) -> list[bytes]:
        self._fresh.clear()
        return original(self)

    patch.setattr(ManagedCursor, "take_changes", take_changes)


@mutant("recovered", "acked-stays")
def batch_acks_are_not_in_the_journal(patch: pytest.MonkeyPatch) -> None:
    original = ManagedCursor.take_changes

    def take_changes(self: ManagedCursor) -> list[bytes]:
        self._fresh_batches.clear()
        return original(self)

    patch.setattr(ManagedCursor, "take_changes", take_changes)


@mutant("recovered", "backlog", "acked-stays")
def a_reset_is_replayed_as_a_move(patch: pytest.MonkeyPatch) -> None:
    original = ManagedCursor.replay

    def replay(self: ManagedCursor, record: MarkDelete | Acked | BatchAcked) -> None:
        original(self, record._replace(reset=False) if isinstance(record, MarkDelete) else record)

    patch.setattr(ManagedCursor, "replay", replay)


@mutant("recovered", "backlog", "nothing-lost")
def replayed_entries_count_twice(patch: pytest.MonkeyPatch) -> None:
    original = ManagedLedger.replay

    def replay(self: ManagedLedger, last: Any, count: int, size: int) -> None:
        original(self, last, count, size)
        self.ledgers[last.ledger_id].size += len(last.body)

    patch.setattr(ManagedLedger, "replay", replay)


@mutant("order", "one-holder", "acked-stays", "permits", "recovered")
def answers_to_old_reads_are_delivered_after_a_rewind(patch: pytest.MonkeyPatch) -> None:
    original = EntrySource._answer

    def answer(self: EntrySource, generation: int, *arguments: Any) -> None:
        original(self, self._generation, *arguments)

    patch.setattr(EntrySource, "_answer", answer)


@mutant("order", "liveness", "one-holder")
def the_source_does_not_rewind(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SingleActiveDispatcher, "rewind", lambda self: None)


@mutant("backlog", "recovered")
def mark_delete_keeps_wrong_totals(patch: pytest.MonkeyPatch) -> None:
    original = ManagedCursor._mark

    def mark(self: ManagedCursor, position: Any, total_messages: int, total_bytes: int) -> None:
        original(self, position, total_messages, max(0, total_bytes - 1))

    patch.setattr(ManagedCursor, "_mark", mark)


@mutant("visibility", "nothing-lost")
def a_failed_commit_sends_receipts(patch: pytest.MonkeyPatch) -> None:
    original = GroupCommit.failed

    def failed(self: GroupCommit, batch: Any, now: Any, error: Exception) -> None:
        if self.in_flight is not None:
            for producer, sequence_id, highest, ledger_id, entry_id in self.in_flight.receipts:
                producer.receipt(sequence_id, highest, ledger_id, entry_id, now)
            self.in_flight.receipts.clear()
        original(self, batch, now, error)

    patch.setattr(GroupCommit, "failed", failed)


@mutant("backlog", "acked-stays", "liveness")
def batch_acks_are_ignored(patch: pytest.MonkeyPatch) -> None:
    original = AcknowledgementHandling._apply_individual

    def apply(self: AcknowledgementHandling, consumer: Consumer, message_id: Any, held: Any) -> None:
        if not message_id.ack_set:
            original(self, consumer, message_id, held)

    patch.setattr(AcknowledgementHandling, "_apply_individual", apply)


@mutant("one-holder")
def redelivered_entries_go_out_twice(patch: pytest.MonkeyPatch) -> None:
    original = SharedDispatcher._wait_again

    def wait_again(self: SharedDispatcher, given_back: Any) -> None:
        original(self, given_back)
        self._waiting.add_all(list(given_back)[:1])

    patch.setattr(SharedDispatcher, "_wait_again", wait_again)


@mutant("one-reply")
def callbacks_of_a_failed_commit_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    original = GroupCommit.failed

    def failed(self: GroupCommit, batch: Any, now: Any, error: Exception) -> None:
        if self.in_flight is not None:
            self.in_flight.callbacks.clear()
        original(self, batch, now, error)

    patch.setattr(GroupCommit, "failed", failed)


@mutant("one-reply")
def a_close_is_answered_before_what_it_closes(patch: pytest.MonkeyPatch) -> None:
    def abandon(self: ServerCnx, kind: Kind, object_id: int, now: Now) -> None:
        opening = self.opening.get((kind, object_id))
        if opening is not None:
            self.broker.timers.at(now.monotonic, opening.abandon)

    patch.setattr(ServerCnx, "abandon", abandon)


@mutant("attached")
def what_is_abandoned_stays_attached_until_it_would_be_open(patch: pytest.MonkeyPatch) -> None:
    original = Opening.abandon

    def abandon(self: Opening, now: Now) -> None:
        undo, self.undo = self.undo, _nothing
        self.cnx.broker.when_durable(undo, now)
        original(self, now)

    patch.setattr(Opening, "abandon", abandon)


@mutant("memory")
def a_full_outbox_is_filled_on(patch: pytest.MonkeyPatch) -> None:
    original = Outbox.send_parts

    def send_parts(self: Outbox, parts: list[bytes], size: int) -> None:
        original(self, parts, size)
        self.full = False

    patch.setattr(Outbox, "send_parts", send_parts)


@mutant("liveness", "nothing-lost")
def a_rested_connection_is_not_used_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ServerCnx, "writable", lambda self, now: None)


@mutant("acked-stays", "recovered")
def checkpoints_leave_cursors_out(patch: pytest.MonkeyPatch) -> None:
    original = GroupCommit._checkpoint

    def checkpoint(self: GroupCommit, position: int) -> None:
        self._dirty_cursors.clear()
        original(self, position)

    patch.setattr(GroupCommit, "_checkpoint", checkpoint)


@mutant("mark-delete", "backlog", "acked-stays", seeds=(116,))
def a_cumulative_ack_may_go_back(patch: pytest.MonkeyPatch) -> None:
    def acknowledge_through(self: ManagedCursor, position: Any, total_messages: int, total_bytes: int) -> bool:
        self._mark(position, total_messages, total_bytes)
        self._drop_behind_mark()
        self._absorb()
        return True

    patch.setattr(ManagedCursor, "acknowledge_through", acknowledge_through)


@mutant("keep-alive")
def silence_is_not_noticed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ServerCnx, "_keep_alive", lambda self, now: None)


@mutant("names")
def starts_are_not_counted(patch: pytest.MonkeyPatch) -> None:
    original = Store.ids
    patch.setattr(Store, "ids", lambda self: original(self) | {"boot": 0})


def seeds_for(bug: Mutant, count: int) -> list[int]:
    """Return the seeds to run, in order."""
    good = () if bug.first else GOOD_SEEDS
    return [*dict.fromkeys((*bug.seeds, *good, *range(bug.first, bug.first + count)))]


def broken_rule(seed: int, steps: int = STEPS) -> str | None:
    """Return the rule that a seed violates, or None."""
    try:
        Run(seed).run(steps)
    except Violation as violation:
        return violation.rule
    except Exception:
        return "no-exception"
    return None


def _in_short_form() -> set[str]:
    """Return the bugs planted by `make test`: the first one detected per rule, and all detected within 200 steps.

    Bugs that need a history of more than ``SHORT_STEPS`` are left to the campaign.
    """
    soonest: dict[frozenset[str], str] = {}
    for name, (_, steps) in QUICKEST.items():
        if name in MUTANTS and steps <= SHORT_STEPS:
            first = soonest.setdefault(MUTANTS[name].rules, name)
            if steps < QUICKEST[first].steps:
                soonest[MUTANTS[name].rules] = name
    return {*soonest.values(), *(name for name, (_, steps) in QUICKEST.items() if steps <= 200)}


@pytest.mark.parametrize("name", chosen(MUTANTS, _in_short_form().__contains__))
def test_a_bug_is_noticed_by_its_rule(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    logging.disable(logging.CRITICAL)
    try:
        MUTANTS[name].patch(monkeypatch)
        soonest = QUICKEST.get(name)
        if soonest is not None and broken_rule(*soonest) in MUTANTS[name].rules:
            return
        found = {}
        for seed in seeds_for(MUTANTS[name], SEEDS):
            rule = broken_rule(seed)
            if rule in MUTANTS[name].rules:
                return
            found[seed] = rule
        pytest.fail(f"{sorted(MUTANTS[name].rules)} did not notice; found was {found}")
    finally:
        logging.disable(logging.NOTSET)
