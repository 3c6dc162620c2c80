"""Benchmark of commands: their startup time, and `produce` and `consume` against loops of the official client.

Reads a job from stdin and prints figures, as raw_driver.py does. Both sides are processes, and the measured time
includes their start and exit: lines from a file to a topic, messages from a subscription to a file.
"""

import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import pulsar

COMMAND: Final = (sys.executable, "-m", "pulsarbox")

PRODUCE: Final = """
import sys, pulsar
client = pulsar.Client(sys.argv[1], logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
producer = client.create_producer(sys.argv[2], batching_enabled=True, block_if_queue_full=True)
stored = lambda result, message_id: None
for line in sys.stdin.buffer:
    producer.send_async(line[:-1], stored)
producer.flush()
client.close()
"""
CONSUME: Final = """
import sys, pulsar
client = pulsar.Client(sys.argv[1], logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
consumer = client.subscribe(sys.argv[2], "official")
write = sys.stdout.buffer.write
for _ in range(int(sys.argv[3])):
    message = consumer.receive()
    write(message.data())
    write(b"\\n")
    consumer.acknowledge(message)
client.close()
"""


def seconds(words: Sequence[str], stdin: Path | None = None) -> float:
    """Return the run time of a process, including its start and exit."""
    with (stdin or Path("/dev/null")).open("rb") as given, tempfile.TemporaryFile() as taken:
        begin = time.perf_counter()
        subprocess.run(words, stdin=given, stdout=taken, stderr=subprocess.PIPE, check=True)
        return time.perf_counter() - begin


def lines_of(job: dict[str, Any], folder: str) -> Path:
    path = Path(folder) / "lines"
    size = job["size"]
    path.write_bytes(b"".join(b"%0*d\n" % (size, number) for number in range(job["messages"])))
    return path


def start_row(job: dict[str, Any]) -> dict[str, float]:
    """Return elapsed and CPU milliseconds of commands that have almost nothing to do.

    ``python`` is a bare interpreter: the lower bound.
    """
    figures = {}
    commands = {
        "python": (sys.executable, "-c", "pass"),
        "version": (*COMMAND, "version"),
        "produce": (*COMMAND, "produce", job["topic"], "x", "--url", job["url"], "-q"),
        "consume": (*COMMAND, "consume", job["topic"], "-n", "1", "--url", job["url"]),
        "admin": (*COMMAND, "admin", "--admin-url", job["web_url"], "topics", "stats", job["topic"]),
    }
    if not job["web_url"]:
        del commands["admin"]
    for name, words in commands.items():
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        samples = [1000 * seconds(words) for _ in range(job["runs"])]
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        figures[f"{name}_ms"] = statistics.median(samples)
        figures[f"{name}_cpu_ms"] = 1000 * used / job["runs"]
    return figures


def compared(job: dict[str, Any], measure: dict[str, Callable[[], float]]) -> dict[str, float]:
    """Measure both sides, in an order that alternates between rounds."""
    names = sorted(measure, reverse=job["topic"][-1] in "13579")
    taken = {name: measure[name]() for name in names}
    count, ours, official = job["messages"], taken["ours"], taken["official"]
    return {"rate": count / ours, "official": count / official, "ratio": official / ours}


def produce_row(job: dict[str, Any]) -> dict[str, float]:
    url, topic = job["url"], job["topic"]
    with tempfile.TemporaryDirectory(prefix="pulsarbox-bench-") as folder:
        lines = lines_of(job, folder)
        ours = (*COMMAND, "produce", f"{topic}-ours", "--url", url, "-q")
        official = (sys.executable, "-c", PRODUCE, url, f"{topic}-official")
        return compared(job, {"ours": lambda: seconds(ours, lines), "official": lambda: seconds(official, lines)})


def consume_row(job: dict[str, Any]) -> dict[str, float]:
    """Measure both sides on the same messages, each through an existing subscription."""
    url, topic, count = job["url"], job["topic"], str(job["messages"])
    client = pulsar.Client(url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    for name in ("ours", "official"):
        client.subscribe(topic, name).close()
    client.close()
    batch = ("--batch",) if job.get("batched") else ("--no-batch",)
    with tempfile.TemporaryDirectory(prefix="pulsarbox-bench-") as folder:
        seconds((*COMMAND, "produce", topic, "--url", url, "-q", *batch), lines_of(job, folder))
    ours = (*COMMAND, "consume", topic, "-s", "ours", "-n", count, "-o", job["form"], "--url", url)
    official = (sys.executable, "-c", CONSUME, url, topic, count)
    return compared(job, {"ours": lambda: seconds(ours), "official": lambda: seconds(official)})


ROWS: Final = {"start": start_row, "produce": produce_row, "consume": consume_row}


def main() -> None:
    job = json.load(sys.stdin)
    print(json.dumps(ROWS[job["row"]](job)))


if __name__ == "__main__":
    main()
