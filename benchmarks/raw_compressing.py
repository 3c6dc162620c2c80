"""What compressing on the disk costs and brings: packing, its ratio, and reads of what is packed against what is not.

Reads its job from stdin and prints figures, as raw_driver.py does; but it measures a store of its own, without a box:
the part ``compressing`` of ``make bench-storage`` for one kind of bodies, smaller where the job has fewer messages.
"""

import json
import sys
from typing import Any, Final

from benchmarks.storage_compressed import measured
from benchmarks.storage_table import Options

MESSAGES: Final = 10_000
"""Of a job of full size."""
SCALE_MIN: Final = 0.03
"""Of less there is no volume that is full, and nothing is packed."""


def run(job: dict[str, Any]) -> dict[str, float]:
    """The figures of one kind of bodies."""
    return measured(Options(max(job["messages"] / MESSAGES, SCALE_MIN), 0.0, 0.0, None, ()), job["kind"], job["codec"])


def main() -> None:
    print(json.dumps(run(json.load(sys.stdin))))


if __name__ == "__main__":
    main()
