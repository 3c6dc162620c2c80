"""Surplus copies are removed from full members only, and only if the others are intact."""

from pulsarbox.storage.ensemble.keeping.auditor import Auditor
from pulsarbox.storage.ensemble.keeping.trimming import Trimmer
from pulsarbox.storage.ensemble.member import MemberState
from tests.unit.storage.ensemble.keeping.kept import KeptEnsemble


def trimmed(kept: KeptEnsemble) -> int:
    """Audit and trim; return the number of steps."""
    auditor = Auditor(kept, 60)
    while auditor.step(0.0, 1) is not None:
        pass
    trimmer, steps = Trimmer(kept, auditor), 0
    while trimmer.step() is not None:
        steps += 1
    return steps


def three_copies() -> KeptEnsemble:
    """An ensemble with one copy more than wanted."""
    kept = KeptEnsemble("a", "b", "c")
    kept.write(1, 0, 8, "a", "b", "c")
    kept.exists(1, 8)
    return kept


def test_surplus_copies_stay_while_there_is_space() -> None:
    kept = three_copies()
    assert trimmed(kept) == 0
    kept.assert_copies(1, 0, 8, "a", "b", "c")


def test_a_full_member_loses_its_surplus_copies() -> None:
    kept = three_copies()
    kept.states["b"] = MemberState.FULL
    assert trimmed(kept) == 1
    kept.assert_copies(1, 0, 8, "a", "c")


def test_a_copy_stays_if_another_one_is_damaged() -> None:
    kept = three_copies()
    kept.states["b"] = MemberState.FULL
    kept.flip("c", 1, 5)
    trimmed(kept)
    assert kept.runs("b", 1) == [(5, 8)]


def test_copies_that_are_not_surplus_stay() -> None:
    kept = KeptEnsemble("a", "b")
    kept.write(1, 0, 8, "a", "b")
    kept.exists(1, 8)
    kept.states["b"] = MemberState.FULL
    assert trimmed(kept) == 0
