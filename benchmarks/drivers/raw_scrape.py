"""Benchmark of monitoring: a scrape of `/metrics` with many topics, and publishing beside a client that polls.

- ``scrape``: many topics, each with a producer, a subscription and a message. `/metrics` is fetched compressed, as
  Prometheus does, while a second connection has one message in flight. The maximum latency of its receipts is the cost
  of a scrape to clients, shown beside that without one.
- ``polled``: publishing at full speed, alternately alone and beside a process that requests `/metrics` and the
  statistics of all topics once a second. With ``poll`` all, it requests only those statistics; with ``each``, those of
  one topic after the other, a hundred a second.

It reads its job from stdin and prints figures, like driver/main.go. The Admin API's URL is the job's ``web_url``.
"""

import http.client
import itertools
import json
import multiprocessing
import random
import sys
import time
from ctypes import c_longlong
from http import HTTPStatus
from statistics import median
from typing import Final
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from benchmarks.drivers.raw_driver import (
    OPENED_AT_ONCE,
    DriverError,
    Job,
    Link,
    busy,
    chunks,
    message,
    prepare,
    publish,
)
from pulsarbox.protocol.PulsarApi_pb2 import BaseCommand, CommandSubscribe

SCRAPES: Final = 3
TURNS: Final = 8
POLL_SECONDS: Final = 1.0
POLLS_OF_EACH: Final = 100
"""Single topics requested per POLL_SECONDS."""
TIMEOUT_SECONDS: Final = 60.0
POLLED: Final = ("/metrics", "/admin/v2/broker-stats/topics", "/admin/v2/broker-stats/metrics")


def fetch(url: str) -> int:
    """Return the compressed size of a page in bytes."""
    with urlopen(Request(url, headers={"Accept-Encoding": "gzip"}), timeout=TIMEOUT_SECONDS) as response:
        return len(response.read())


def subscribe(link: Link, topics: dict[int, str]) -> None:
    commands = []
    for number, topic in topics.items():
        command = BaseCommand(type=BaseCommand.SUBSCRIBE)
        part = command.subscribe
        part.topic, part.subscription, part.subType = topic, "watched", CommandSubscribe.Shared
        part.consumer_id, part.request_id = number, 1_000_000 + number
        commands.append(command)
    link.ask(commands)


def opened(job: Job) -> Link:
    """Open all topics, each with a producer and a subscription, on one connection."""
    link = Link(job)
    for some in chunks(list(range(job["topics"])), OPENED_AT_ONCE):
        names = {number: f"{job['topic']}-{number}" for number in some}
        link.open(names)
        subscribe(link, names)
    return link


def _scrapes(url: str, told: "multiprocessing.Queue[tuple[float, float, int]]") -> None:
    for _ in range(SCRAPES):
        time.sleep(1.0)
        begin = time.monotonic()
        size = fetch(url)
        told.put((begin, time.monotonic(), size))


def scrape(job: Job) -> dict[str, float]:
    many = opened(job)
    prepare([many], job["topics"], range(job["topics"]), b"x" * 100)
    publish([many], job["pending"], job["topics"])
    one = Link(job)
    one.open({0: f"{job['topic']}-0"})
    one.socket.setblocking(True)
    told: multiprocessing.Queue[tuple[float, float, int]] = multiprocessing.Queue()
    scraper = multiprocessing.Process(target=_scrapes, args=(f"{job['web_url']}/metrics", told))
    scraper.start()
    receipts = []
    sequence = 0
    while scraper.is_alive() or told.qsize() < SCRAPES:
        begin = time.monotonic()
        one.socket.sendall(message(one, 0, sequence, b"y" * 100))
        while not one.read():
            pass
        receipts.append((begin, time.monotonic() - begin))
        sequence += 1
        if not scraper.is_alive() and scraper.exitcode:
            raise DriverError("/metrics could not be fetched")
    times = [told.get(timeout=TIMEOUT_SECONDS) for _ in range(SCRAPES)]
    scraper.join()
    during = [took for at, took in receipts if any(begin <= at + took and at <= end for begin, end, _ in times)]
    quiet = [took for at, took in receipts if all(at + took < begin or at > end for begin, end, _ in times)]
    return {
        "seconds": median(end - begin for begin, end, _ in times),
        "mib": times[-1][2] / 2**20,
        "stall_ms": max(during) * 1000,
        "p50_ms": median(during) * 1000,
        "quiet_max_ms": max(quiet) * 1000,
        "quiet_p50_ms": median(quiet) * 1000,
    }


def _poll(web_url: str, paths: list[str], seconds: float, count: c_longlong) -> None:
    """Request the paths in turn, one per interval."""
    asker = http.client.HTTPConnection(urlsplit(web_url).netloc, timeout=TIMEOUT_SECONDS)
    for path in itertools.cycle(paths):
        begin = time.monotonic()
        asker.request("GET", path, headers={"Accept-Encoding": "gzip"})
        answer = asker.getresponse()
        answer.read()
        if answer.status != HTTPStatus.OK:
            raise DriverError(f"{path} cannot be polled: {answer.status}")
        count.value += 1  # the only writer; a terminated process could leave a lock held
        time.sleep(max(0.0, seconds - (time.monotonic() - begin)))


def _polled(job: Job) -> tuple[list[str], float]:
    """Return the paths to request, and the seconds between requests."""
    if job.get("poll") == "each":
        path = f"/admin/v2/{job['topic'].replace('://', '/')}"
        return [f"{path}-{number}/stats" for number in range(job["topics"])], POLL_SECONDS / POLLS_OF_EACH
    if job.get("poll") == "all":
        return ["/admin/v2/broker-stats/topics"], POLL_SECONDS
    return list(POLLED), POLL_SECONDS / len(POLLED)


def polled(job: Job) -> dict[str, float]:
    link = opened(job)
    body = random.Random(1).randbytes(job["size"])
    broker = job.get("pid")
    rates: dict[bool, list[float]] = {False: [], True: []}
    used: dict[bool, list[float]] = {False: [], True: []}
    """Microseconds of the broker's CPU time per message."""
    count, at = job["messages"] // TURNS, 0
    polls, watched_seconds, started = multiprocessing.RawValue(c_longlong, 0), 0.0, 0.0
    for turn in range(-1, 2 * TURNS):  # the first warms up
        watched = turn % 4 in (1, 2)  # alone, watched, watched, alone
        prepare([link], 1, range(at, at + count), body)
        poller = multiprocessing.Process(target=_poll, args=(job["web_url"], *_polled(job), polls), daemon=True)
        if watched:
            started = time.monotonic()
            poller.start()
            time.sleep(0.2)
        before, begin = busy(broker) if broker else 0.0, time.perf_counter()
        publish([link], job["pending"], count)
        if turn >= 0:
            rates[watched].append(count / (time.perf_counter() - begin))
            used[watched].append(((busy(broker) if broker else 0.0) - before) / count * 1e6)
        if watched:
            if poller.exitcode:
                raise DriverError("the client that polls has given up")
            watched_seconds += time.monotonic() - started
            poller.terminate()
            poller.join()
        at += count
    alone, beside = median(rates[False]), median(rates[True])
    figures = {"rate": beside, "alone": alone, "share": beside / alone, "polls": polls.value / watched_seconds}
    if broker:
        figures |= {"broker_us": median(used[True]), "alone_us": median(used[False])}
    return figures


if __name__ == "__main__":
    given = json.load(sys.stdin)
    print(json.dumps({"scrape": scrape, "polled": polled}[given["row"]](given)))
