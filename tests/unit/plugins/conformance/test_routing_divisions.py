"""Key_Shared selectors as plugins: the built-in ones meet the contract, and the checks detect faulty ones."""

from typing import Any

import pytest

from pulsarbox.broker.dispatch.selectors.choice import SELECTORS
from pulsarbox.config import Settings
from pulsarbox.plugins.conformance import digest, problems
from pulsarbox.plugins.registry import misfit
from tests.unit.plugins.dividing import ByTurns


class BuiltIn:
    """A built-in selector wrapped as a plugin."""

    name, api = "built-in", 1
    make: Any

    def divide(self) -> Any:
        return type(self).make(Settings())


class Ring(BuiltIn):
    make = SELECTORS["consistentHashing"]


class Ranges(BuiltIn):
    make = SELECTORS["hashRange"]


@pytest.mark.parametrize("plugin", [Ring, Ranges])
def test_the_built_in_ones_keep_the_contract(plugin: type[BuiltIn]) -> None:
    assert misfit("routing", plugin()) == ""
    assert problems("routing", plugin()) == []
    assert digest("routing", plugin()) == digest("routing", plugin()) != ""


class Keeps(ByTurns):
    """Faulty selector that retains removed consumers."""

    def remove(self, consumer: Any) -> None:
        pass


class Changes(ByTurns):
    calls = 0

    def select(self, slot: int) -> Any:
        self.calls += 1
        return self.here[self.calls % len(self.here)]


class Differs(ByTurns):
    """Faulty selector whose result differs between subscriptions."""

    made = 0

    def __init__(self) -> None:
        super().__init__()
        Differs.made += 1
        self.number = Differs.made

    def select(self, slot: int) -> Any:
        return self.here[(slot + self.number // 2) % len(self.here)]


class Nobody(ByTurns):
    def select(self, slot: int) -> Any:
        return None


@pytest.mark.parametrize(
    ("plugin", "says"),
    [
        (ByTurns, []),
        (Keeps, ["range: slot"]),
        (Changes, ["repeatable: with 4 consumers the assignment changes"]),
        (Differs, ["repeatable: two subscriptions with the same 2 consumers"]),
        (Nobody, ["range: slot 1 is not assigned to any of 1 consumers"]),
    ],
)
def test_what_the_checks_say(plugin: type[ByTurns], says: list[str]) -> None:
    found = problems("routing", plugin())
    assert len(found) >= len(says)
    assert bool(found) == bool(says)
    for each in says:
        assert any(problem.startswith(each) for problem in found), found
