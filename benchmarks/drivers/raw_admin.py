"""Benchmark of the Admin API: requests per second, and creation, listing and deletion of thousands of topics.

- ``admin``: the statistics of one topic repeatedly, then topics created and deleted, one request at a time per
  connection. A change is durable when it is answered, so these rates include syncs; `clients` concurrent connections
  share them.
- ``topics``: topics created over `clients` connections, listed with one request, and deleted.

It reads its job from stdin and prints figures, like driver/main.go. The Admin API's URL is the job's ``web_url``.
"""

import http.client
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final
from urllib.parse import urlsplit

from benchmarks.drivers.raw_driver import busy

Job = dict[str, Any]
TIMEOUT_SECONDS: Final = 60.0


class AdminError(Exception):
    """Rejected request; the message names it and the reason."""


class Asker:
    """Client on one persistent connection."""

    def __init__(self, web_url: str) -> None:
        self._link = http.client.HTTPConnection(urlsplit(web_url).netloc, timeout=TIMEOUT_SECONDS)

    def __call__(self, method: str, path: str) -> bytes:
        self._link.request(method, f"/admin/v2/{path}")
        answer = self._link.getresponse()
        body = answer.read()
        if answer.status >= 300:
            raise AdminError(f"{method} {path}: {answer.status} {body[:200]!r}")
        return body

    def close(self) -> None:
        self._link.close()


def timed(askers: list[Asker], requests: list[tuple[str, str]]) -> tuple[float, list[float]]:
    """Run the requests, divided among the connections; return the total seconds, and those of each request."""

    def work(asker: Asker, share: Iterable[tuple[str, str]]) -> list[float]:
        taken = []
        for method, path in share:
            begin = time.perf_counter()
            asker(method, path)
            taken.append(time.perf_counter() - begin)
        return taken

    begin = time.perf_counter()
    with ThreadPoolExecutor(len(askers)) as pool:
        shares = [requests[number :: len(askers)] for number in range(len(askers))]
        taken = [one for share in pool.map(work, askers, shares) for one in share]
    return time.perf_counter() - begin, taken


def names(job: Job, count: int) -> list[str]:
    """Return paths of unused topics."""
    path = job["topic"].replace("://", "/")
    return [f"{path}-{number}" for number in range(count)]


def admin(job: Job) -> dict[str, float]:
    askers = [Asker(job["web_url"]) for _ in range(job["clients"])]
    count = job["messages"]
    topics = names(job, count)
    one = job["topic"].replace("://", "/")
    askers[0]("PUT", one)
    phases: dict[str, list[tuple[str, str]]] = {
        "stats": [("GET", f"{one}/stats")] * count,
        "put": [("PUT", name) for name in topics],
        "delete": [("DELETE", name) for name in topics],
    }
    figures = {}
    for phase, requests in phases.items():
        before = busy(job["pid"]) if "pid" in job else 0.0
        seconds, taken = timed(askers, requests)
        figures[phase] = count / seconds
        figures[f"{phase}_ms"] = statistics.median(taken) * 1000
        if "pid" in job:
            figures[f"{phase}_us"] = (busy(job["pid"]) - before) / count * 1e6
    return figures


def topics(job: Job) -> dict[str, float]:
    askers = [Asker(job["web_url"]) for _ in range(job["clients"])]
    made = names(job, job["topics"])
    namespace = "/".join(made[0].split("/")[:3])
    create, _ = timed(askers, [("PUT", name) for name in made])
    begin = time.perf_counter()
    listed = json.loads(askers[0]("GET", namespace))
    took = time.perf_counter() - begin
    found = sum(name.startswith(job["topic"]) for name in listed)
    if found != len(made):
        raise AdminError(f"{len(made)} topics were made and {found} are listed")
    delete, _ = timed(askers, [("DELETE", name) for name in made])
    count = len(made)
    return {"create": create, "create_rate": count / create, "list": took * 1000, "delete": delete,
            "delete_rate": count / delete}  # fmt: skip


ROWS: Final[dict[str, Callable[[Job], dict[str, float]]]] = {"admin": admin, "topics": topics}

if __name__ == "__main__":
    given = json.load(sys.stdin)
    print(json.dumps(ROWS[given["row"]](given)))
