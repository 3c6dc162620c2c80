"""Trimmed ledgers after a retained one: counts and searches ignore the trimmed entries completely."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from pulsarbox.storage.cursor import ManagedCursor
from pulsarbox.storage.ledger import ManagedLedger
from pulsarbox.storage.record import Entry, Position, unpack_records
from pulsarbox.storage.recovery import ledger_row, restore_ledger
from tests.unit.storage.test_ledger import Topic, steps

Step = tuple[str, int] | tuple[str]
SUBSCRIPTIONS = ("a", "b")


class Holed(Topic):
    """A topic with two subscriptions. Fully acknowledged ledgers are trimmed, except the current one."""

    def __init__(self) -> None:
        super().__init__()
        self.cursors = {name: ManagedCursor(i, name, self.ledger) for i, name in enumerate(SUBSCRIPTIONS)}
        for cursor in self.cursors.values():
            cursor.reset(self.ledger.first_position(), 0, 0)
        self.left: dict[str, set[Position]] = {name: set() for name in SUBSCRIPTIONS}
        self.stored: list[Entry] = []

    def confirm(self) -> None:
        self.stored += self.open
        for left in self.left.values():
            left.update(entry.position for entry in self.open)
        super().confirm()

    def acknowledge(self, name: str, index: int) -> None:
        if self.confirmed:
            entry = self.confirmed[index % len(self.confirmed)]
            totals = entry.num_messages, len(entry.body), entry.total_messages, entry.total_bytes
            known = self.cursors[name].acknowledge(entry.ledger_id, entry.entry_id, *totals)
            assert known == (entry.position in self.left[name])
            self.left[name].discard(entry.position)

    def trim(self) -> None:
        for info in list(self.ledger.ledgers.values())[:-1]:
            done = info.confirmed == info.entries and all(each.is_done_with(info) for each in self.cursors.values())
            held = any(at.ledger_id == info.ledger_id for left in self.left.values() for at in left)
            if info.confirmed == info.entries:
                assert done == (not held)
            if done:
                holed = self.ledger.drop(info.ledger_id) is not None
                for cursor in self.cursors.values():
                    if holed:
                        cursor.forget_ledger(info.ledger_id)
                self.stored = [entry for entry in self.stored if entry.ledger_id != info.ledger_id]

    def check_holes(self) -> None:
        ledger = self.ledger
        assert ledger.size == sum(len(entry.body) for entry in self.stored + self.open)
        assert ledger.confirmed_entries == len(self.stored)
        if self.stored:
            assert (ledger.last_confirmed, ledger.last_batch) == (
                self.stored[-1].position,
                self.stored[-1].num_messages,
            )
        for name, cursor in self.cursors.items():
            left = [entry for entry in self.stored if entry.position in self.left[name]]
            backlog = sum(entry.num_messages for entry in left), len(left), sum(len(entry.body) for entry in left)
            assert (cursor.backlog_messages, cursor.backlog_entries, cursor.backlog_bytes) == backlog
            first = cursor.next_unacked(cursor.mark_delete)
            if left:
                assert first == left[0].position
            else:
                assert first > ledger.last_confirmed
        for entry in self.stored:
            behind = [each for each in self.stored if each.position > entry.position]
            assert ledger.messages_behind(entry.total_messages) == sum(each.num_messages for each in behind)
            size = sum(len(each.body) for each in behind)
            assert ledger.bytes_behind(entry.total_bytes) == size
            assert ledger.bytes_behind(ledger.total_bytes_before(size)) <= size
            assert ledger.entries_between(entry.position, ledger.last_confirmed) == len(behind)

    def again(self) -> Holed:
        """Return a copy restored from the rows of a checkpoint."""
        other = Holed()
        ledger = other.ledger = ManagedLedger(1)
        for info in self.ledger.ledgers.values():
            restore_ledger(ledger, info.ledger_id, json.loads(json.dumps(ledger_row(self.ledger, info))))
        for name, cursor in self.cursors.items():
            rows = {key: row for key, row in cursor.dirty_rows().items() if row is not None}
            again = other.cursors[name] = ManagedCursor(cursor.cursor_id, name, ledger)
            for key in sorted(rows):
                again.restore(rows[key])
        other.left, other.stored = self.left, self.stored
        return other


histories = st.lists(
    st.one_of(
        steps.map(lambda history: ("run", history)),
        st.tuples(st.just("acknowledge"), st.sampled_from(SUBSCRIPTIONS), st.sets(st.integers(0, 40))),
    ),
    max_size=12,
)


def lived(history: list[tuple[object, ...]]) -> Holed:
    topic = Holed()
    for name, *arguments in history:
        if name == "run":
            for step, *values in arguments[0]:  # type: ignore[attr-defined]
                getattr(topic, step)(*values)
        else:
            subscription, kept = arguments
            for index in range(len(topic.confirmed)):
                if index not in kept:  # type: ignore[operator]
                    topic.acknowledge(str(subscription), index)
        topic.trim()
        topic.check_holes()
    return topic


@given(histories)
def test_what_is_left_is_all_that_counts(history: list[tuple[object, ...]]) -> None:
    lived(history)


@given(histories)
def test_rows_say_what_is_missing(history: list[tuple[object, ...]]) -> None:
    topic = lived(history)
    topic.roll_back()
    topic.again().check_holes()


@given(histories)
def test_acknowledgements_of_a_ledger_that_went_are_in_no_record(history: list[tuple[object, ...]]) -> None:
    topic = lived(history)
    for cursor in topic.cursors.values():
        for packed in cursor.take_changes():
            for _, record in unpack_records(packed):
                for acked in getattr(record, "ranges", ()):
                    assert acked.ledger_id in topic.ledger.ledgers


def test_the_topic_ends_where_the_last_one_that_is_left_ends() -> None:
    topic = Holed()
    for messages in (1, 3, 2):
        topic.append(messages)
        topic.confirm()
        topic.roll()
    for name in SUBSCRIPTIONS:
        topic.acknowledge(name, 2)
    topic.trim()
    ledger = topic.ledger
    assert (ledger.last_confirmed, ledger.last_batch, ledger.confirmed_messages) == (Position(3, 0), 3, 6)
    assert topic.again().ledger.last_batch == 3
    topic.append(4)
    topic.roll_back()
    topic.check_holes()
