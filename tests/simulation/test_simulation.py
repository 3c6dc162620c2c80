"""Some seeds in every ``make test``; many more with ``make simulate``."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence

import pytest

from tests.simulation.run import explain
from tests.simulation.workload import TRANSACTING, Run
from tests.tools.campaigns import short

COMPRESSING = (25, 26)
"""Seeds that compress packed batches."""
SEEDS = (*COMPRESSING, *range(20))
STEPS = 2500
SHORT_STEPS = 900
"""Steps of the history in `make test`."""
BURYING = 46
"""A seed with dead letters on LMDB."""
LMDB_SEEDS = (*COMPRESSING, *range(12), BURYING)
LMDB_STEPS = 800
LMDB_SHORT_STEPS = 400
TRANSACTING_SEEDS = (TRANSACTING, TRANSACTING + 1, TRANSACTING + 2, TRANSACTING + 4)
TRANSACTING_STEPS = 600


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


_PLAYED: dict[tuple[str, int, int], Counter[str]] = {}


def played(engine: str, seed: int, steps: int) -> Counter[str]:
    """Return the event counts of a history, which runs once per process."""
    found = _PLAYED.get((engine, seed, steps))
    if found is None:
        run = Run(seed, engine)
        try:
            run.run(steps)
        except Exception as error:
            pytest.fail(explain(run, error, steps), pytrace=False)
        found = _PLAYED[engine, seed, steps] = Counter(run.counts())
    return found


@pytest.mark.parametrize(
    ("engine", "seed", "steps"),
    [
        ("memory", COMPRESSING[0], SHORT_STEPS),
        *short((("memory", seed, STEPS) for seed in SEEDS), 0),
        ("lmdb", COMPRESSING[0], LMDB_SHORT_STEPS),
        *short((("lmdb", seed, LMDB_STEPS) for seed in LMDB_SEEDS), 0),
        *short((("memory", seed, TRANSACTING_STEPS) for seed in TRANSACTING_SEEDS), 1),
        *short((("lmdb", seed, TRANSACTING_STEPS) for seed in TRANSACTING_SEEDS[:2]), 0),
    ],
)
def test_a_seed_keeps_all_rules(engine: str, seed: int, steps: int) -> None:
    assert played(engine, seed, steps)


@pytest.mark.parametrize(
    ("engine", "seeds", "steps", "wanted"),
    short(
        [
            ("memory", TRANSACTING_SEEDS, TRANSACTING_STEPS, {"txn committed", "txn aborted", "acks aborted", "epoch"}),
            (
                "memory",
                (*TRANSACTING_SEEDS, TRANSACTING + 8, *range(TRANSACTING, TRANSACTING + 20)),
                TRANSACTING_STEPS,
                {
                    "txn committed",
                    "txn aborted",
                    "txn timed out",
                    "txn answer lost",
                    "acks committed",
                    "acks aborted",
                    "epoch",
                    "epoch again",
                },
            ),
            (
                "memory",
                SEEDS,
                STEPS,
                {"checkpoint", "removed", "packed", "compressed", "unload", "trim", "delayed", "buried", "compacted"},
            ),
            (
                "lmdb",
                LMDB_SEEDS,
                LMDB_STEPS,
                {"checkpoint", "sealed", "removed", "packed", "compressed", "unload", "trim", "buried"},
            ),
        ],
        1,
    ),
)
def test_the_seeds_do_what_the_rules_are_about(engine: str, seeds: Sequence[int], steps: int, wanted: set[str]) -> None:
    done: Counter[str] = Counter()
    for seed in seeds:
        done.update(played(engine, seed, steps))
        if wanted <= set(+done):
            return
    pytest.fail(f"never happened: {wanted - set(+done)}")


@pytest.mark.parametrize(("engine", "steps"), short([("lmdb", 300), ("lmdb", 800), ("memory", 2000)], 1))
def test_one_seed_is_one_history(engine: str, steps: int) -> None:
    run = f"from tests.simulation.workload import Run; r = Run(7, {engine!r}); r.run({steps})"
    code = f"{run}; print(r.world.history.digest())"
    digests = []
    for hash_seed in ("1", "2"):
        environment = os.environ | {"PYTHONHASHSEED": hash_seed}
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True, timeout=100)
        digests.append(done.stdout)
    assert digests[0] == digests[1]
