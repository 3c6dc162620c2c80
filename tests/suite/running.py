"""Execution of the suite's files, each in a subprocess, and collection of each test's outcome.

A test without a report for ``TEST_SECONDS`` has failed; its process is killed, and another one runs the remaining
tests.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

CHILD: Final = Path(__file__).with_name("child.py")
TEST_SECONDS: Final = 180.0
POLL_SECONDS: Final = 0.1

LEFT_OUT: Final = ("oauth2_test", "auto_cluster_failover_test")
"""Excluded, as they start containers with an OAuth 2 server or several brokers."""


@dataclass(frozen=True)
class Outcome:
    """Outcome of one test: passed, failed or skipped."""

    test: str
    outcome: str
    seconds: float = 0.0
    why: str = ""

    @property
    def passed(self) -> bool:
        return self.outcome == "passed"

    @property
    def ended(self) -> bool:
        return self.outcome not in ("started", "listed")

    @property
    def reason(self) -> str:
        """The last line of ``why``: the exception of a traceback."""
        lines = self.why.strip().splitlines()
        return lines[-1] if lines else ""


class SuiteError(Exception):
    """The suite cannot be run; the message gives the reason and the remedy."""


def files(folder: Path) -> list[Path]:
    """Return the test files to run, by name. Raises SuiteError."""
    found = [path for path in sorted(folder.glob("*_test.py")) if path.stem not in LEFT_OUT]
    if not found:
        raise SuiteError(f"no *_test.py in {folder}: name a checkout of github.com/apache/pulsar-client-python")
    return found


def listed(file: Path, scratch: Path) -> list[str]:
    """Return the names of a file's tests, in execution order. Raises SuiteError if it cannot be imported."""
    report = scratch / f"{file.stem}.list"
    report.unlink(missing_ok=True)
    process, log = _child(file, report, ("--list",), scratch)
    if process.wait(TEST_SECONDS):
        raise SuiteError(f"{file.name} cannot be read:\n{log.read_text(errors='replace')[-2000:]}")
    return [outcome.test for outcome in told(report)]


def told(report: Path) -> list[Outcome]:
    """Return the outcomes that a child has written so far, without an incomplete last line."""
    text = report.read_text(encoding="utf-8") if report.exists() else ""
    return [Outcome(**json.loads(line)) for line in text.splitlines(keepends=True) if line.endswith("\n")]


def run_file(
    file: Path,
    names: Sequence[str],
    scratch: Path,
    seconds: float = TEST_SECONDS,
    tell: Callable[[Outcome], None] = lambda outcome: None,
) -> dict[str, Outcome]:
    """Run these tests of a file, in this order, and return their outcomes."""
    ended: dict[str, Outcome] = {}

    def keep(outcome: Outcome) -> None:
        if outcome.test in names and outcome.test not in ended:
            ended[outcome.test] = outcome
            tell(outcome)

    while remaining := [name for name in names if name not in ended]:
        _run_some(file, remaining, scratch, seconds, keep)
    return ended


def _run_some(file: Path, names: Sequence[str], scratch: Path, seconds: float, keep: Callable[[Outcome], None]) -> None:
    """Run tests until one hangs or the process ends; at least one outcome is passed to ``keep``."""
    report = scratch / f"{file.stem}.report"
    report.unlink(missing_ok=True)
    process, log = _child(file, report, names, scratch)
    rows: list[Outcome] = []
    since, hangs = time.monotonic(), False
    while process.poll() is None and not hangs:
        time.sleep(POLL_SECONDS)
        new = told(report)[len(rows) :]
        if new:
            rows, since = rows + new, time.monotonic()
        for row in new:
            if row.ended:
                keep(row)
        hangs = time.monotonic() - since > seconds
    _end(process)
    rows = told(report)
    for row in rows:
        if row.ended:
            keep(row)
    if rows and not rows[-1].ended:
        how = f"it did not end within {seconds:g} s" if hangs else f"its process ended ({process.returncode})"
        keep(Outcome(rows[-1].test, "failed", time.monotonic() - since, how))
    elif not any(row.ended and row.test in names for row in rows):  # failed in setUpClass, or without any report
        said = [row.why for row in rows if row.why] or [log.read_text(errors="replace")[-2000:]]
        for name in names:
            keep(Outcome(name, "failed", why=said[0]))


def _child(file: Path, report: Path, names: Sequence[str], scratch: Path) -> "tuple[subprocess.Popen[bytes], Path]":
    log = scratch / f"{file.stem}.log"
    with log.open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, str(CHILD), str(file), str(report), *names],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=file.parent,
            env=_environ(os.environ),
            start_new_session=True,
        )
    return process, log


def _environ(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without our settings, and without proxies between the tests and the local box."""
    return {
        name: value
        for name, value in environ.items()
        if not name.startswith("PULSARBOX_") and not name.lower().endswith("_proxy")
    }


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Kill a process and its children, unless it has ended: the group that ``_child`` created."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
