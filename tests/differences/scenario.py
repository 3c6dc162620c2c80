"""The Scenario type, and the registry of all scenarios."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from tests.differences.broker import Broker

Steps: TypeAlias = Iterator[tuple[str, Any]]
"""Steps and their observations: text, or lists and dicts of text and numbers, without values that differ from run to
run.
"""

Play: TypeAlias = Callable[[Broker], Steps]


@dataclass(frozen=True)
class Scenario:
    """Scenario: one function of a theme."""

    theme: str
    name: str
    play: Play
    slow: bool = False
    """Waits for timers of the broker; excluded from short runs."""
    timed: bool = False
    """Needs a broker with the settings of ``TIMED``."""
    long: bool = False
    """Takes many seconds even at low patience; `make test` excludes it."""
    alone: bool = False
    """Changes the broker's own settings, so no other scenario may run meanwhile."""

    @property
    def full_name(self) -> str:
        return f"{self.theme}.{self.name}"


SCENARIOS: Final[dict[str, Scenario]] = {}
"""All scenarios of the imported themes by full name, in order of definition."""


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
"""Settings under which policies take effect within seconds: short ledgers and frequent checks in Pulsar.

The retention is one that only settings allow: a time without a size.
"""


def scenario(play: Play) -> Play:
    """Register a function of a theme."""
    return _register(play)


def slow_scenario(play: Play) -> Play:
    """Register a function that waits for timers of the broker."""
    return _register(play, slow=True)


def timed_scenario(play: Play) -> Play:
    """Register a function that needs a broker with the settings of ``TIMED``."""
    return _register(play, timed=True)


def alone_scenario(play: Play) -> Play:
    """Register a function that changes settings of the broker and needs the broker to itself."""
    return _register(play, alone=True)


def long(play: Play) -> Play:
    """Mark a registered function as long-running."""
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
