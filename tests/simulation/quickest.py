"""The seeds that notice planted bugs soonest: ``python -m tests.simulation.quickest`` writes the table again.

A row that is no longer true costs time only: ``test_mutants`` then goes on with its other seeds.
"""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from tests.simulation.mutants import MUTANTS

TABLE: Final = Path(__file__).with_name("quickest.tsv")
STEPS: Final = (2500, 800, 300)
SEEDS: Final = 400


class Quickest(NamedTuple):
    """Where a bug is noticed."""

    seed: int
    steps: int


def read() -> dict[str, Quickest]:
    """The table, by the names of the bugs."""
    rows = (line.split("\t") for line in TABLE.read_text("utf-8").splitlines()[1:])
    return {name: Quickest(int(seed), int(steps)) for name, seed, steps in rows}


def search(name: str) -> Quickest | None:
    """The first seed that notices a bug, with as few steps as do."""
    from tests.simulation.test_mutants import broken_rule, seeds_for

    bug, found = MUTANTS[name], None
    with pytest.MonkeyPatch.context() as patch:
        bug.patch(patch)
        for seed in seeds_for(bug, SEEDS):
            for steps in STEPS:
                if broken_rule(seed, steps) not in bug.rules:
                    break
                found = Quickest(seed, steps)
            if found is not None:
                break
    print(f"{name}: {found}", file=sys.stderr, flush=True)
    return found


def main(names: list[str]) -> None:
    """Search for these, or for all."""
    from tests.simulation import test_mutants  # noqa: F401  # fills the list

    logging.disable(logging.CRITICAL)
    found = read() if names and TABLE.exists() else {}
    for name in names or MUTANTS:
        quickest = search(name)
        if quickest is not None:
            found[name] = quickest
    rows = [f"{name}\t{found[name].seed}\t{found[name].steps}\n" for name in sorted(found)]
    TABLE.write_text("mutant\tseed\tsteps\n" + "".join(rows), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
