"""``python -m tests.simulation.run --seeds 200``: run seeds, stop at the first that breaks a rule."""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections import Counter
from traceback import format_exc

from tests.simulation.disk import ENGINES
from tests.simulation.history import Violation
from tests.simulation.workload import DEFAULT_STEPS, Run


def explain(run: Run, error: BaseException, steps: int) -> str:
    """Everything that somebody needs who wants to know why a seed failed."""
    rule = error.rule if isinstance(error, Violation) else "no-exception"
    text = str(error) if isinstance(error, Violation) else format_exc()
    recent = "\n".join(run.world.history.recent)
    command = f"python -m tests.simulation.run --seed {run.world.seed} --steps {steps} --engine {run.disk.kind}"
    return f"{recent}\n\nseed {run.world.seed} breaks the rule {rule}: {text}\nagain: {command}"


def main(arguments: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1, help="how many")
    parser.add_argument("--seed", type=int, default=0, help="the first")
    parser.add_argument("--steps", type=int, default=DEFAULT_STEPS, help="events of a seed before it calms down")
    parser.add_argument("--keep-going", action="store_true", help="count failures, one line each")
    parser.add_argument("--engine", choices=ENGINES, default="memory", help="what stores")
    options = parser.parse_args(arguments)
    logging.disable(logging.CRITICAL)
    counts: Counter[str] = Counter()
    started, events, deliveries, failures, hours = time.perf_counter(), 0, 0, 0, 0.0
    for seed in range(options.seed, options.seed + options.seeds):
        run = Run(seed, options.engine)
        try:
            run.run(options.steps)
        except Exception as error:
            failures += 1
            if options.keep_going:
                print(f"{seed}: {type(error).__name__} {str(error)[:150]}", file=sys.stderr)
            else:
                print(explain(run, error, options.steps), file=sys.stderr)
                return 1
        events += run.world.events
        deliveries += run.model.deliveries
        counts.update(run.counts())
        hours += run.world.monotonic / 3600
        if (seed - options.seed) % 20 == 19 or seed == options.seed + options.seeds - 1:
            seconds = time.perf_counter() - started
            print(
                f"{seed - options.seed + 1} seeds, {events} events, {deliveries} deliveries,"
                f" {hours:.1f} virtual hours, {seconds:.1f} s, {events / seconds:.0f} events/s;"
                f" last digest {run.world.history.digest()}; {dict(sorted(counts.items()))}",
                file=sys.stderr,
            )
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
