"""Repair: missing copies are made, damaged ones replaced, and no damaged one is ever copied."""

from collections.abc import Iterable
from typing import Any

import pytest

from pulsarbox.errors import PersistenceError, StoreFull
from pulsarbox.storage.ensemble.keeping import repair
from pulsarbox.storage.ensemble.keeping.auditor import Auditor
from pulsarbox.storage.ensemble.keeping.fragments import merged
from pulsarbox.storage.ensemble.keeping.repair import Damage, Repairer
from pulsarbox.storage.ensemble.member import MemberState, Piece
from pulsarbox.storage.ensemble.memory_member import FaultOutcome
from pulsarbox.storage.ensemble.status import Fragment
from tests.unit.storage.ensemble.keeping.kept import KeptEnsemble


@pytest.fixture
def kept() -> KeptEnsemble:
    return KeptEnsemble("a", "b", "c")


class Repairing:
    """Auditor and repairer on one clock."""

    def __init__(self, kept: KeptEnsemble, rate: int = 0) -> None:
        self.now = 0.0
        self.auditor = Auditor(kept, 60)
        self.repairer = Repairer(kept, self.auditor, rate, lambda: self.now)

    def run(self, steps: int = 1000) -> int:
        """Run until nothing is left to do; return the number of repair steps."""
        done = 0
        for _ in range(steps):
            if self.auditor.step(self.now, 1) is not None:
                continue
            if self.repairer.step(self.now) is None:
                break
            done += 1
        return done


def test_missing_copies_are_made(kept: KeptEnsemble) -> None:
    kept.write(1, 0, 4, "a", "b")
    kept.write(1, 4, 4, "b")
    kept.write(2, 0, 4, "a")
    kept.exists(1, 8)
    kept.exists(2, 4, want=3)
    work = Repairing(kept)
    work.run()
    assert [length(kept, name) for name in "abc"] == [8 + 4, 8 + 4, 4] or work.auditor.missing == []
    kept.assert_copies(2, 0, 4, "a", "b", "c")
    assert work.repairer.status.entries_left == 0
    assert work.repairer.status.bytes_done > 0
    assert [event.kind for event in kept.events] == ["fragments-repaired"]


def length(kept: KeptEnsemble, name: str) -> int:
    """The number of entries that a member has."""
    return sum(end - first for ledger_id in (1, 2) for first, end in kept.runs(name, ledger_id))


def test_all_copies_are_intact_after_a_member_is_lost(kept: KeptEnsemble) -> None:
    for at in range(20):
        kept.write(1, 5 * at, 5, *"abcab"[at % 3 : at % 3 + 2])
    kept.exists(1, 100)
    kept.states["b"] = MemberState.LOST
    Repairing(kept).run()
    kept.assert_copies(1, 0, 5, "a", "b", "c")
    for first in range(0, 100, 5):
        assert [(0, 100)] == kept.runs("a", 1) == kept.runs("c", 1), first


def test_small_ledgers_are_copied_together(kept: KeptEnsemble) -> None:
    for ledger_id in range(1, 101):
        kept.write(ledger_id, 0, 1, "a")
        kept.exists(ledger_id, 1)
    assert Repairing(kept).run() == 1
    kept.assert_copies(57, 0, 1, "a", "b")


def test_a_step_is_bounded(kept: KeptEnsemble, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repair, "STEP_BYTES", 1000)
    for at in range(10):
        kept.write(1, at, 1, "a", size=500)
    kept.exists(1, 10)
    work = Repairing(kept)
    assert work.run() >= 5
    assert merged([*kept.runs("b", 1), *kept.runs("c", 1)]) == [(0, 10)]


def test_the_rate_holds_back_steps(kept: KeptEnsemble) -> None:
    for ledger_id in (1, 2):
        kept.write(ledger_id, 0, 4, "a", size=5000)
        kept.exists(ledger_id, 4)
    work = Repairing(kept, rate=1000)
    work.run()
    work.repairer.damaged(Damage("a", 1, 0, 1, "?"))
    assert work.repairer.step(0.0) is None
    assert work.repairer.pace.due == pytest.approx(39, abs=3)
    assert work.repairer.step(work.repairer.pace.due) is not None


def test_a_damaged_copy_is_no_source(kept: KeptEnsemble) -> None:
    kept.write(1, 0, 4, "a", "b")
    kept.exists(1, 4, want=3)
    kept.flip("a", 1, 2)
    Repairing(kept).run()
    kept.assert_copies(1, 0, 4, "a", "b", "c")
    assert [event.kind for event in kept.events] == ["fragments-repaired", "entries-damaged", "fragments-repaired"]


def test_a_damaged_copy_is_replaced_on_its_own_member(kept: KeptEnsemble) -> None:
    kept.gone.append("c")
    kept.write(1, 0, 4, "a", "b")
    kept.exists(1, 4)
    kept.flip("a", 1, 2)
    work = Repairing(kept)
    work.run()
    work.repairer.damaged(Damage("a", 1, 2, 3, "flipped"))
    work.run()
    kept.assert_copies(1, 0, 4, "a", "b")
    assert "a: entries 1:2 to 2 are damaged (flipped)" in kept.events[0].text


def test_the_only_copy_is_kept_even_if_damaged(kept: KeptEnsemble) -> None:
    kept.write(1, 0, 4, "a", "b")
    kept.exists(1, 4, want=3)
    for name in "ab":
        kept.flip(name, 1, 2)
    work = Repairing(kept)
    work.run()
    assert kept.runs("a", 1) == kept.runs("b", 1) == [(0, 4)]
    assert kept.runs("c", 1) == [(0, 2), (3, 4)]
    texts = [event.text for event in kept.events]
    assert len(texts) == 2
    assert all("no other directory has them intact" in text for text in texts)


def test_entries_after_a_damaged_one_are_repaired(kept: KeptEnsemble) -> None:
    kept.write(1, 0, 8, "a")
    kept.exists(1, 8)
    kept.flip("a", 1, 3)
    Repairing(kept).run()
    assert merged([*kept.runs("b", 1), *kept.runs("c", 1)]) == [(0, 3), (4, 8)]


def test_a_copy_that_cannot_be_read_back_is_forgotten(kept: KeptEnsemble) -> None:
    kept.write(1, 0, 4, "a")
    kept.exists(1, 4)
    member = kept.members["b"]
    adopt = member.adopt

    def damage(pieces: Iterable[Piece]) -> int:
        size = adopt(pieces)
        kept.flip("b", 1, 2)
        return size

    member.adopt = damage  # type: ignore[method-assign]
    work = Repairing(kept)
    work.run()
    kept.assert_copies(1, 0, 4, "a", "c")
    assert "differ" in work.repairer.status.last_error


def test_a_full_target_is_avoided(kept: KeptEnsemble) -> None:
    def full(operation: str, argument: Any) -> str:
        if operation == "adopt":
            raise StoreFull("full")
        return FaultOutcome.DONE

    kept.write(1, 0, 4, "a")
    kept.exists(1, 4)
    kept.disks["b"].faults = full
    work = Repairing(kept)
    work.run()
    kept.assert_copies(1, 0, 4, "a", "c")
    assert work.repairer.status.last_error == "b: full"


def test_a_source_that_cannot_be_read_is_replaced_by_another(kept: KeptEnsemble) -> None:
    def unreadable(operation: str, argument: Any) -> str:
        if operation == "pieces":
            raise PersistenceError("I/O error")
        return FaultOutcome.DONE

    kept.write(1, 0, 4, "a", "b")
    kept.exists(1, 4, want=3)
    kept.disks["a"].faults = unreadable
    work = Repairing(kept)
    work.run()
    kept.disks["a"].faults = lambda operation, argument: FaultOutcome.DONE
    kept.assert_copies(1, 0, 4, "a", "b", "c")


def test_deleted_ledgers_are_not_repaired(kept: KeptEnsemble) -> None:
    kept.write(1, 0, 4, "a")
    kept.exists(1, 4)
    work = Repairing(kept)
    work.auditor.step(0.0, 1)
    work.auditor.step(0.0, 1)
    assert work.auditor.missing == [Fragment(1, 0, 4, ("a",), 2)]
    kept.delete(1)
    assert work.run() <= 2
    work.now = 60.0
    assert work.run() == 0
    assert work.auditor.missing == []


def test_without_a_target_nothing_is_done(kept: KeptEnsemble) -> None:
    kept.write(1, 0, 4, "a", "b", "c")
    kept.exists(1, 4, want=4)
    work = Repairing(kept)
    assert work.run() == 0
    assert work.repairer.status.entries_left == 4


def test_the_entries_of_a_leaving_member_are_copied(kept: KeptEnsemble) -> None:
    kept.write(1, 0, 4, "a", "b")
    kept.exists(1, 4)
    kept.states["a"] = MemberState.LEAVING
    work = Repairing(kept)
    work.run()
    kept.assert_copies(1, 0, 4, "a", "b", "c")
    assert work.auditor.released() == ["a"]
