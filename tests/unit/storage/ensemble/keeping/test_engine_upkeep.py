"""Checkpoints and passes that follow changes of the members."""

from types import SimpleNamespace
from typing import Any

from pulsarbox.storage.ensemble.keeping.engine_upkeep import Checkpointed, EngineUpkeep
from pulsarbox.storage.ensemble.member import MemberState


class Kept:
    """An upkeep over a table with directories a and b, with the checkpoints and passes that it requests."""

    def __init__(self) -> None:
        self.asked = self.audits = 0
        slots = [
            SimpleNamespace(name=name, state=MemberState.ACTIVE, content=None, writer=None, completed=0)
            for name in "ab"
        ]
        self.table = SimpleNamespace(slots=slots, belonging=[], undecided=1)
        self.checkpointed = Checkpointed()
        self.checkpointed.ask = self._ask
        table: Any = self.table
        rejoining: Any = SimpleNamespace(step=lambda monotonic: None)
        nothing: Any = None
        self.upkeep = EngineUpkeep(table, nothing, self.checkpointed, nothing, rejoining)
        self.upkeep.audit = self._audit

    def _ask(self) -> None:
        self.asked += 1

    def _audit(self) -> int:
        self.audits += 1
        return self.audits

    def step(self) -> tuple[int, int, bool]:
        """Run a step; return the checkpoints and passes requested so far, and whether all is covered."""
        self.upkeep.advance(0.0, 0)
        return self.asked, self.audits, self.upkeep.is_covered()


def test_a_pass_follows_the_checkpoint_after_a_change() -> None:
    kept = Kept()
    assert kept.step() == (0, 0, True)  # nothing is written yet
    kept.table.undecided = 8
    kept.table.slots[0].state = MemberState.LOST
    assert kept.step() == (1, 0, False)
    assert kept.step() == (1, 0, False)
    kept.checkpointed.written(7, 0.0)
    assert kept.step() == (1, 1, True)
    assert kept.step() == (1, 1, True)


def test_a_checkpoint_made_before_a_second_change_is_followed_by_another() -> None:
    kept = Kept()
    kept.step()
    kept.table.undecided = 8
    kept.table.slots[0].state = MemberState.LOST
    assert kept.step() == (1, 0, False)
    kept.table.undecided = 20  # a checkpoint at 7 is made by now, and not written yet
    kept.table.slots[0].state = MemberState.ACTIVE
    assert kept.step() == (1, 0, False)
    kept.checkpointed.written(7, 0.0)
    assert kept.step() == (2, 0, False)
    kept.checkpointed.written(19, 0.0)
    assert kept.step() == (2, 1, True)
