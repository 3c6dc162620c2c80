"""Benchmark of a dashboard's cost to the broker: many subscriptions, and a live view requested twice a second.

- ``top``: many topics, each with a producer, a subscription and a message. Runs alternately without and with a client
  that requests the first 50 rows of the view twice a second. The figures are the broker's CPU use of both, in percent
  of a core, and the maximum latency of a response. ``query`` is the request.

Reads its job from stdin and prints figures, like raw_driver.py.
"""

import http.client
import json
import select
import sys
import threading
import time
from http import HTTPStatus
from statistics import median
from typing import Any, Final
from urllib.parse import urlsplit

from benchmarks.drivers.raw_driver import DriverError, Job, Link, busy, prepare, publish
from benchmarks.drivers.raw_scrape import TIMEOUT_SECONDS, opened
from pulsarbox.broker.stats.sampler import WATCHED_SECONDS

ROUNDS: Final = 2
TURN_SECONDS: Final = 28.0
"""More than two passes over all topics: a shorter turn might contain one or none."""
POLL_SECONDS: Final = 0.5
IDLE_SECONDS: Final = 5.0
KEPT: Final = {
    "inactiveTopicDeleteMode": "delete_when_no_subscriptions",
    "maxInactiveDurationSeconds": 86_400,
    "deleteWhileInactive": False,
}


class Web:
    """Client of the broker's Admin API."""

    def __init__(self, job: Job) -> None:
        self._asker = http.client.HTTPConnection(urlsplit(job["web_url"]).netloc, timeout=TIMEOUT_SECONDS)
        self._asked = 0.0

    def ask(self, method: str, path: str, body: Any = None) -> bytes:
        """Return the answer. Raises DriverError for a rejection."""
        data = None if body is None else json.dumps(body)
        if time.monotonic() - self._asked > IDLE_SECONDS:
            self._asker.close()  # the broker closes idle connections; http.client reopens
        self._asked = time.monotonic()
        self._asker.request(method, path, data, {"Content-Type": "application/json"})
        answer = self._asker.getresponse()
        found = answer.read()
        if answer.status >= HTTPStatus.BAD_REQUEST:
            raise DriverError(f"{method} {path}: {found[:300]!r}")
        return found


def _poll(web: Web, query: str, seconds: float) -> list[float]:
    """Request the view twice a second; return the latency of each answer."""
    took = []
    at = time.monotonic()
    end = at + seconds
    while at < end:
        begin = time.monotonic()
        web.ask("GET", f"/pulsarbox/v1/top/{query}")
        took.append(time.monotonic() - begin)
        at += POLL_SECONDS
        time.sleep(max(0.0, at - time.monotonic()))
    return took


def _wait_for_all(web: Web, job: Job) -> None:
    """Wait for the pass that includes the new topics."""
    while json.loads(web.ask("GET", f"/pulsarbox/v1/top/{job['query']}"))["total"] < job["topics"]:
        time.sleep(POLL_SECONDS)


def _answer_pings(link: Link) -> None:
    """Answer PINGs while the link is otherwise unused: the broker closes connections that do not."""
    while True:
        select.select([link.socket], [], [])
        link.read()


def top(job: Job) -> dict[str, float]:
    web, namespace = Web(job), f"public/top-{time.time_ns()}"
    web.ask("PUT", f"/admin/v2/namespaces/{namespace}")
    # The deletion of inactive topics would fall into the middle of this measurement.
    web.ask("POST", f"/admin/v2/namespaces/{namespace}/inactiveTopicPolicies", KEPT)
    web.ask("POST", "/admin/v2/brokers/configuration/forceDeleteNamespaceAllowed/true")
    many = opened(job | {"topic": f"persistent://{namespace}/t"})
    prepare([many], job["topics"], range(job["topics"]), b"x" * 100)
    publish([many], job["pending"], job["topics"])
    threading.Thread(target=_answer_pings, args=(many,), daemon=True).start()
    broker = job["pid"]
    quiet, watched, took = [], [], []
    _wait_for_all(web, job)
    for _ in range(ROUNDS):
        time.sleep(WATCHED_SECONDS + 1.0)
        before = busy(broker)
        time.sleep(TURN_SECONDS)
        quiet.append((busy(broker) - before) / TURN_SECONDS * 100)
        before = busy(broker)
        took += _poll(web, job["query"], TURN_SECONDS)
        watched.append((busy(broker) - before) / TURN_SECONDS * 100)
    web.ask("DELETE", f"/admin/v2/namespaces/{namespace}?force=true")
    return {
        "percent": median(there - without for there, without in zip(watched, quiet, strict=True)),
        "watched_percent": median(watched),
        "quiet_percent": median(quiet),
        "p50_ms": median(took) * 1000,
        "max_ms": max(took) * 1000,
    }


if __name__ == "__main__":
    given = json.load(sys.stdin)
    print(json.dumps({"top": top}[given["row"]](given)))
