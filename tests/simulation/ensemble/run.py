"""``python -m tests.simulation.ensemble.run --events 1000000``: run seeds, and stop at the first violation.

A seed draws the directories, the quorums of each ledger, and the faults. After the faults, all directories return, and
the ensemble has to complete its copies.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from traceback import format_exc

from tests.simulation.ensemble.ensemble_run import DEFAULT_STEPS, EnsembleRun
from tests.simulation.ensemble.replica import Replica
from tests.simulation.model.history import Violation


class Tally:
    """Statistics of several seeds."""

    def __init__(self) -> None:
        self._started = time.perf_counter()
        self.seeds = self.events = self.failures = 0
        self._counts: Counter[str] = Counter()

    def add(self, run: EnsembleRun) -> None:
        """Add a completed seed."""
        self.seeds += 1
        self.events += run.world.events
        self._counts.update(run.counts)

    @property
    def seconds(self) -> float:
        """Since the start."""
        return time.perf_counter() - self._started

    def __str__(self) -> str:
        seconds = self.seconds
        return (
            f"{self.seeds} seeds, {self.events} events, {self.failures} failures, {seconds:.1f} s,"
            f" {self.events / seconds:.0f} events/s; {dict(sorted(self._counts.items()))}"
        )


@contextmanager
def directories_for(seed: int, engine: str, *, replicas: bool = False) -> Iterator[EnsembleRun]:
    """Yield the run of a seed on ``memory`` or ``lmdb``, and remove its files afterwards."""
    if engine == "memory":
        yield EnsembleRun(seed, replicas=replicas)
        return
    shared = Path("/dev/shm")  # in memory: a sync costs nothing
    with TemporaryDirectory(prefix="ensemble-", dir=shared if shared.is_dir() else None) as folder:
        run = EnsembleRun(seed, Path(folder), replicas=replicas)
        try:
            yield run
        finally:
            run.close()


def explain(run: EnsembleRun, error: BaseException, steps: int, engine: str = "memory") -> str:
    """Return the diagnostics of a failed seed: recent events, the rule, and the command to repeat it."""
    rule = error.rule if isinstance(error, Violation) else "no-exception"
    text = str(error) if isinstance(error, Violation) else format_exc()
    command = f"python -m tests.simulation.ensemble.run --seed {run.world.seed} --steps {steps} --engine {engine}"
    command += " --replicas" * any(isinstance(each, Replica) for each in run.directories.values())
    recent = "\n".join(run.world.history.recent)
    return f"{recent}\n\nseed {run.world.seed} breaks the rule {rule}: {text}\nagain: {command}"


def main(arguments: list[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1, help="how many")
    parser.add_argument("--events", type=int, help="as many seeds as make so many events, in place of --seeds")
    parser.add_argument("--seed", type=int, default=0, help="the first")
    parser.add_argument("--steps", type=int, default=DEFAULT_STEPS, help="events of a seed before it calms down")
    parser.add_argument("--engine", choices=("memory", "lmdb"), default="memory", help="of the directories")
    parser.add_argument("--replicas", action="store_true", help="the last of three or more is on another machine")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="no seed begins later")
    parser.add_argument("--keep-going", action="store_true", help="count failures, one line each")
    options = parser.parse_args(arguments)
    logging.disable(logging.CRITICAL)
    tally, seed = Tally(), options.seed
    while (tally.events < options.events if options.events else tally.seeds < options.seeds) and (
        tally.seconds < options.seconds
    ):
        with directories_for(seed, options.engine, replicas=options.replicas) as run:
            try:
                run.run(options.steps)
            except Exception as error:
                tally.failures += 1
                if not options.keep_going:
                    sys.stderr.write(explain(run, error, options.steps, options.engine) + "\n")
                    return 1
                sys.stderr.write(f"{seed}: {type(error).__name__} {str(error)[:200]}\n")
        tally.add(run)
        if tally.seeds % 200 == 0:
            sys.stderr.write(f"{tally}\n")
        seed += 1
    sys.stderr.write(f"{tally}\n")
    return 1 if tally.failures else 0


if __name__ == "__main__":
    sys.exit(main())
