"""Driver that publishes to many topics over the bare protocol, at negligible cost, so that the broker is measured.

The official clients do much work per producer; with a thousand producers, they dominate the load of a small machine.
Here all messages are encoded in advance, in sending order, to the topics in turn. One system call sends all permitted
messages. Receipts are counted by their first bytes, regardless of the producer, and allow as many further messages. So
the number in flight is constant over all producers, and the driver's cost per message does not depend on the number of
topics.

Reads its job from stdin and prints figures, like driver/main.go.
"""

import json
import random
import selectors
import socket
import sys
import time
from collections.abc import Iterator
from itertools import accumulate
from typing import Any, Final
from urllib.parse import urlsplit

import psutil

from pulsarbox.protocol.commands import encode_frame, encode_payload, encode_payload_frame, parse_command
from pulsarbox.protocol.frames import FrameDecoder
from pulsarbox.protocol.PulsarApi_pb2 import BaseCommand, CommandLookupTopicResponse, MessageMetadata

MAX_FRAME: Final = 6 << 20
OPENED_AT_ONCE: Final = 64
READ_BYTES: Final = 256 << 10
SILENCE_SECONDS: Final = 30.0
# BaseCommand.type and the tag of the command's field: no other field of these commands can contain these bytes.
RECEIPT: Final = b"\x08\x07\x3a"
SEND_ERROR: Final = b"\x08\x08\x42"
CLOSE_PRODUCER: Final = b"\x08\x0f\x7a"
PING: Final = b"\x08\x12\x92\x01"

Job = dict[str, Any]


class DriverError(Exception):
    """Unexpected behaviour of the broker."""


class Link:
    """One connection with its share of the messages, encoded, and the counts of sent and receipted ones."""

    def __init__(self, job: Job) -> None:
        url = urlsplit(job["url"])
        self.socket = socket.create_connection((url.hostname, url.port or 6650), timeout=SILENCE_SECONDS)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.decoder = FrameDecoder(MAX_FRAME)
        self._frames: list[BaseCommand] = []
        self._request = 0
        self.names: dict[int, str] = {}
        """Names of the open producers, by ID."""
        self.sent = self.receipted = 0
        self._stream = memoryview(b"")
        self._ends: list[int] = [0]
        """End of each message in the stream."""
        self._at = 0
        self._read_buffer = bytearray(READ_BYTES)
        self._rest = b""
        connect = BaseCommand(type=BaseCommand.CONNECT)
        connect.connect.client_version, connect.connect.protocol_version = "pulsarbox-bench", 19
        self.ask([connect])

    # Setup requests

    def ask(self, commands: list[BaseCommand]) -> list[BaseCommand]:
        """Send requests and return as many answers."""
        self.socket.sendall(b"".join(map(encode_frame, commands)))
        return [self._answer() for _ in commands]

    def _answer(self) -> BaseCommand:
        while True:
            while not self._frames:
                data = self.socket.recv(READ_BYTES)
                if not data:
                    raise DriverError("the broker closed the connection")
                self._frames = [parse_command(command) for command, _ in self.decoder.feed(data)]
            answer = self._frames.pop(0)
            if answer.type == BaseCommand.PING:
                self.socket.sendall(pong())
            elif answer.type == BaseCommand.ERROR:
                raise DriverError(answer.error.message)
            elif answer.type != BaseCommand.PRODUCER_SUCCESS or answer.producer_success.producer_ready:
                return answer

    def open(self, topics: dict[int, str]) -> None:
        """Open a producer per topic, under the given IDs, after the lookup that brokers require."""
        lookups, producers = [], []
        for number, topic in topics.items():
            self._request += 2
            lookup = BaseCommand(type=BaseCommand.LOOKUP)
            lookup.lookupTopic.topic, lookup.lookupTopic.request_id = topic, self._request
            lookup.lookupTopic.authoritative = False
            lookups.append(lookup)
            producer = BaseCommand(type=BaseCommand.PRODUCER)
            producer.producer.topic, producer.producer.producer_id = topic, number
            producer.producer.request_id = self._request + 1
            producers.append(producer)
        for answer in self.ask(lookups):
            if answer.lookupTopicResponse.response == CommandLookupTopicResponse.Failed:
                raise DriverError(answer.lookupTopicResponse.message)
        first = producers[0].producer.request_id
        for answer in self.ask(producers):
            success = answer.producer_success
            self.names[producers[(success.request_id - first) // 2].producer.producer_id] = success.producer_name

    # Publishing

    def prepare(self, frames: list[bytes]) -> None:
        """Set the messages to send; all previous ones have their receipts."""
        self._stream = memoryview(b"".join(frames))
        self._ends = [0, *accumulate(map(len, frames))]
        self.sent = self.receipted = self._at = 0
        self.socket.setblocking(False)

    def allow(self, count: int) -> None:
        """Permit ``count`` more messages to be sent."""
        self.sent = min(self.sent + count, len(self._ends) - 1)

    @property
    def wants_to_write(self) -> bool:
        return self._at < self._ends[self.sent]

    def write(self) -> None:
        """Send the permitted messages, as far as the socket accepts them."""
        try:
            self._at += self.socket.send(self._stream[self._at : self._ends[self.sent]])
        except BlockingIOError:
            pass

    def read(self) -> int:
        """Read available data, and count its receipts."""
        size = self.socket.recv_into(self._read_buffer)
        if not size:
            raise DriverError("the broker closed the connection")
        data = self._rest + self._read_buffer[:size]
        if SEND_ERROR in data or CLOSE_PRODUCER in data:
            raise DriverError("the broker refused a message")
        if PING in data and self._at == self._ends[self.sent]:  # otherwise the PONG would split a message
            self.socket.send(pong())
        receipts, self._rest = count_receipts(data)
        self.receipted += receipts
        return receipts


def count_receipts(data: bytes) -> tuple[int, bytes]:
    """Return the number of receipts that begin in the data, and the rest that may begin another."""
    rest = b"" if data.endswith(RECEIPT) else data[1 - len(RECEIPT) :]
    return data.count(RECEIPT), rest


def pong() -> bytes:
    command = BaseCommand(type=BaseCommand.PONG)
    command.pong.SetInParent()
    return encode_frame(command)


def message(link: Link, producer: int, sequence: int, body: bytes, key: str | None = None) -> bytes:
    """Return the frame of a SEND."""
    now = time.time_ns() // 1_000_000
    metadata = MessageMetadata(producer_name=link.names[producer], sequence_id=sequence, publish_time=now)
    if key is not None:
        metadata.partition_key = key
    send = BaseCommand(type=BaseCommand.SEND)
    send.send.producer_id, send.send.sequence_id = producer, sequence
    return encode_payload_frame(send, encode_payload(metadata.SerializeToString(), body))


def prepare(links: list[Link], topics: int, messages: range, body: bytes) -> None:
    """Encode messages to the topics in turn; each topic has its producer on one of the links."""
    frames: list[list[bytes]] = [[] for _ in links]
    for number in messages:
        producer = number % topics
        at = producer % len(links)
        frames[at].append(message(links[at], producer, number // topics, body))
    for link, part in zip(links, frames, strict=True):
        link.prepare(part)


def publish(links: list[Link], pending: int, count: int) -> None:
    """Send all prepared messages with ``pending`` in flight, until each has its receipt."""
    with selectors.DefaultSelector() as selector:
        for link in links:
            link.allow(pending // len(links))
            selector.register(link.socket, selectors.EVENT_READ | selectors.EVENT_WRITE, link)
        done = 0
        while done < count:
            ready = selector.select(SILENCE_SECONDS)
            if not ready:
                raise DriverError(f"silence after {done} of {count} receipts")
            for key, events in ready:
                link = key.data
                if events & selectors.EVENT_READ:
                    receipts = link.read()
                    done += receipts
                    link.allow(receipts)
                if link.wants_to_write:
                    link.write()
                interest = selectors.EVENT_READ | (selectors.EVENT_WRITE if link.wants_to_write else 0)
                if interest != key.events:
                    selector.modify(link.socket, interest, link)


def busy(pid: int) -> float:
    """Return the CPU seconds of a process."""
    return sum(psutil.Process(pid).cpu_times()[:2])


def chunks(items: list[int], size: int) -> Iterator[list[int]]:
    return (items[at : at + size] for at in range(0, len(items), size))


def run(job: Job) -> dict[str, float]:
    """Open the producers, warm them up with at least one message each, and measure."""
    topics, count, pending = job["topics"], job["messages"], job["pending"]
    links = [Link(job) for _ in range(min(topics, job.get("connections", 1)))]
    for at, link in enumerate(links):
        for some in chunks(list(range(at, topics, len(links))), OPENED_AT_ONCE):
            link.open({number: f"{job['topic']}-{number}" for number in some})
    body = random.Random(1).randbytes(job["size"])  # incompressible, and the same in each run
    warm = -(-max(topics, pending) // topics) * topics
    prepare(links, topics, range(warm), body)
    publish(links, pending, warm)
    prepare(links, topics, range(warm, warm + count), body)
    broker = job.get("pid")
    own, its = time.process_time(), busy(broker) if broker else 0.0
    begin = time.perf_counter()
    publish(links, pending, count)
    figures = {"rate": count / (time.perf_counter() - begin), "driver_us": (time.process_time() - own) / count * 1e6}
    if broker:
        figures["broker_us"] = (busy(broker) - its) / count * 1e6
    return figures


if __name__ == "__main__":
    print(json.dumps(run(json.load(sys.stdin))))
