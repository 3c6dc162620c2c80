"""Scrub: every entry of every member is verified, at a rate, and a restart goes on."""

from typing import Any

import pytest

from pulsarbox.errors import PersistenceError
from pulsarbox.storage.ensemble.keeping import scrub
from pulsarbox.storage.ensemble.keeping.repair import RETRY_SECONDS, Damage
from pulsarbox.storage.ensemble.keeping.scrub import Scrubber
from pulsarbox.storage.ensemble.member import MemberState
from pulsarbox.storage.ensemble.memory_member import FaultOutcome
from tests.unit.storage.ensemble.keeping.kept import KeptEnsemble

DAY = 86_400_000


@pytest.fixture
def kept() -> KeptEnsemble:
    kept = KeptEnsemble("a", "b")
    for ledger_id in (1, 2, 3):
        kept.write(ledger_id, 0, 4, "a", "b")
        kept.write(ledger_id, 4, 4, "a")
    return kept


class Scrubbing:
    """A scrubber and its findings."""

    def __init__(self, kept: KeptEnsemble, rate: int = 0, days: float = 7) -> None:
        self.found: list[Damage] = []
        self.scrubber = Scrubber(kept, self.found.append, rate, days)

    def run(self, wall: int = 30 * DAY, steps: int = 1000) -> int:
        """Run until nothing is due; return the bytes verified."""
        size = 0
        for _ in range(steps):
            done = self.scrubber.step(0.0, wall)
            if done is None:
                break
            size += done.bytes
        return size


def test_all_entries_of_all_members_are_verified(kept: KeptEnsemble) -> None:
    work = Scrubbing(kept)
    assert work.run() == 46 * (3 * 8 + 3 * 4)
    assert work.found == []
    status = work.scrubber.status("a")
    assert (status.done_bytes, status.total_bytes, status.finished) == (46 * 24, 0, 30 * DAY)


def test_the_next_scrub_begins_after_the_period(kept: KeptEnsemble) -> None:
    work = Scrubbing(kept)
    work.run()
    assert work.run(37 * DAY - 1) == 0
    assert work.run(37 * DAY) > 0


def test_no_period_means_no_scrub(kept: KeptEnsemble) -> None:
    assert Scrubbing(kept, days=0).run() == 0


def test_damaged_entries_are_found_and_the_others_still_verified(kept: KeptEnsemble) -> None:
    kept.flip("a", 1, 2)
    kept.flip("a", 3, 7)
    kept.flip("b", 2, 0)
    work = Scrubbing(kept)
    assert work.run() == 46 * (3 * 8 + 3 * 4 - 3)
    found = [(each.name, each.ledger_id, each.first, each.end) for each in work.found]
    assert found == [("a", 1, 2, 3), ("a", 3, 7, 8), ("b", 2, 0, 1)]
    assert work.scrubber.status("a").found == 2


def test_damage_that_stays_is_counted_once(kept: KeptEnsemble) -> None:
    kept.flip("a", 1, 5)
    work = Scrubbing(kept)
    for day in (30, 40, 50):
        work.run(day * DAY)
    assert (work.scrubber.status("a").found, len(work.found)) == (1, 3)
    kept.flip("a", 1, 5)  # intact again
    work.run(60 * DAY)
    kept.flip("a", 1, 5)
    work.run(70 * DAY)
    assert work.scrubber.status("a").found == 2


def test_the_member_verified_longest_ago_is_next(kept: KeptEnsemble) -> None:
    work = Scrubbing(kept, days=1)
    for day in (30, 31, 32, 33):  # all are due each time, and only one step is run
        work.run(day * DAY, steps=1)
    assert [work.scrubber.status(name).finished // DAY for name in ("a", "b")] == [32, 33]


def test_a_restart_goes_on(kept: KeptEnsemble, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scrub, "STEP_BYTES", 46)
    first = Scrubbing(kept)
    done = first.run(steps=11)
    first.scrubber.save()
    kept.flip("a", 1, 2)  # already verified
    kept.flip("a", 3, 2)
    second = Scrubbing(kept)
    assert done + second.run() == 46 * (3 * 8 + 3 * 4 - 1)
    assert [each.ledger_id for each in second.found] == [3]
    assert second.scrubber.status("a").started == 30 * DAY


def test_an_unreadable_note_starts_from_the_beginning(kept: KeptEnsemble) -> None:
    kept.notes["a"] = b"?"
    kept.notes["b"] = b'{"ledger": 5}'
    assert Scrubbing(kept).run() == 46 * 36


def test_the_rate_holds_back_steps(kept: KeptEnsemble, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scrub, "STEP_BYTES", 92)
    work = Scrubbing(kept, rate=46)
    assert work.run() == 92
    assert work.scrubber.pace.due == 1.0
    assert work.scrubber.step(1.0, 30 * DAY) is not None


def test_a_member_that_cannot_be_read_is_paused(kept: KeptEnsemble) -> None:
    def unreadable(operation: str, argument: Any) -> str:
        if operation == "pieces":
            raise PersistenceError("I/O error")
        return FaultOutcome.DONE

    kept.disks["a"].faults = unreadable
    work = Scrubbing(kept)
    with pytest.raises(PersistenceError):
        work.run()
    assert work.run() == 46 * 12
    kept.disks["a"].faults = lambda operation, argument: FaultOutcome.DONE
    assert work.scrubber.step(RETRY_SECONDS, 30 * DAY) is not None


def test_ledgers_deleted_meanwhile_are_passed_over(kept: KeptEnsemble, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scrub, "STEP_BYTES", 46)
    work = Scrubbing(kept)
    work.run(steps=1)
    kept.delete(1)
    kept.delete(2)
    assert work.run() == 46 * (8 + 4)


def test_members_that_are_not_readable_are_left_out(kept: KeptEnsemble) -> None:
    kept.states["a"] = MemberState.FENCED
    assert Scrubbing(kept).run() == 46 * 12
