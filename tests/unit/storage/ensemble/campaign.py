"""``python -m tests.unit.storage.ensemble.campaign --examples 20000``: the long form of ``test_history``.

Each property runs in rounds with a seed of their own, up to the first failure, which Hypothesis then reduces.
"""

import argparse
import sys
import time
from collections.abc import Callable

from hypothesis import HealthCheck, Verbosity, given, seed, settings
from hypothesis import strategies as st

from tests.unit.storage.ensemble import test_history

ROUND = 1000
"""Examples of one property with one seed."""
PROPERTIES: tuple[Callable[..., None], ...] = (
    test_history.test_what_is_confirmed_stays_and_what_is_rejected_does_not_come_back,
    test_history.test_a_start_without_a_directory_has_all_confirmed_batches_or_is_refused,
)


def run_round(test: Callable[..., None], number: int, examples: int) -> None:
    """Run one property; raise what it raises."""
    inner = test.hypothesis.inner_test  # type: ignore[attr-defined]

    def history(data: st.DataObject) -> None:
        inner(data)

    rules = settings(
        max_examples=examples,
        database=None,
        deadline=None,
        derandomize=False,
        verbosity=Verbosity.normal,
        suppress_health_check=list(HealthCheck),
    )
    seed(number)(rules(given(data=st.data())(history)))()


def main(arguments: list[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--examples", type=int, default=20_000, help="of each property (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the first round (%(default)s)")
    parser.add_argument("--seconds", type=float, default=3600.0, help="no round begins later (%(default)g)")
    options = parser.parse_args(arguments)
    started, done, number = time.monotonic(), 0, options.seed
    while done < options.examples and time.monotonic() - started < options.seconds:
        count = min(ROUND, options.examples - done)
        for test in PROPERTIES:
            try:
                run_round(test, number, count)
            except BaseException:
                sys.stderr.write(f"seed {number} of {test.__name__} fails; again: --seed {number} --examples {count}\n")
                raise
        done, number = done + count, number + 1
        sys.stderr.write(f"{done} examples of each property, {time.monotonic() - started:.0f} s\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
