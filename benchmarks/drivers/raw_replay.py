"""Benchmark of a dead letter replay job: its rate, and its effect on concurrent publishing.

``replay``: a dead letter topic, and a job without a rate limit that replays all of it. A second connection has one
message in flight on another topic: the latency of its receipts meanwhile is compared with that before.

It reads its job from stdin and prints figures, like driver/main.go. The Admin API's URL is the job's ``web_url``.
"""

import json
import sys
import time

from benchmarks.drivers.raw_driver import DriverError, Job, Link, busy
from benchmarks.drivers.raw_kept import AFTER_SECONDS, QUIET_SECONDS, Told, ask, fill, p99, watched

POLL_SECONDS = 0.1
JOBS = "/pulsarbox/v1/jobs"


def _replay(web_url: str, topic: str, told: Told) -> None:
    body = {"kind": "dlq-replay", "topic": f"{topic}-s-DLQ", "target": topic, "rate": 0}
    time.sleep(QUIET_SECONDS)
    begin = time.monotonic()
    number = ask("POST", web_url + JOBS, body)["id"]
    while (found := ask("GET", f"{web_url}{JOBS}/{number}"))["state"] == "running":
        time.sleep(POLL_SECONDS)
    if found["state"] != "done" or found["done"] != found["total"]:
        raise DriverError(f"the job ended with {found}")
    told.put(("replay", begin, time.monotonic()))
    time.sleep(AFTER_SECONDS)  # includes a checkpoint


def replay(job: Job) -> dict[str, float]:
    topic = f"{job['topic']}-0"
    many = Link(job)
    many.open({0: f"{topic}-s-DLQ", 1: topic})
    of = f"{job['web_url']}/admin/v2/{topic.replace('://', '/')}"
    for path in (f"{of}/subscription/s", f"{of}-s-DLQ/subscription/kept"):
        ask("PUT", path)
    fill(many, job)
    one = Link(job)
    one.open({0: f"{job['topic']}-beside"})
    broker = job.get("pid")
    before = busy(broker) if broker else 0.0
    took, seconds = watched(one, _replay, job)
    figures = {"broker_s": busy(broker) - before} if broker else {}
    return figures | {
        "rate": job["messages"] / seconds["replay"],
        "quiet_p99_ms": p99(took["quiet"]),
        "p99_ms": p99(took["replay"]),
        "share": p99(took["replay"]) / p99(took["quiet"]),
        "max_ms": max(took["replay"]) * 1000,
    }


if __name__ == "__main__":
    print(json.dumps(replay(json.load(sys.stdin))))
