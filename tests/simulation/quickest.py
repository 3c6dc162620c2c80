"""The seeds that detect planted bugs soonest; ``python -m tests.simulation.quickest`` rewrites the table.

An outdated row costs only time: ``test_mutants`` then runs its other seeds.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from tests.simulation.mutants.registry import MUTANTS, Mutant

TABLE: Final = Path(__file__).with_name("quickest.tsv")
STEPS: Final = (120, 300, 600, 1200, 2500)
SEEDS: Final = 60
SEEDS_OF_MOST: Final = 400
"""Number of seeds at the maximum step count, if no shorter history detects the bug."""
SOON_SECONDS: Final = 0.3
"""Processor time below which the search stops, in seconds."""
SEARCH_SECONDS: Final = 20.0
"""Limit of processor time for the search for a faster history, in seconds."""


class Quickest(NamedTuple):
    """Seed and step count of a history that detects a bug."""

    seed: int
    steps: int


def read() -> dict[str, Quickest]:
    """Read the table, keyed by bug name."""
    rows = (line.split("\t") for line in TABLE.read_text("utf-8").splitlines()[1:])
    return {name: Quickest(int(seed), int(steps)) for name, seed, steps in rows}


def histories(bug: Mutant) -> Iterator[Quickest]:
    """Yield the histories that may detect a bug, shortest first."""
    from tests.simulation.test_mutants import seeds_for

    for steps in STEPS:
        for seed in seeds_for(bug, SEEDS if steps < STEPS[-1] else SEEDS_OF_MOST):
            yield Quickest(seed, steps)


def search(name: str, known: Quickest | None = None) -> Quickest | None:
    """Return the history that detects a bug in the least processor time, among those run."""
    from tests.simulation.test_mutants import broken_rule

    bug, found, soonest, begin = MUTANTS[name], None, 0.0, time.process_time()
    with pytest.MonkeyPatch.context() as patch:
        bug.patch(patch)
        for each in chain([known] if known else [], histories(bug)):
            before = time.process_time()
            noticed = broken_rule(*each) in bug.rules
            now = time.process_time()
            if noticed and (found is None or now - before < soonest):
                found, soonest = each, now - before
            if found is not None and (soonest < SOON_SECONDS or now - begin > SEARCH_SECONDS):
                break
    print(f"{name}: {found} in {soonest:.2f} s", file=sys.stderr, flush=True)
    return found


def write(found: dict[str, Quickest]) -> None:
    """Write the table, without bugs that no longer exist."""
    rows = [f"{name}\t{found[name].seed}\t{found[name].steps}\n" for name in sorted(found.keys() & MUTANTS)]
    TABLE.write_text("mutant\tseed\tsteps\n" + "".join(rows), "utf-8")


def main(names: list[str]) -> None:
    """Search for the named bugs, or for all."""
    from tests.simulation import test_mutants  # noqa: F401  # registers the bugs

    logging.disable(logging.CRITICAL)
    found = read()
    for name in names or MUTANTS:
        quickest = search(name, found.get(name))
        if quickest is not None:
            found[name] = quickest
            write(found)


if __name__ == "__main__":
    main(sys.argv[1:])
