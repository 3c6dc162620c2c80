"""What a scenario is, and the register of all of them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from tests.differences.broker import Broker

Steps: TypeAlias = Iterator[tuple[str, Any]]
"""(what was done, what was seen then): text, or lists and dicts of text and numbers, with nothing in them that differs
from run to run."""

Play: TypeAlias = Callable[[Broker], Steps]


@dataclass(frozen=True)
class Scenario:
    """One function of a theme. ``slow`` ones wait for timers of the broker and are left out of short runs."""

    theme: str
    name: str
    play: Play
    slow: bool = False

    @property
    def full_name(self) -> str:
        return f"{self.theme}.{self.name}"


SCENARIOS: Final[dict[str, Scenario]] = {}
"""All scenarios of the themes that were imported, by their full names, in the order of their definition."""


def scenario(play: Play) -> Play:
    """Registers a function of a theme."""
    return _register(play, slow=False)


def slow_scenario(play: Play) -> Play:
    """Registers a function that waits for timers of the broker."""
    return _register(play, slow=True)


def _register(play: Play, slow: bool) -> Play:
    made = Scenario(play.__module__.rpartition(".")[2], play.__name__, play, slow)
    assert made.full_name not in SCENARIOS, made.full_name
    SCENARIOS[made.full_name] = made
    return play
