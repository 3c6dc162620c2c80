"""Benchmark of compaction: its duration, and its effect on concurrent publishing.

``compaction``: a topic with entries of a number of keys, uniformly distributed. A second connection has one message in
flight on another topic: the latency of its receipts during the compaction is compared with that before. Then the topic
is compacted again, with a tenth as many entries after the compacted view.

It reads its job from stdin and prints figures, like driver/main.go. The Admin API's URL is the job's ``web_url``.
"""

import json
import random
import sys
import time

from benchmarks.drivers.raw_driver import DriverError, Job, Link, message, publish
from benchmarks.drivers.raw_kept import AFTER_SECONDS, AT_ONCE, QUIET_SECONDS, Told, ask, p99, watched

POLL_SECONDS = 0.1


def _fill(job: Job, first: int, count: int) -> None:
    link = Link(job)  # opened per call, as an idle connection would be closed
    link.open({0: f"{job['topic']}-0"})
    chance, body = random.Random(first), random.Random(1).randbytes(job["size"])
    for at in range(first, first + count, AT_ONCE):
        numbers = range(at, min(at + AT_ONCE, first + count))
        link.prepare([message(link, 0, each, body, f"key-{chance.randrange(job['keys'])}") for each in numbers])
        publish([link], job["pending"], len(numbers))


def _compact(web_url: str, topic: str, told: Told) -> None:
    path = f"{web_url}/admin/v2/{topic.replace('://', '/')}/compaction"
    time.sleep(QUIET_SECONDS)
    begin = time.monotonic()
    ask("PUT", path)
    while (found := ask("GET", path))["status"] == "RUNNING":
        time.sleep(POLL_SECONDS)
    if found["status"] != "SUCCESS":
        raise DriverError(f"the compaction ended with {found}")
    told.put(("compaction", begin, time.monotonic()))
    time.sleep(AFTER_SECONDS)  # includes a checkpoint


def compaction(job: Job) -> dict[str, float]:
    Link(job).open({0: f"{job['topic']}-0"})
    ask("POST", f"{job['web_url']}/admin/v2/{job['topic'].replace('://', '/')}-0/retention",
        {"retentionTimeInMinutes": -1, "retentionSizeInMB": -1})  # fmt: skip
    _fill(job, 0, job["messages"])
    one = Link(job)
    one.open({0: f"{job['topic']}-beside"})
    took, seconds = watched(one, _compact, job)
    _fill(job, job["messages"], job["messages"] // 10)
    again, seconds_again = watched(one, _compact, job)
    quiet = p99(took["quiet"])
    return {
        "compaction_s": seconds["compaction"],
        "again_s": seconds_again["compaction"],
        "quiet_p99_ms": quiet,
        "p99_ms": p99(took["compaction"]),
        "share": p99(took["compaction"]) / quiet,
        "max_ms": max(took["compaction"]) * 1000,
        "again_p99_ms": p99(again["compaction"]),
    }


if __name__ == "__main__":
    print(json.dumps(compaction(json.load(sys.stdin))))
