"""A look at a plugin in a process of its own, which may hang, end, or fill its memory without harm.

``python -m pulsarbox.plugins.probe KIND NAME TARGET all`` loads it and asks what ``conformance`` asks, within bounds of
processor time and memory that the system keeps; what it finds is the last line of stdout, as JSON. What a plugin prints
goes to stderr.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Final, NamedTuple

from pulsarbox.plugins.registry import Found, PluginError, load

SECONDS_MAX: Final = 20
"""Of a processor's time; by the clock a multiple of that, for busy machines."""
MEMORY_MAX: Final = 1 << 30
"""Bytes beyond what the process had when it began with the plugin."""


class Report(NamedTuple):
    """What was found out about a plugin."""

    usable: bool
    """It loads, and fits its contract from outside."""
    problems: list[str]
    """Empty where all is well."""
    trace: str = ""
    digest: str = ""
    """Of what it decides, where that has to be the same in each process."""


def probe(found: Found, seconds: float = SECONDS_MAX, memory: int = MEMORY_MAX) -> Report:
    """Load a plugin elsewhere and check it. Raises nothing: what cannot be found out is a problem.

    What has to be the same in each process is asked in two, between which Python's own ``hash`` differs.
    """
    if found.problem:
        return Report(False, [found.problem])
    report = _in_a_process(found, "all", seconds, memory)
    if report.digest and not report.problems:
        other = _in_a_process(found, "digest", seconds, memory)
        if other.digest != report.digest:
            said = "another process gets other answers: Python's hash(), for one, differs from process to process"
            return report._replace(problems=[f"processes: {said}"])
    return report


def _in_a_process(found: Found, what: str, seconds: float, memory: int) -> Report:
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
        return Report(False, [f"it had not come to an end after {_patience(seconds):g} seconds"])
    except OSError as error:
        return Report(False, [f"no process could be made for it: {error.strerror}"])
    try:
        return Report(*json.loads(done.stdout.splitlines()[-1]))
    except (IndexError, ValueError, TypeError):
        return Report(False, [_ending(done.returncode, seconds)], done.stderr[-2_000:].decode(errors="replace"))


def _patience(seconds: float) -> float:
    """By the clock."""
    return seconds * 4 + 10


def _ending(code: int, seconds: float) -> str:
    from signal import SIGKILL, SIGXCPU, Signals

    if code in (-SIGXCPU, -SIGKILL):
        return f"it needed more than {seconds:g} seconds of a processor"
    if code < 0:
        return f"its process was ended by {Signals(-code).name}"
    return f"it ended its process with exit code {code}"


def _bounded() -> None:
    """Keep this process within the bounds it was given."""
    with contextlib.suppress(ImportError, ValueError, KeyError):
        import resource

        seconds, memory = os.environ["PULSARBOX_PROBE"].split()
        whole = max(1, round(float(seconds)))
        resource.setrlimit(resource.RLIMIT_CPU, (whole, whole + 1))
        resource.setrlimit(resource.RLIMIT_AS, (_size() + int(memory),) * 2)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _size() -> int:
    """Bytes of address space that this process has."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        return pages * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def main(arguments: list[str]) -> None:
    """See the module."""
    from pulsarbox.plugins.conformance import digest, problems

    kind, name, target, what = arguments
    stdout = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    _bounded()
    try:
        plugin = load(Found(kind, name, "", target))
        found = problems(kind, plugin) if what == "all" else []
        report = Report(True, found, "", "" if found else digest(kind, plugin))
    except PluginError as error:
        report = Report(False, [str(error)], error.trace)
    print(json.dumps(report), file=stdout, flush=True)
    os._exit(0)  # nothing that the plugin has left to do at exit


if __name__ == "__main__":
    main(sys.argv[1:])
