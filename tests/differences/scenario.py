"""What a scenario is, and the register of all of them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from tests.differences.broker import Broker

Steps: TypeAlias = Iterator[tuple[str, Any]]
"""(what was done, what was seen then): text, or lists and dicts of text and numbers, with nothing in them that differs
from run to run."""

Play: TypeAlias = Callable[[Broker], Steps]


@dataclass(frozen=True)
class Scenario:
    """One function of a theme."""

    theme: str
    name: str
    play: Play
    slow: bool = False
    """Waits for timers of the broker, and is left out of short runs."""
    timed: bool = False
    """Needs a broker with the settings of ``TIMED``."""
    long: bool = False
    """Takes many seconds even where nobody has the patience to look: `make test` leaves it out."""
    alone: bool = False
    """Changes the broker's own settings, so nothing else may be played meanwhile."""

    @property
    def full_name(self) -> str:
        return f"{self.theme}.{self.name}"


SCENARIOS: Final[dict[str, Scenario]] = {}
"""All scenarios of the themes that were imported, by their full names, in the order of their definition."""


TIMED: Final = (
    "backlogQuotaCheckIntervalInSeconds=1",
    "preciseTimeBasedBacklogQuotaCheck=true",
    "retentionCheckIntervalInSeconds=1",
    "messageExpiryCheckIntervalInMinutes=1",
    "brokerDeleteInactiveTopicsFrequencySeconds=1",
    "brokerDeleteInactiveTopicsMaxInactiveDurationSeconds=60",
    "managedLedgerMaxEntriesPerLedger=10",
    "managedLedgerMinLedgerRolloverTimeMinutes=0",
    "defaultRetentionTimeInMinutes=10",
)
"""Settings with which policies show what they do within seconds: ledgers are short, and Pulsar looks often.

The retention is one that only settings can have: a time, and no size.
"""


def scenario(play: Play) -> Play:
    """Registers a function of a theme."""
    return _register(play)


def slow_scenario(play: Play) -> Play:
    """Registers a function that waits for timers of the broker."""
    return _register(play, slow=True)


def timed_scenario(play: Play) -> Play:
    """Registers a function that needs a broker with the settings of ``TIMED``."""
    return _register(play, timed=True)


def alone_scenario(play: Play) -> Play:
    """Registers a function that changes settings of the broker, and has it to itself."""
    return _register(play, alone=True)


def long(play: Play) -> Play:
    """Marks a function that is registered as one that takes long."""
    name = _name(play)
    SCENARIOS[name] = replace(SCENARIOS[name], long=True)
    return play


def _name(play: Play) -> str:
    return f"{play.__module__.rpartition('.')[2]}.{play.__name__}"


def _register(play: Play, *, slow: bool = False, timed: bool = False, alone: bool = False) -> Play:
    theme, _, name = _name(play).partition(".")
    made = Scenario(theme, name, play, slow=slow, timed=timed, alone=alone)
    assert made.full_name not in SCENARIOS, made.full_name
    SCENARIOS[made.full_name] = made
    return play
