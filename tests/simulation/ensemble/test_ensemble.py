"""Histories of ensembles break no rule, and each planted bug is detected within a bounded number of events."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from tests.simulation.ensemble.ensemble_run import EnsembleRun
from tests.simulation.ensemble.mutants import MUTANTS, REPLICA_MUTANTS
from tests.simulation.ensemble.run import directories_for
from tests.simulation.model.history import Violation
from tests.tools.campaigns import chosen, short

SEEDS = range(400)
ONCE_BROKEN = (1163, 1291, 6003199)
"""Seeds that broke a rule: an old directory was trusted (twice), and one directory was never scrubbed."""
SHORT_SEEDS = (*range(8), *ONCE_BROKEN)
DISK_SEEDS = (18, 25, *range(100, 140))
"""The first two once left a directory open that could not be used."""
STEPS = 400
LONG_MUTANTS = ("a_damaged_copy_is_copied", "the_log_of_a_fenced_directory_is_valid")
"""Planted bugs that only long histories detect, left to the campaign."""
EVENTS_MAX = 60_000
"""Events within which a planted bug is detected."""


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("seed", chosen(SHORT_SEEDS, lambda seed: seed < 3 or seed in ONCE_BROKEN))
def test_a_history_breaks_no_rule(seed: int) -> None:
    EnsembleRun(seed).run(STEPS)


@pytest.mark.campaign
def test_many_histories_break_no_rule() -> None:
    for seed in SEEDS:
        EnsembleRun(seed).run(STEPS)


@pytest.mark.parametrize("seed", short(DISK_SEEDS, 2))
def test_a_history_on_disk_breaks_no_rule(seed: int) -> None:
    with directories_for(seed, "lmdb") as run:
        run.run(150)


def test_a_seed_always_has_the_same_history() -> None:
    digests = []
    for _ in range(2):
        run = EnsembleRun(5)
        run.run(150)
        digests.append(run.world.history.digest())
    assert digests[0] == digests[1]


@pytest.mark.parametrize("seed", short((1, 2, *range(100, 200)), 2))
def test_a_history_with_a_replica_breaks_no_rule(seed: int) -> None:
    EnsembleRun(seed, replicas=True).run(STEPS)


def broken_rule(seed: int, steps: int, *, replicas: bool = False) -> tuple[str | None, int]:
    """Return the rule that a seed breaks, or None, and the number of its events."""
    run = EnsembleRun(seed, replicas=replicas)
    try:
        run.run(steps)
    except Violation as violation:
        return violation.rule, run.world.events
    except Exception:
        return "no-exception", run.world.events
    return None, run.world.events


@pytest.mark.parametrize("name", chosen([*sorted(MUTANTS), *REPLICA_MUTANTS], lambda name: name not in LONG_MUTANTS))
def test_a_bug_is_detected_by_its_rule(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    replicas = name in REPLICA_MUTANTS
    bug, events, found = (MUTANTS | REPLICA_MUTANTS)[name], 0, set()
    bug.patch(monkeypatch)
    for seed in [*bug.seeds, *SEEDS]:
        rule, more = broken_rule(seed, STEPS, replicas=replicas)
        events += more
        if rule in bug.rules:
            return
        found.add(rule)
        if events > EVENTS_MAX:
            break
    pytest.fail(f"{sorted(bug.rules)} did not notice within {events} events; found was {found}")
