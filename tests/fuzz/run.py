"""``python -m tests.fuzz.run --seeds 20``: run seeds, stop at the first violation, and print how to reproduce it."""

import argparse
import logging
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.fuzz.admin import Broken, Campaign, seeds


def main(words: Sequence[str] | None = None) -> int:
    """Run the command; return 1 if a rule was broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.run", description=__doc__)
    parser.add_argument("--seeds", type=int, default=10, metavar="N", help="how many boxes (default: 10)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="the first seed (default: 0)")
    parser.add_argument("--requests", type=int, default=3000, metavar="N", help="requests to each (default: 3000)")
    given = parser.parse_args(words)
    logging.basicConfig(level=logging.CRITICAL)
    began, statuses = time.monotonic(), Counter[int]()
    for seed in seeds(given.seed, given.seeds):
        with tempfile.TemporaryDirectory() as folder:
            campaign = Campaign(seed, Path(folder) / "data")
            try:
                campaign.run(given.requests)
            except Broken as error:
                again = f"python -m tests.fuzz.run --seed {seed} --seeds 1 --requests {given.requests}"
                sys.stderr.write(f"seed {seed}: {error}\nagain: {again}\n")
                return 1
            statuses += campaign.statuses
        sys.stderr.write(f"seed {seed}: {sum(campaign.statuses.values())} requests\n")
    told = ", ".join(f"{status}: {count}" for status, count in sorted(statuses.items()))
    sys.stdout.write(
        f"{given.seeds} seeds, {sum(statuses.values())} requests, {time.monotonic() - began:.0f} s; {told}\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
