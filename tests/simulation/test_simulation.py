"""Some seeds with every ``make test``; many more with ``make simulate``."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.simulation.run import explain
from tests.simulation.workload import Run

SEEDS = range(20)
STEPS = 2500


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_seed_keeps_all_rules(seed: int) -> None:
    run = Run(seed)
    try:
        run.run(STEPS)
    except Exception as error:
        pytest.fail(explain(run, error, STEPS), pytrace=False)


def test_one_seed_is_one_history() -> None:
    code = "from tests.simulation.workload import Run; r = Run(7); r.run(2000); print(r.world.history.digest())"
    digests = []
    for hash_seed in ("1", "2"):
        environment = os.environ | {"PYTHONHASHSEED": hash_seed}
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True, timeout=100)
        digests.append(done.stdout)
    assert digests[0] == digests[1]
