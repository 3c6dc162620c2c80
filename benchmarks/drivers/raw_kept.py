"""Benchmark of expiry, retention and policy changes: their effect on concurrent publishing.

- ``expiry``: a topic with a backlog. Its message TTL is set so that all entries expire, and then its retention so that
  all are deleted. A second connection has one message in flight on another topic: the latency of its receipts meanwhile
  is compared with that before.
- ``policy``: many topics, each with a producer and a subscription. A policy of their namespace is changed; the maximum
  latency of a receipt meanwhile bounds the longest turn of the event loop.

It reads its job from stdin and prints figures, like driver/main.go. The Admin API's URL is the job's ``web_url``.
"""

import json
import multiprocessing
import random
import sys
import time
from collections.abc import Callable
from queue import Empty
from statistics import quantiles
from typing import Any, Final, TypeAlias
from urllib.request import Request, urlopen

from benchmarks.drivers.raw_driver import DriverError, Job, Link, message, prepare, publish
from benchmarks.drivers.raw_scrape import opened, subscribe

QUIET_SECONDS: Final = 5.0
TIMEOUT_SECONDS: Final = 120.0
POLL_SECONDS: Final = 0.2
CHANGES: Final = 3
AFTER_SECONDS: Final = 4.0
AT_ONCE: Final = 50_000
"""Messages encoded at a time."""
Told: TypeAlias = "multiprocessing.Queue[tuple[str, float, float]]"
Phases = tuple[dict[str, list[float]], dict[str, float]]


def ask(method: str, url: str, body: object = None) -> Any:
    """Send a request to the Admin API and return its answer."""
    data = None if body is None else json.dumps(body).encode()
    request = Request(url, data, {"Content-Type": "application/json"}, method=method)
    with urlopen(request, timeout=TIMEOUT_SECONDS) as response:
        text = response.read()
    return json.loads(text) if text.strip() else None


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise DriverError(f"nothing has gone after {TIMEOUT_SECONDS:g} s")
        time.sleep(POLL_SECONDS)


def _expire(web_url: str, topic: str, told: Told) -> None:
    of = f"{web_url}/admin/v2/{topic.replace('://', '/')}"
    time.sleep(QUIET_SECONDS)
    for phase, path, body, done in (
        ("expiry", f"{of}/messageTTL?messageTTL=1", None, lambda stats: _left(stats) == 0),
        ("retention", f"{of}/retention", {"retentionTimeInMinutes": 0, "retentionSizeInMB": 0}, _has_gone),
    ):
        begin = time.monotonic()
        ask("POST", path, body)
        _until(lambda done=done: done(ask("GET", f"{of}/stats")))  # type: ignore[misc]
        time.sleep(AFTER_SECONDS)  # includes follow-up work, mainly a checkpoint
        told.put((phase, begin, time.monotonic()))


def _left(stats: Any) -> int:
    (subscription,) = stats["subscriptions"].values()
    backlog: int = subscription["msgBacklog"]
    return backlog


def _has_gone(stats: Any) -> bool:
    """Return whether all ledgers but the open one were deleted."""
    return bool(stats["storageSize"] < stats["bytesInCounter"] // 10)


def _change(web_url: str, topic: str, told: Told) -> None:
    namespace = "/".join(topic.split("/")[2:4])
    path = f"{web_url}/admin/v2/namespaces/{namespace}/retention"
    time.sleep(QUIET_SECONDS)
    for number in range(CHANGES):
        begin = time.monotonic()
        ask("POST", path, {"retentionTimeInMinutes": 60 + number, "retentionSizeInMB": -1})
        answered = time.monotonic()
        told.put(("answer", begin, answered))
        time.sleep(3.0)  # topics apply the change in the turns after the answer
        told.put(("change", begin, time.monotonic()))
    ask("DELETE", path)


def watched(one: Link, child: Callable[[str, str, Told], None], job: Job) -> Phases:
    """Publish one by one while ``child`` works; return the receipts' latencies and the duration of each phase."""
    told: multiprocessing.Queue[tuple[str, float, float]] = multiprocessing.Queue()
    worker = multiprocessing.Process(target=child, args=(job["web_url"], f"{job['topic']}-0", told))
    one.socket.setblocking(True)
    receipts: list[tuple[float, float]] = []
    worker.start()
    while worker.is_alive():
        begin = time.monotonic()
        one.socket.sendall(message(one, 0, len(receipts), b"y" * 100))
        while not one.read():
            pass
        receipts.append((begin, time.monotonic() - begin))
    worker.join()
    if worker.exitcode:
        raise DriverError("the Admin API did not do what it was asked for")
    phases: list[tuple[str, float, float]] = []
    try:
        while True:
            phases.append(told.get(timeout=1.0))
    except Empty:
        pass
    first = min(begin for _, begin, _ in phases)
    took = {"quiet": [each for at, each in receipts if at + each < first]}
    seconds: dict[str, float] = {}
    for name, begin, end in phases:
        took.setdefault(name, []).extend(each for at, each in receipts if begin <= at + each and at <= end)
        seconds[name] = max(seconds.get(name, 0.0), end - begin)
    return took, seconds


def p99(values: list[float]) -> float:
    return quantiles(values, n=100, method="inclusive")[98] * 1000


def fill(many: Link, job: Job) -> None:
    """Publish the job's messages to the link's first topic, without measuring."""
    body = random.Random(1).randbytes(job["size"])
    for at in range(0, job["messages"], AT_ONCE):
        count = min(AT_ONCE, job["messages"] - at)
        prepare([many], 1, range(at, at + count), body)
        publish([many], job["pending"], count)


def expiry(job: Job) -> dict[str, float]:
    many = Link(job)
    many.open({0: f"{job['topic']}-0"})
    subscribe(many, {0: f"{job['topic']}-0"})
    of = f"{job['web_url']}/admin/v2/{job['topic'].replace('://', '/')}-0"
    ask("POST", f"{of}/retention", {"retentionTimeInMinutes": -1, "retentionSizeInMB": -1})
    fill(many, job)
    one = Link(job)
    one.open({0: f"{job['topic']}-beside"})
    took, seconds = watched(one, _expire, job)
    quiet = p99(took["quiet"])
    return {
        "quiet_p99_ms": quiet,
        "expiry_p99_ms": p99(took["expiry"]),
        "expiry_share": p99(took["expiry"]) / quiet,
        "expiry_max_ms": max(took["expiry"]) * 1000,
        "expiry_s": seconds["expiry"] - AFTER_SECONDS,
        "retention_p99_ms": p99(took["retention"]),
        "retention_share": p99(took["retention"]) / quiet,
        "retention_max_ms": max(took["retention"]) * 1000,
        "retention_s": seconds["retention"] - AFTER_SECONDS,
    }


def policy(job: Job) -> dict[str, float]:
    opened(job)
    one = Link(job)
    one.open({0: f"{job['topic']}-beside"})
    took, seconds = watched(one, _change, job)
    return {
        "answer_ms": seconds["answer"] * 1000,
        "stall_ms": max(took["change"]) * 1000,
        "quiet_max_ms": max(took["quiet"]) * 1000,
        "p99_ms": p99(took["change"]),
        "quiet_p99_ms": p99(took["quiet"]),
        "share": p99(took["change"]) / p99(took["quiet"]),
    }


if __name__ == "__main__":
    asked = json.load(sys.stdin)
    print(json.dumps({"expiry": expiry, "policy": policy}[asked["row"]](asked)))
