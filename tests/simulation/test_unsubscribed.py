"""Some histories of messages without a subscription, and the planted bugs that they must detect."""

from __future__ import annotations

import functools
import logging
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.simulation.model.history import Violation
from tests.simulation.mutants.unsubscribed_mutants import UNSUBSCRIBED_MUTANTS
from tests.simulation.unsubscribed import UnsubscribedRun
from tests.tools.campaigns import short

SEEDS = range(12)
STEPS = 250
MUTANT_SEEDS = range(30)


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@functools.cache
def played(seed: int) -> Counter[str]:
    """Return the event counts of a history, zeros included, which runs once per process."""
    run = UnsubscribedRun(seed)
    run.run(STEPS)
    return Counter(run.done)


@pytest.mark.parametrize("seed", short(SEEDS, 1))
def test_a_seed_keeps_all_rules(seed: int) -> None:
    assert played(seed)


@pytest.mark.campaign
def test_the_seeds_do_what_the_rules_are_about() -> None:
    done: Counter[str] = Counter()
    for seed in SEEDS:
        done.update(played(seed))
        if all(done[what] for what in done):
            return
    pytest.fail(f"never happened: {[what for what, count in done.items() if not count]}")


def broken_rule(seed: int) -> str | None:
    """Return the rule that a seed violates, or None."""
    try:
        UnsubscribedRun(seed).run(STEPS)
    except Violation as violation:
        return violation.rule
    except Exception:
        return "no-exception"
    return None


@pytest.mark.parametrize("name", short(UNSUBSCRIBED_MUTANTS, 3))
def test_a_bug_is_noticed_by_its_rule(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant = UNSUBSCRIBED_MUTANTS[name]
    mutant.patch(monkeypatch)
    found: Counter[str | None] = Counter()
    for seed in (*mutant.seeds, *MUTANT_SEEDS):
        rule = broken_rule(seed)
        if rule in mutant.rules:
            return
        found[rule] += 1
    pytest.fail(f"{sorted(mutant.rules)} did not notice; found was {found}")
