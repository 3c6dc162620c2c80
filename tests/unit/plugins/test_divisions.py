"""Selectors of Key_Shared as plugins: the built-in ones keep the same contract, and the checks tell good from bad."""

from typing import Any

import pytest

from pulsarbox.broker.dispatch.selectors.choice import SELECTORS
from pulsarbox.config import Settings
from pulsarbox.plugins.conformance import digest, problems
from pulsarbox.plugins.registry import misfit


class BuiltIn:
    """A selector of the box's as a plugin."""

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


class Own:
    """A plugin's selector: the consumers by turns. Its faults are those of the subclasses."""

    name, api = "own", 1
    calls = 0

    def divide(self) -> "Own":
        made = type(self)()
        made.here: list[Any] = []  # type: ignore[misc]
        return made

    here: list[Any]

    def add(self, consumer: Any) -> None:
        self.here.append(consumer)

    def remove(self, consumer: Any) -> None:
        self.here.remove(consumer)

    def select(self, slot: int) -> Any:
        return self.here[slot % len(self.here)]


class Keeps(Own):
    """Consumers that have gone."""

    def remove(self, consumer: Any) -> None:
        pass


class Changes(Own):
    def select(self, slot: int) -> Any:
        self.calls += 1
        return self.here[self.calls % len(self.here)]


class Differs(Own):
    """From one subscription to the next."""

    def divide(self) -> Own:
        made = super().divide()
        Differs.calls += 1
        made.calls = Differs.calls
        return made

    def select(self, slot: int) -> Any:
        return self.here[(slot + self.calls) % len(self.here)]


class Nobody(Own):
    def select(self, slot: int) -> Any:
        return None


@pytest.mark.parametrize(
    ("plugin", "says"),
    [
        (Own, []),
        (Keeps, ["range: of 5 consumers slot"]),
        (Changes, ["repeatable: with 4 consumers it changes its mind"]),
        (Differs, ["repeatable: two subscriptions with the same 2 consumers"]),
        (Nobody, ["range: of 1 consumers slot 1 has none"]),
    ],
)
def test_what_the_checks_say(plugin: type[Own], says: list[str]) -> None:
    found = problems("routing", plugin())
    assert len(found) >= len(says)
    assert bool(found) == bool(says)
    for each in says:
        assert any(problem.startswith(each) for problem in found), found
