"""Benchmark of a pipeline runner: startup, latency, memory and CPU time.

``make bench-spark`` runs it after the others. ``pulsarbox pipeline run`` runs a file with one function, and one with
ten, each between separate topics, on local[2] beside a box. Startup is counted from the start of the command until the
first message has passed through every function. Then the latency of single messages is measured, and the memory and CPU
time of the idle runner's processes (its JVM and Python's). Memory is proportional (PSS): a shared page counts once.
"""

import argparse
import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import pulsar

from tests.tools.box import BoxProcess

FUNCTION: Final = """
@function(inputs="in-{n}", output="out-{n}", name="f{n}", trigger="100 milliseconds")
def f{n}(value, ctx):
    return value
"""
DEADLINE_SECONDS: Final = 600.0
_TICKS: Final = os.sysconf("SC_CLK_TCK")


def tree(pid: int) -> list[int]:
    """Return a process and all its descendants."""
    parents: dict[int, list[int]] = {}
    for each in Path("/proc").iterdir():
        if each.name.isdigit():
            with contextlib.suppress(OSError):
                parents.setdefault(int(each.joinpath("stat").read_text().rpartition(")")[2].split()[1]), []).append(
                    int(each.name)
                )
    found, left = [], [pid]
    while left:
        each_pid = left.pop()
        found.append(each_pid)
        left += parents.get(each_pid, [])
    return found


def memory_mb(pids: list[int]) -> float:
    """Return their memory, each page counted once."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1])
    return total / 1024


def cpu_seconds(pids: list[int]) -> float:
    """Return their CPU time so far."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            total += int(fields[11]) + int(fields[12])
    return total / _TICKS


class Through:
    """Messages through the functions of a runner."""

    def __init__(self, client: pulsar.Client, functions: int) -> None:
        self.producers = [client.create_producer(f"in-{n}") for n in range(functions)]
        self.consumers = [
            client.subscribe(f"out-{n}", "bench", initial_position=pulsar.InitialPosition.Earliest)
            for n in range(functions)
        ]

    def once(self) -> float:
        """Send one message to each function, wait for all, and return the seconds."""
        begin = time.perf_counter()
        for producer in self.producers:
            producer.send(b"x")
        for consumer in self.consumers:
            consumer.acknowledge(consumer.receive(timeout_millis=round(DEADLINE_SECONDS * 1000)))
        return time.perf_counter() - begin


def measured(folder: Path, box: BoxProcess, functions: int, times: int, idle: float) -> dict[str, Any]:
    """Measure one runner."""
    file = folder / f"functions{functions}.py"
    text = "from pulsarbox.pipelines import function\n" + "".join(FUNCTION.format(n=n) for n in range(functions))
    file.write_text(text)
    words = ["run", str(file), "--master", "local[2]", "--state", str(folder / "state")]
    client = pulsar.Client(box.url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    log = (folder / f"run-{functions}.log").open("wb")
    try:
        through = Through(client, functions)
        begin = time.perf_counter()
        command = [sys.executable, "-m", "pulsarbox", "pipeline", *words, "--url", box.url, "--admin-url", box.web_url]
        runner = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        try:
            through.once()
            first = time.perf_counter() - begin
            for _ in range(5):
                through.once()
            latencies = sorted(through.once() for _ in range(times))
            pids = tree(runner.pid)
            before = cpu_seconds(pids)
            time.sleep(idle)
            used = (cpu_seconds(pids) - before) / idle
            found = {
                "functions": functions,
                "first message through all, s": round(first, 1),
                "latency p50, ms": round(statistics.median(latencies) * 1000),
                "latency p95, ms": round(latencies[int(len(latencies) * 0.95)] * 1000),
                "memory, MB": round(memory_mb(pids)),
                "processes": len(pids),
                "idle, cores": round(used, 2),
            }
            begin = time.perf_counter()
            runner.send_signal(signal.SIGTERM)
            code = runner.wait(DEADLINE_SECONDS)
            assert code == 0, f"the runner ends with {code}: {log.name}"
            return found | {"stop, s": round(time.perf_counter() - begin, 1)}
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(runner.pid, signal.SIGKILL)
            runner.wait()
    finally:
        client.close()
        log.close()


def main() -> None:
    """Measure, and print a line of JSON for each runner."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--functions", default="1,10", help="how many functions, with commas between")
    parser.add_argument("--times", type=int, default=40, help="messages one at a time")
    parser.add_argument("--idle", type=float, default=10.0, help="seconds in which nothing comes")
    arguments = parser.parse_args()
    for number in arguments.functions.split(","):
        with tempfile.TemporaryDirectory(prefix="pulsarbox-pipelines-") as folder:
            box = BoxProcess(Path(folder) / "data")
            box.start()
            try:
                print(json.dumps(measured(Path(folder), box, int(number), arguments.times, arguments.idle)), flush=True)
            finally:
                box.kill()


if __name__ == "__main__":
    main()
