"""Measures what a backup costs clients that publish meanwhile.

A box of the driver's own is filled with so many messages, then has one message in flight. By turns it is alone, and
beside ``pulsarbox backup``, which stores everything again: ``way`` copy copies sealed volumes, link links them and reads
them once. What receipts take in both is compared. The two directories are on one disk.

It reads its job from stdin and prints figures, like raw_driver.py.
"""

import json
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Final

from benchmarks.raw_driver import DriverError, Job, Link
from benchmarks.raw_kept import Told, fill, p99, watched
from benchmarks.raw_scrape import subscribe
from tests.tools.box import Box

TURNS: Final = 3
ALONE_SECONDS: Final = 4.0
"""Between two backups; the first part of it is for what a backup leaves to the disk."""
SETTLE_SECONDS: Final = 1.0


def _backups(data: Path, target: Path, way: str, web_url: str, topic: str, told: Told) -> None:
    del web_url, topic
    options = ["--copy"] if way == "copy" else []
    command = [sys.executable, "-m", "pulsarbox", "backup", str(target), "--data-dir", str(data), "--full", *options]
    for turn in range(TURNS):
        time.sleep(SETTLE_SECONDS)
        begin = time.monotonic()
        time.sleep(ALONE_SECONDS)
        told.put(("alone", begin, time.monotonic()))
        begin = time.monotonic()
        done = subprocess.run([*command, "-o", "json"], capture_output=True, text=True, check=False)
        if done.returncode:
            raise DriverError(f"backup {turn} failed: {done.stderr}")
        told.put(("beside", begin, time.monotonic()))


def run(job: Job) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="pulsarbox-bench-backup-", dir=job.get("folder")) as name:
        folder = Path(name)
        box = Box(folder / "data")
        try:
            box.start()
            return _measured({**job, "url": box.url, "web_url": box.web_url}, box, folder / "backups")
        finally:
            box.kill()


def _measured(job: Job, box: Box, target: Path) -> dict[str, float]:
    many, one = Link(job), Link(job)
    many.open({0: f"{job['topic']}-0"})
    subscribe(many, {0: f"{job['topic']}-0"})
    fill(many, job)
    one.open({0: f"{job['topic']}-1"})
    took, seconds = watched(one, partial(_backups, box.data, target, job["way"]), job)
    alone, beside = p99(took["alone"]), p99(took["beside"])
    size = sum(path.stat().st_size for path in (target / "files").rglob("*") if path.is_file())
    return {
        "quiet_p99_ms": alone,
        "p99_ms": beside,
        "share": beside / alone,
        "max_ms": max(took["beside"]) * 1000,
        "seconds": seconds["beside"],
        "mib": size / 2**20,
    }


def main() -> None:
    print(json.dumps(run(json.load(sys.stdin))))


if __name__ == "__main__":
    main()
