"""After any losses, returns, damage, additions and removals that leave a copy of each entry, all copies are made."""

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from pulsarbox.clock import Now
from pulsarbox.errors import PersistenceError, PulsarBoxError, StoreFull
from pulsarbox.storage.ensemble.member import MemberState
from pulsarbox.storage.ensemble.memory_member import FaultOutcome
from tests.unit.storage.ensemble.keeping.kept_box import KeptBox

NAMES = [f"/{letter}" for letter in "abcdef"]
PICK = st.integers(0, 1 << 16)


def full(operation: str, argument: Any) -> str:
    """Refuse what takes space."""
    if operation in ("commit", "adopt", "check_room"):
        raise StoreFull("the disk is full")
    return FaultOutcome.DONE


class KeptCopies(RuleBasedStateMachine):
    """A box with two copies of everything."""

    def __init__(self) -> None:
        super().__init__()
        self.box: KeptBox
        self.dropped: set[int] = set()

    @initialize(members=st.integers(2, 4))
    def begin(self, members: int) -> None:
        self.box = KeptBox(*NAMES[:members])
        self.box.publish(1)
        self.box.checkpoint()

    # Ordinary work

    @rule(ledger_id=st.integers(1, 4), count=st.integers(1, 30))
    def publish(self, ledger_id: int, count: int) -> None:
        """Publish; too few directories refuse it."""
        if ledger_id in self.dropped:
            return
        try:
            self.box.publish(ledger_id, count)
        except PersistenceError:
            assert self.box.engine.writable < 2

    @rule()
    def checkpoint(self) -> None:
        self.box.checkpoint()

    @precondition(lambda self: len(self.box.ends) > 1)
    @rule(pick=PICK)
    def drop(self, pick: int) -> None:
        """Delete a ledger; its ID is not used again."""
        ledgers = sorted(self.box.ends)
        if len(ledgers) > 2:
            self.box.checkpoint((ledgers[pick % len(ledgers)],))
            self.dropped.add(ledgers[pick % len(ledgers)])

    @rule()
    def maintain(self) -> None:
        self.box.maintain(steps=3000)

    @rule()
    def maintain_a_little(self) -> None:
        """Leave work in the middle."""
        for _ in range(3):
            self.box.engine.maintain(Now(self.box.now, int(self.box.now * 1000) + 1))

    # Losses

    def names(self, *states: str) -> list[str]:
        """The members in these states."""
        return [each.name for each in self.box.engine.status().members if each.state in states]

    def is_needed(self, name: str) -> bool:
        """Whether an entry has no intact copy in another member."""
        return any(
            not set(self.box.copies_of(ledger_id, entry)) - {name}
            for ledger_id, end in self.box.ends.items()
            for entry in range(end)
        )

    @rule(pick=PICK)
    def lose(self, pick: int) -> None:
        names = self.names(MemberState.ACTIVE, MemberState.FULL)
        name = names[pick % len(names)]
        if len(names) > 1 and not self.is_needed(name):
            self.box.disks[name].present = False
            self.box.checkpoint()
            assert self.box.state(name) == MemberState.LOST

    @rule(pick=PICK)
    def come_back(self, pick: int) -> None:
        names = [name for name in self.names(MemberState.LOST) if not self.box.disks[name].present]
        if names:
            self.box.disks[names[pick % len(names)]].present = True

    @rule(pick=PICK)
    def replace_by_an_empty_disk(self, pick: int) -> None:
        names = self.names(MemberState.LOST)
        if names:
            name = names[pick % len(names)]
            self.box.disks[name].wipe()
            self.box.disks[name].present = True
            self.operate(lambda: self.box.engine.replace(name, name, force=True))

    @rule(pick=PICK, entry=PICK)
    def damage(self, pick: int, entry: int) -> None:
        ledgers = sorted(ledger_id for ledger_id, end in self.box.ends.items() if end)
        ledger_id = ledgers[pick % len(ledgers)]
        entry %= self.box.ends[ledger_id]
        copies = self.box.copies_of(ledger_id, entry)
        if len(copies) > 1:
            self.box.flip(copies[pick % len(copies)], ledger_id, entry)
            self.box.engine.scrub(copies[pick % len(copies)])

    @rule(pick=PICK)
    def fill(self, pick: int) -> None:
        names = self.names(MemberState.ACTIVE)
        if len(names) > 1:
            self.box.disks[names[pick % len(names)]].faults = full

    @rule()
    def make_room(self) -> None:
        for disk in self.box.disks.values():
            disk.faults = lambda operation, argument: FaultOutcome.DONE
        self.box.engine.find_room()

    # Operations

    def operate(self, call: Any) -> None:
        """Run an operation, which may be refused."""
        try:
            call()
        except PulsarBoxError:
            return

    @rule(pick=PICK)
    def add(self, pick: int) -> None:
        self.operate(lambda: self.box.engine.add(NAMES[pick % len(NAMES)]))

    @rule(pick=PICK)
    def remove(self, pick: int) -> None:
        names = [each.name for each in self.box.engine.status().members]
        self.operate(lambda: self.box.engine.remove(names[pick % len(names)]))

    @rule(old=PICK, new=PICK)
    def replace(self, old: int, new: int) -> None:
        names = [each.name for each in self.box.engine.status().members]
        self.operate(lambda: self.box.engine.replace(names[old % len(names)], NAMES[new % len(NAMES)]))

    @rule()
    def restart(self) -> None:
        names = [each.name for each in self.box.engine.status().members]
        self.box.engine.close()
        self.box.open(*names)

    # Checks

    @invariant()
    def everything_is_readable(self) -> None:
        if hasattr(self, "box"):
            for ledger_id, end in self.box.ends.items():
                assert [each.entry_id for each in self.box.read(ledger_id)] == list(range(end))

    def teardown(self) -> None:
        if hasattr(self, "box"):
            self.make_room()
            self.box.checkpoint()
            for name in self.names(MemberState.ACTIVE, MemberState.FULL, MemberState.LEAVING):
                self.box.engine.scrub(name)
            for _ in range(3):
                self.box.now += 700
                self.box.maintain(steps=3000)
                self.box.checkpoint()
            if len(self.names(MemberState.ACTIVE)) > 1:
                self.box.assert_complete()


def test_copies_are_kept() -> None:
    run_state_machine_as_test(KeptCopies, settings=settings(max_examples=30, stateful_step_count=25, deadline=None))


@pytest.mark.campaign
def test_copies_are_kept_for_long() -> None:
    run_state_machine_as_test(KeptCopies, settings=settings(max_examples=1500, stateful_step_count=60, deadline=None))
