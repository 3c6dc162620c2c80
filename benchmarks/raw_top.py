"""Measures what a dashboard costs the broker: many subscriptions, and somebody who asks for a live view twice a second.

- ``top``: so many topics, each with a producer, a subscription and a message. By turns nobody looks, and somebody asks
  for the first 50 rows of the view twice a second; the broker's processor time of both, in percent of a core, and the
  longest that an answer took. ``query`` is what is asked.

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
from typing import Final
from urllib.parse import urlsplit

from benchmarks.raw_driver import DriverError, Job, Link, busy, prepare, publish
from benchmarks.raw_scrape import TIMEOUT_SECONDS, opened
from pulsarbox.broker.samples import WATCHED_SECONDS

ROUNDS: Final = 3
TURN_SECONDS: Final = 12.0
POLL_SECONDS: Final = 0.5


def _poll(job: Job, seconds: float) -> list[float]:
    """Ask twice a second; how long each answer took."""
    asker = http.client.HTTPConnection(urlsplit(job["web_url"]).netloc, timeout=TIMEOUT_SECONDS)
    took = []
    at = time.monotonic()
    end = at + seconds
    while at < end:
        begin = time.monotonic()
        asker.request("GET", f"/pulsarbox/v1/top/{job['query']}")
        answer = asker.getresponse()
        body = answer.read()
        took.append(time.monotonic() - begin)
        if answer.status != HTTPStatus.OK:
            raise DriverError(f"the view cannot be had: {body[:200]!r}")
        if json.loads(body)["total"] != job["topics"]:
            raise DriverError(f"the view does not show all: {body[-300:]!r}")
        at += POLL_SECONDS
        time.sleep(max(0.0, at - time.monotonic()))
    asker.close()
    return took


def _answer_pings(link: Link) -> None:
    """While nobody else reads: the broker lets go who does not answer."""
    while True:
        select.select([link.socket], [], [])
        link.read()


def top(job: Job) -> dict[str, float]:
    many = opened(job)
    prepare([many], job["topics"], range(job["topics"]), b"x" * 100)
    publish([many], job["pending"], job["topics"])
    threading.Thread(target=_answer_pings, args=(many,), daemon=True).start()
    broker = job["pid"]
    quiet, watched, took = [], [], []
    _poll(job, 3.0)  # the first answers look at everything
    for _ in range(ROUNDS):
        time.sleep(WATCHED_SECONDS + 1.0)
        before = busy(broker)
        time.sleep(TURN_SECONDS)
        quiet.append((busy(broker) - before) / TURN_SECONDS * 100)
        before = busy(broker)
        took += _poll(job, TURN_SECONDS)
        watched.append((busy(broker) - before) / TURN_SECONDS * 100)
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
