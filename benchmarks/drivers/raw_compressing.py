"""Benchmark of compression at rest: packing speed, ratio, and reads of packed and unpacked data.

Reads its job from stdin and prints figures, as raw_driver.py does, but measures a store without a box. Runs the part
``compressing`` of ``make bench-storage`` for one kind of bodies, scaled by the job's number of messages.
"""

import json
import sys
from typing import Any, Final

from benchmarks.storage_compressed import measured
from benchmarks.storage_table import Options

MESSAGES: Final = 10_000
"""Messages of a job of full size."""
SCALE_MIN: Final = 0.03
"""Minimum scale at which a volume is sealed and packed."""


def run(job: dict[str, Any]) -> dict[str, float]:
    """Return the figures of one kind of bodies."""
    return measured(Options(max(job["messages"] / MESSAGES, SCALE_MIN), 0.0, 0.0, None, ()), job["kind"], job["codec"])


def main() -> None:
    print(json.dumps(run(json.load(sys.stdin))))


if __name__ == "__main__":
    main()
