"""Benchmark of a backup's effect on concurrent publishing.

A box started by this driver is filled with messages, then receives one message at a time. ``pulsarbox backup`` runs
beside it, halted every other time window, and backs up everything: ``way`` copy copies sealed volumes, ``way`` link
links and reads them. The latency of receipts with and without the backup is compared. Both directories are on one disk.

It reads its job from stdin and prints figures, like raw_driver.py.
"""

import json
import signal
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Final

from benchmarks.drivers.raw_driver import DriverError, Job, Link
from benchmarks.drivers.raw_kept import Told, fill, p99, watched
from benchmarks.drivers.raw_scrape import subscribe
from tests.tools.box import BoxProcess

BACKUPS: Final = 2
WINDOW_SECONDS: Final = 0.8
"""Length of the windows in which the backup alternately runs and is halted, so that other load affects both alike."""
MARGIN_SECONDS: Final = 0.2
"""Pause before a window, to exclude the disk writes that the previous one left."""
VOLUME_MIB: Final = 64
"""Small, so that most data is in sealed volumes."""


def _backups(data: Path, target: Path, way: str, web_url: str, topic: str, told: Told) -> None:
    del web_url, topic
    options = ["--copy"] if way == "copy" else []
    command = [sys.executable, "-m", "pulsarbox", "backup", str(target), "--data-dir", str(data), "--full", *options]
    for _ in range(BACKUPS):
        _window("alone", told)
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
            while process.poll() is None:
                _window("beside", told)
                process.send_signal(signal.SIGSTOP)
                _window("alone", told)
                process.send_signal(signal.SIGCONT)
            if process.returncode:
                assert process.stderr is not None
                raise DriverError(f"the backup failed: {process.stderr.read()}")


def _window(name: str, told: Told) -> None:
    time.sleep(MARGIN_SECONDS)
    begin = time.monotonic()
    time.sleep(WINDOW_SECONDS)
    told.put((name, begin, time.monotonic()))


def run(job: Job) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="pulsarbox-bench-backup-", dir=job.get("folder")) as name:
        folder = Path(name)
        (folder / "pulsarbox.toml").write_text(f"[journal]\njournalVolumeSizeMbytes = {VOLUME_MIB}\n")
        box = BoxProcess(folder / "data")
        try:
            box.start()
            return _measured({**job, "url": box.url, "web_url": box.web_url}, box, folder / "backups")
        finally:
            box.kill()


def _measured(job: Job, box: BoxProcess, target: Path) -> dict[str, float]:
    many, one = Link(job), Link(job)
    many.open({0: f"{job['topic']}-0"})
    subscribe(many, {0: f"{job['topic']}-0"})
    fill(many, job)
    one.open({0: f"{job['topic']}-1"})
    took, _ = watched(one, partial(_backups, box.data, target, job["way"]), job)
    alone, beside = p99(took["alone"]), p99(took["beside"])
    size = sum(path.stat().st_size for path in (target / "files").rglob("*") if path.is_file())
    return {
        "quiet_p99_ms": alone,
        "p99_ms": beside,
        "share": beside / alone,
        "max_ms": max(took["beside"]) * 1000,
        "mib": size / 2**20,
    }


def main() -> None:
    print(json.dumps(run(json.load(sys.stdin))))


if __name__ == "__main__":
    main()
