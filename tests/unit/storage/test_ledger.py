"""ManagedLedger compared with a list of entries."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from pulsarbox.storage.ledger import ManagedLedger
from pulsarbox.storage.record import Entry, Position


class Topic:
    """A managed ledger with its confirmed and unconfirmed entries."""

    def __init__(self) -> None:
        self.ledger = ManagedLedger(1)
        self.confirmed: list[Entry] = []
        self.open: list[Entry] = []
        self._next_id = 1
        self.roll()

    def roll(self) -> None:
        self.ledger.open_ledger(self._next_id, 0)
        self._next_id += 2

    def append(self, messages: int) -> None:
        ledger = self.ledger
        info = ledger.current
        body = b"x" * (messages * 3)
        totals = ledger.total_messages + messages, ledger.total_bytes + len(body)
        entry = Entry(info.ledger_id, info.entries, 4, messages, *totals, 0, 0, 0, 0, 0, body)
        ledger.append(entry)
        self.open.append(entry)

    def confirm(self) -> None:
        if self.open:
            self.ledger.confirm(self.open)
            self.confirmed += self.open
            self.open = []

    def roll_back(self) -> None:
        self.ledger.roll_back()
        self.open = []

    def check(self) -> None:
        ledger = self.ledger
        everything = self.confirmed + self.open
        assert ledger.confirmed_messages == sum(e.num_messages for e in self.confirmed)
        assert ledger.confirmed_bytes == sum(len(e.body) for e in self.confirmed)
        assert ledger.total_messages == sum(e.num_messages for e in everything)
        assert ledger.size == sum(len(e.body) for e in everything)
        assert ledger.confirmed_entries == len(self.confirmed)
        for info in ledger.ledgers.values():
            before = [e for e in everything if e.ledger_id < info.ledger_id]
            assert info.messages_before == sum(e.num_messages for e in before)
            assert info.entries == sum(e.ledger_id == info.ledger_id for e in everything)
        if self.confirmed:
            assert ledger.last_confirmed == self.confirmed[-1].position
            assert ledger.last_batch == self.confirmed[-1].num_messages
        for before_, after in pairwise(everything):
            assert ledger.next(*before_.position) == after.position


steps = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 5)),
        st.tuples(st.sampled_from(["roll", "confirm", "roll_back"])),
    ),
    max_size=40,
)


def run(history: list[tuple[str, int] | tuple[str]]) -> Topic:
    topic = Topic()
    for name, *arguments in history:
        getattr(topic, name)(*arguments)
    return topic


@given(steps)
def test_totals_are_those_of_the_entries(history: list[tuple[str, int] | tuple[str]]) -> None:
    topic = Topic()
    for name, *arguments in history:
        getattr(topic, name)(*arguments)
        topic.check()


@given(steps, st.integers(0, 30), st.integers(0, 30))
def test_entries_between_are_counted_over_ledgers(
    history: list[tuple[str, int] | tuple[str]], first: int, second: int
) -> None:
    topic = run(history)
    if topic.confirmed:
        low, high = sorted((first % len(topic.confirmed), second % len(topic.confirmed)))
        after, through = topic.confirmed[low].position, topic.confirmed[high].position
        assert topic.ledger.entries_between(after, through) == high - low
        assert topic.ledger.entries_between(topic.ledger.first_position(), through) == high + 1


@given(steps, st.integers(-1, 12), st.integers(-1, 8))
def test_clamp_gives_the_first_entry_from_there_on(
    history: list[tuple[str, int] | tuple[str]], ledger_id: int, entry_id: int
) -> None:
    topic = run(history)
    found = topic.ledger.clamp(ledger_id, entry_id)
    following = [e.position for e in topic.confirmed if e.position >= (ledger_id, entry_id)]
    if following:
        assert found == following[0]
    else:
        assert found > topic.ledger.last_confirmed


@given(steps)
def test_the_tail_holds_what_is_confirmed_until_it_is_forgotten(history: list[tuple[str, int] | tuple[str]]) -> None:
    topic = run(history)
    for entry in topic.confirmed:
        topic.ledger.forget(entry.ledger_id, entry.entry_id, entry.entry_id)
    assert topic.ledger.tail == {}


def test_an_empty_topic_goes_on_with_its_first_entry() -> None:
    topic = Topic()
    assert topic.ledger.next(*topic.ledger.first_position()) == Position(1, 0)
