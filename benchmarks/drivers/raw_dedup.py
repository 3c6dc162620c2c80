"""Benchmark of deduplication: publishing alternately to a topic with it and one without.

Uses the bare protocol, as raw_driver does. A row's job sets the messages per batch (0: no batches). It also sets
whether the client sends the highest sequence ID of a batch: Java clients do; those in C++, Python and Go do not.

It reads its job from stdin and prints figures, like driver/main.go. The Admin API's URL is the job's ``web_url``.
"""

import json
import random
import sys
import time
from statistics import median
from typing import Final
from urllib.request import Request, urlopen

from benchmarks.drivers.raw_driver import DriverError, Job, Link, busy, message, publish
from pulsarbox.protocol.batch import encode_batch
from pulsarbox.protocol.commands import encode_payload, encode_payload_frame
from pulsarbox.protocol.PulsarApi_pb2 import BaseCommand, MessageMetadata, SingleMessageMetadata

TURNS: Final = 8
TIMEOUT_SECONDS: Final = 60.0
WITHOUT, WITH = 0, 1


def deduplicate(job: Job, topic: str) -> None:
    """Enable deduplication of one topic. Raises DriverError unless its status confirms it."""
    path = f"{job['web_url']}/admin/v2/{topic.replace('://', '/')}"
    headers = {"Content-Type": "application/json"}
    request = Request(f"{path}/deduplicationEnabled", b"true", headers, method="POST")
    urlopen(request, timeout=TIMEOUT_SECONDS).close()
    deadline, status = time.monotonic() + TIMEOUT_SECONDS, ""
    while status != "Enabled":
        if time.monotonic() > deadline:
            raise DriverError(f"deduplication of {topic} is {status}")
        with urlopen(f"{path}/stats", timeout=TIMEOUT_SECONDS) as answer:
            status = json.load(answer)["deduplicationStatus"]


def batch(link: Link, producer: int, numbers: range, body: bytes, *, told: bool) -> bytes:
    """Return the frame of a SEND with one message per number; ``told``: with the highest sequence ID."""
    now = time.time_ns() // 1_000_000
    first, last = numbers[0], numbers[-1]
    metadata = MessageMetadata(producer_name=link.names[producer], sequence_id=first, publish_time=now)
    metadata.num_messages_in_batch = len(numbers)
    send = BaseCommand(type=BaseCommand.SEND)
    send.send.producer_id, send.send.sequence_id, send.send.num_messages = producer, first, len(numbers)
    if told:
        metadata.highest_sequence_id = send.send.highest_sequence_id = last
    singles = encode_batch((SingleMessageMetadata(payload_size=0, sequence_id=number), body) for number in numbers)
    return encode_payload_frame(send, encode_payload(metadata.SerializeToString(), singles))


def frames(job: Job, link: Link, producer: int, numbers: range, body: bytes) -> list[bytes]:
    size = job.get("batch", 0)
    if not size:
        return [message(link, producer, number, body) for number in numbers]
    starts = range(numbers.start, numbers.stop, size)
    return [batch(link, producer, range(at, at + size), body, told=job["told"]) for at in starts]


def run(job: Job) -> dict[str, float]:
    link = Link(job)
    topics = {WITHOUT: f"{job['topic']}-without", WITH: f"{job['topic']}-with"}
    link.open(topics)
    deduplicate(job, topics[WITH])
    body = random.Random(1).randbytes(job["size"])
    broker = job.get("pid")
    rates: dict[int, list[float]] = {WITHOUT: [], WITH: []}
    used: dict[int, list[float]] = {WITHOUT: [], WITH: []}
    """Microseconds of the broker's CPU time per message."""
    each = max(1, job.get("batch", 0))
    count = job["messages"] // (2 * TURNS) // each * each
    for turn in range(-2, 2 * TURNS):  # the first two warm up
        producer = (WITHOUT, WITH, WITH, WITHOUT)[turn % 4]
        at = (turn + 2) * count
        link.prepare(frames(job, link, producer, range(at, at + count), body))
        before, begin = busy(broker) if broker else 0.0, time.perf_counter()
        publish([link], job["pending"], count // each)
        if turn >= 0:
            rates[producer].append(count / (time.perf_counter() - begin))
            used[producer].append(((busy(broker) if broker else 0.0) - before) / count * 1e6)
    ratio = median(rates[WITH]) / median(rates[WITHOUT])
    figures = {"rate": median(rates[WITH]), "without": median(rates[WITHOUT]), "ratio": ratio}
    if broker:
        figures |= {"broker_us": median(used[WITH]), "without_us": median(used[WITHOUT])}
    return figures


if __name__ == "__main__":
    print(json.dumps(run(json.load(sys.stdin))))
