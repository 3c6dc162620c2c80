"""The auditor: what lacks copies, what is lost, and when a pass runs."""

import pytest

from pulsarbox.errors import PersistenceError
from pulsarbox.storage.ensemble.keeping.auditor import LEDGERS_AT_ONCE, SECOND_PASS_SECONDS, Auditor, MemberContents
from pulsarbox.storage.ensemble.member import MemberState
from pulsarbox.storage.ensemble.status import Fragment
from tests.unit.storage.ensemble.keeping.kept import KeptEnsemble


@pytest.fixture
def kept() -> KeptEnsemble:
    return KeptEnsemble("a", "b", "c")


def audit(auditor: Auditor, monotonic: float = 0.0) -> int:
    """Run steps until none is due; return their number."""
    steps = 0
    while auditor.step(monotonic, 1000) is not None:
        steps += 1
    return steps


def test_entries_with_too_few_copies_are_listed(kept: KeptEnsemble) -> None:
    kept.write(1, 0, 4, "a", "b")
    kept.write(1, 4, 4, "b")
    kept.exists(1, 8)
    auditor = Auditor(kept, 60)
    audit(auditor)
    assert auditor.missing == [Fragment(1, 4, 8, ("b",), 2)]
    assert (auditor.missing_count, auditor.missing_entries, auditor.ended) == (1, 4, 1000)
    assert auditor.contents == {"a": MemberContents(1, 4), "b": MemberContents(1, 8), "c": MemberContents(0, 0)}


def test_entries_behind_the_checkpoint_are_not_audited(kept: KeptEnsemble) -> None:
    kept.write(1, 0, 4, "a", "b")
    kept.write(1, 4, 4, "b")
    kept.exists(1, 4)
    auditor = Auditor(kept, 60)
    audit(auditor)
    assert auditor.missing == []


def test_a_pass_waits_for_copies_on_the_way(kept: KeptEnsemble) -> None:
    kept.settled = False
    auditor = Auditor(kept, 60)
    assert audit(auditor) == 0
    kept.settled = True
    assert audit(auditor) == 1


def test_a_pass_follows_a_change_of_the_members_and_the_period(kept: KeptEnsemble) -> None:
    kept.write(1, 0, 4, "a", "b")
    kept.exists(1, 4)
    auditor = Auditor(kept, 60)
    assert audit(auditor) == 2
    assert audit(auditor, 59.0) == 0
    assert audit(auditor, 60.0) == 2
    kept.states["b"] = MemberState.LOST
    assert audit(auditor, 61.0) == 2
    assert auditor.missing == [Fragment(1, 0, 4, ("a",), 2)]
    auditor.request()
    assert audit(auditor, 61.0) == 2


def test_many_ledgers_take_several_steps(kept: KeptEnsemble) -> None:
    for ledger_id in range(1, 2 * LEDGERS_AT_ONCE + 2):
        kept.exists(ledger_id, 0)
    assert audit(Auditor(kept, 60)) == 4


def test_lost_entries_are_reported_once(kept: KeptEnsemble) -> None:
    kept.write(1, 0, 4, "a", "b")
    kept.exists(1, 6)
    auditor = Auditor(kept, 60)
    audit(auditor)
    audit(auditor, 60.0)
    assert [event.kind for event in kept.events] == ["entries-lost"]
    assert "2 entries: 1:4 to 5" in kept.events[0].text
    assert [auditor.lost_until(1, entry) for entry in (3, 4, 5, 6)] == [0, 6, 6, 0]
    assert auditor.missing == []


def test_entries_of_an_unavailable_member_are_not_lost(kept: KeptEnsemble) -> None:
    kept.write(1, 0, 4, "a")
    kept.exists(1, 4)
    kept.states["a"] = MemberState.LOST
    auditor = Auditor(kept, 60)
    audit(auditor)
    assert kept.events == []
    assert auditor.lost_until(1, 0) == 0
    assert auditor.missing == [Fragment(1, 0, 4, (), 1)]


def test_surplus_copies_are_listed_apart(kept: KeptEnsemble) -> None:
    kept.write(1, 0, 4, "a", "b", "c")
    kept.exists(1, 4)
    auditor = Auditor(kept, 60)
    audit(auditor)
    assert auditor.surplus == [Fragment(1, 0, 4, ("a", "b", "c"), 2)]


def test_ledgers_that_are_being_written_are_audited_one_pass_later(kept: KeptEnsemble) -> None:
    kept.write(1, 0, 4, "a")
    kept.exists(1, None, kind="compacting/%016x/%016x")
    auditor = Auditor(kept, 60)
    audit(auditor)
    assert auditor.missing == []
    kept.write(1, 4, 4, "a")
    audit(auditor, 60.0)
    assert auditor.missing == [Fragment(1, 0, 4, ("a",), 2)]


def test_packages_and_compacted_views_are_audited(kept: KeptEnsemble) -> None:
    kept.exists(1, 4, kind="packagedata/%016x")
    kept.exists(2, 4, kind="compacted/%016x/%016x")
    kept.write(1, 0, 4, "a")
    kept.write(2, 0, 4, "a")
    auditor = Auditor(kept, 60)
    audit(auditor)
    assert sorted(each.ledger_id for each in auditor.missing) == [1, 2]


def test_a_leaving_member_is_released_once_its_entries_are_elsewhere(kept: KeptEnsemble) -> None:
    kept.write(1, 0, 4, "a", "b")
    kept.exists(1, 4)
    kept.states["a"] = MemberState.LEAVING
    auditor = Auditor(kept, 60)
    assert auditor.released() == []
    audit(auditor)
    assert auditor.released() == []
    batch = kept.members["b"].pieces(1, 0, 4, 1 << 20)
    kept.members["c"].adopt(batch)
    audit(auditor, 60.0)
    assert auditor.released() == ["a"]


def test_all_that_a_leaving_member_has_is_needed(kept: KeptEnsemble) -> None:
    kept.write(1, 0, 4, "a", "b")
    kept.write(1, 4, 4, "a")
    kept.exists(1, 4)
    kept.states["a"] = MemberState.LEAVING
    auditor = Auditor(kept, 60)
    audit(auditor)
    assert Fragment(1, 4, 8, ("a",), 2) in auditor.missing


def test_an_error_starts_the_pass_again_after_a_pause(kept: KeptEnsemble) -> None:
    def fail(operation: str, argument: object) -> str:
        raise PersistenceError("no")

    kept.exists(1, 4)
    kept.write(1, 0, 4, "a", "b")
    before, kept.disks["a"].faults = kept.disks["a"].faults, fail
    auditor = Auditor(kept, 60)
    kept.members["a"].statistics = lambda: {"bytes": 0}  # type: ignore[method-assign]
    with pytest.raises(PersistenceError):
        auditor.step(0.0, 1000)
    kept.disks["a"].faults = before
    assert audit(auditor) == 0
    assert audit(auditor, 10.0) == 2


def test_a_damaged_row_is_an_error(kept: KeptEnsemble) -> None:
    kept.table[b"ledger/x"] = b"?"
    with pytest.raises(PersistenceError, match="row b'ledger/x' is damaged"):
        Auditor(kept, 60).step(0.0, 1000)


def test_ledgers_being_written_are_audited_soon_after_a_start(kept: KeptEnsemble) -> None:
    kept.write(1, 0, 4, "b")
    kept.exists(1, None)
    auditor = Auditor(kept, 60)
    audit(auditor)
    assert (auditor.missing, auditor.ended) == ([], 0)
    audit(auditor, SECOND_PASS_SECONDS)
    assert (auditor.missing, auditor.ended) == ([Fragment(1, 0, 4, ("b",), 2)], 1000)


def test_a_pass_counts_once_the_checkpoint_covers_what_was_written_before_a_change(kept: KeptEnsemble) -> None:
    kept.write(1, 0, 4, "a")
    kept.covered = False
    auditor = Auditor(kept, 60)
    assert audit(auditor) == 1
    assert auditor.ended == 0
    kept.exists(1, 4)
    kept.covered = True
    auditor.request()
    audit(auditor, 1.0)
    assert (auditor.ended, auditor.missing_entries) == (1000, 4)


def test_what_was_written_before_a_change_of_the_members_is_audited_soon_after_it(kept: KeptEnsemble) -> None:
    kept.exists(1, None)
    auditor = Auditor(kept, 60)
    audit(auditor)
    kept.write(1, 0, 4, "a", "b")
    kept.states["b"] = MemberState.LOST
    audit(auditor, 10.0)
    audit(auditor, 10.0 + SECOND_PASS_SECONDS)
    assert auditor.missing_entries == 4


def test_a_pass_requested_during_another_follows_it(kept: KeptEnsemble) -> None:
    kept.write(1, 0, 4, "a", "b")
    kept.exists(1, 4)
    auditor = Auditor(kept, 60)
    auditor.step(0.0, 1000)
    assert auditor.request() == 2
    audit(auditor)
    assert auditor.passes == 2
    assert audit(auditor, 59.0) == 0
