"""Check of a plugin in a child process, which contains hangs, crashes and excessive memory use.

``python -m pulsarbox.plugins.probe KIND NAME TARGET all`` loads the plugin and runs the ``conformance`` checks with
CPU and memory limits of the operating system. The last line of stdout is the report as JSON. Output of the plugin is
redirected to stderr.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Final, NamedTuple

from pulsarbox.plugins.registry import PluginEntry, PluginError, load

SECONDS_MAX: Final = 20
"""Seconds of CPU time; the wall-clock limit is a multiple, for busy machines."""
MEMORY_MAX: Final = 1 << 30
"""Bytes beyond the size of the process when it starts loading the plugin."""


class ProbeReport(NamedTuple):
    """The result of checking a plugin."""

    usable: bool
    """Whether the plugin loads and has the attributes of its kind."""
    problems: list[str]
    """Violations; empty if all checks pass."""
    trace: str = ""
    digest: str = ""
    """Digest of decisions that must be the same in every process."""


def probe(found: PluginEntry, seconds: float = SECONDS_MAX, memory: int = MEMORY_MAX) -> ProbeReport:
    """Load and check a plugin in a child process. Never raises: failures are reported as problems.

    Decisions that must be the same everywhere are compared between two processes with different hash seeds.
    """
    if found.problem:
        return ProbeReport(False, [found.problem])
    report = _in_a_process(found, "all", seconds, memory)
    if report.digest and not report.problems:
        other = _in_a_process(found, "digest", seconds, memory)
        if other.digest != report.digest:
            said = "results differ between processes, as those of Python's hash() do"
            return report._replace(problems=[f"processes: {said}"])
    return report


def _in_a_process(found: PluginEntry, what: str, seconds: float, memory: int) -> ProbeReport:
    command = [sys.executable, "-m", "pulsarbox.plugins.probe", found.kind, found.name, found.target, what]
    seed = "1" if what == "all" else "2"
    environment = {**os.environ, "PULSARBOX_PROBE": f"{seconds:g} {memory}", "PYTHONHASHSEED": seed}
    environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    try:
        done = subprocess.run(
            command,
            env=environment,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=_patience(seconds),
            check=False,
        )
    except subprocess.TimeoutExpired:
        return ProbeReport(False, [f"not finished after {_patience(seconds):g} seconds"])
    except OSError as error:
        return ProbeReport(False, [f"cannot start a process for the check: {error.strerror}"])
    try:
        return ProbeReport(*json.loads(done.stdout.splitlines()[-1]))
    except (IndexError, ValueError, TypeError):
        return ProbeReport(False, [_ending(done.returncode, seconds)], done.stderr[-2_000:].decode(errors="replace"))


def _patience(seconds: float) -> float:
    """Return the wall-clock limit in seconds."""
    return seconds * 4 + 10


def _ending(code: int, seconds: float) -> str:
    from signal import SIGKILL, SIGXCPU, Signals

    if code in (-SIGXCPU, -SIGKILL):
        return f"exceeded {seconds:g} seconds of CPU time"
    if code < 0:
        return f"its process was killed by {Signals(-code).name}"
    return f"its process exited with code {code}"


def _bounded() -> None:
    """Apply the CPU and memory limits to this process."""
    with contextlib.suppress(ImportError, ValueError, KeyError):
        import resource

        seconds, memory = os.environ["PULSARBOX_PROBE"].split()
        whole = max(1, round(float(seconds)))
        resource.setrlimit(resource.RLIMIT_CPU, (whole, whole + 1))
        resource.setrlimit(resource.RLIMIT_AS, (_size() + int(memory),) * 2)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _size() -> int:
    """Return the size of this process's address space in bytes."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        return pages * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def main(arguments: list[str]) -> None:
    """Check one plugin and print the report; see the module docstring."""
    from pulsarbox.plugins.conformance import digest, problems

    kind, name, target, what = arguments
    stdout = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    _bounded()
    try:
        plugin = load(PluginEntry(kind, name, "", target))
        found = problems(kind, plugin) if what == "all" else []
        report = ProbeReport(True, found, "", "" if found else digest(kind, plugin))
    except PluginError as error:
        report = ProbeReport(False, [str(error)], error.trace)
    print(json.dumps(report), file=stdout, flush=True)
    os._exit(0)  # skip the plugin's exit handlers


if __name__ == "__main__":
    main(sys.argv[1:])
