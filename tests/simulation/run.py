"""``python -m tests.simulation.run --seeds 200``: run seeds, and stop at the first violation of a rule."""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections import Counter
from traceback import format_exc

from tests.simulation.disk import ENGINES
from tests.simulation.model.history import Violation
from tests.simulation.workload import DEFAULT_STEPS, Run


def explain(run: Run, error: BaseException, steps: int) -> str:
    """Return the diagnostics of a failed seed: recent events, the rule, and the command to repeat it."""
    rule = error.rule if isinstance(error, Violation) else "no-exception"
    text = str(error) if isinstance(error, Violation) else format_exc()
    recent = "\n".join(run.world.history.recent)
    command = f"python -m tests.simulation.run --seed {run.world.seed} --steps {steps} --engine {run.disk.kind}"
    return f"{recent}\n\nseed {run.world.seed} breaks the rule {rule}: {text}\nagain: {command}"


class Tally:
    """Statistics of several seeds."""

    def __init__(self) -> None:
        self._started = time.perf_counter()
        self.seeds = self.events = self.failures = 0
        self._deliveries: Counter[str] = Counter()
        self._counts: Counter[str] = Counter()
        self._hours = 0.0

    def add(self, run: Run) -> None:
        """Add a completed seed."""
        self.seeds += 1
        self.events += run.world.events
        self._deliveries.update(run.model.deliveries)
        self._counts.update(run.counts())
        self._hours += run.world.monotonic / 3600

    def __str__(self) -> str:
        seconds = time.perf_counter() - self._started
        return (
            f"{self.seeds} seeds, {self.events} events, {self._hours:.1f} virtual hours, {self.failures} failures,"
            f" {seconds:.1f} s, {self.events / seconds:.0f} events/s;"
            f" deliveries {dict(sorted(self._deliveries.items()))}; {dict(sorted(self._counts.items()))}"
        )


def main(arguments: list[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1, help="how many")
    parser.add_argument("--events", type=int, help="as many seeds as make so many events, in place of --seeds")
    parser.add_argument("--seed", type=int, default=0, help="the first")
    parser.add_argument("--steps", type=int, default=DEFAULT_STEPS, help="events of a seed before it calms down")
    parser.add_argument("--keep-going", action="store_true", help="count failures, one line each")
    parser.add_argument("--engine", choices=[*ENGINES, "both"], default="memory", help="what stores; both: by turns")
    options = parser.parse_args(arguments)
    logging.disable(logging.CRITICAL)
    engines = list(ENGINES) if options.engine == "both" else [options.engine]
    tally, digest = Tally(), ""
    seed = options.seed
    while tally.events < options.events if options.events else tally.seeds < options.seeds:
        run = Run(seed, engines[seed % len(engines)])
        try:
            run.run(options.steps)
        except Exception as error:
            tally.failures += 1
            if options.keep_going:
                text = f"{seed} {run.disk.kind}: {type(error).__name__} {str(error)[:150]}"
                print(text, file=sys.stderr, flush=True)
            else:
                print(explain(run, error, options.steps), file=sys.stderr)
                return 1
        tally.add(run)
        digest = run.world.history.digest()
        if tally.seeds % 20 == 0:
            print(tally, file=sys.stderr, flush=True)
        seed += 1
    print(tally, f"last digest {digest}", sep="; ", file=sys.stderr)
    return 1 if tally.failures else 0


if __name__ == "__main__":
    sys.exit(main())
