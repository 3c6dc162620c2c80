"""Benchmark of subscriptions over the bare protocol: a backlog with holes, and consumers that join and leave.

Like raw_driver.py it costs a fraction of an official client, reads its job from stdin and prints figures.

- ``holes``: an Exclusive subscription receives a backlog and acknowledges every second entry. This leaves half as many
  holes as entries after the mark-delete position. The subscription continues with the entries after them. Then a
  consumer receives the entries of the holes, and one of another subscription as many entries without holes. ``share``
  is the rate among the holes relative to that without, ``behind_share`` the rate after them.
- ``join-leave``: consumers join a Key_Shared subscription, one after another, and leave it again, while messages are
  published at a steady rate and acknowledged on arrival; one consumer stays. ``max_ms`` is the maximum latency of a
  receipt on another topic meanwhile, ``quiet_ms`` that in the seconds before. ``wrong`` counts messages received out of
  order of their key, ``lost`` those not received.
"""

import json
import selectors
import sys
import time
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from benchmarks.drivers.raw_driver import (
    READ_BYTES,
    SILENCE_SECONDS,
    DriverError,
    Job,
    Link,
    busy,
    message,
    pong,
    prepare,
    publish,
)
from pulsarbox.protocol.commands import encode_frame
from pulsarbox.protocol.PulsarApi_pb2 import BaseCommand, CommandAck, CommandSubscribe, MessageIdData

QUEUE: Final = 1000
"""Initial permits of a consumer; half of them are granted again whenever used up."""
SLICE: Final = 50_000
"""Messages encoded at a time."""
CONNECTIONS: Final = 10
"""Number of connections of the consumers that join and leave."""
WATCHES_PER_SECOND: Final = 100
QUIET_SECONDS: Final = 2.0
NUMBER_BYTES: Final = 8
"""Length of the message's number, at its end, which determines its order within its key."""

OnMessage = Callable[[int, MessageIdData, bytes], bool]
"""Called with the consumer, ID and payload of a message; returns whether to acknowledge it."""


class Subscriber(Link):
    """Connection with consumers, whose messages are passed to ``on_message``."""

    def __init__(self, job: Job, on_message: OnMessage) -> None:
        super().__init__(job)
        self._on_message = on_message
        self._queue = job.get("queue", QUEUE)
        self._used: dict[int, int] = {}
        """Permits that each consumer has used since its last FLOW."""
        self.waiting = 0
        """Number of unanswered requests."""

    def subscribe(self, consumer: int, topic: str, name: str, kind: CommandSubscribe.SubType) -> None:
        """Open a consumer at the start of the topic, and request messages once it is open."""
        command = BaseCommand(type=BaseCommand.SUBSCRIBE)
        part = command.subscribe
        part.topic, part.subscription, part.subType, part.consumer_id = topic, name, kind, consumer
        part.request_id, part.consumer_name = 2 * consumer + 1, f"c{consumer}"
        part.initialPosition = CommandSubscribe.Earliest
        self._used[consumer] = 0
        self.waiting += 1
        self._tell([command])

    def unsubscribe(self, consumer: int) -> None:
        """Close a consumer. Its later messages are ignored, as the broker redelivers them to others."""
        command = BaseCommand(type=BaseCommand.CLOSE_CONSUMER)
        command.close_consumer.consumer_id, command.close_consumer.request_id = consumer, 2 * consumer
        del self._used[consumer]
        self.waiting += 1
        self._tell([command])

    @staticmethod
    def _flow(consumer: int, permits: int) -> BaseCommand:
        command = BaseCommand(type=BaseCommand.FLOW)
        command.flow.consumer_id, command.flow.messagePermits = consumer, permits
        return command

    def _tell(self, commands: Iterable[BaseCommand]) -> None:
        self.socket.sendall(b"".join(map(encode_frame, commands)))

    def pump(self) -> None:
        """Process available data, and acknowledge messages."""
        data = self.socket.recv(READ_BYTES)
        if not data:
            raise DriverError("the broker closed the connection")
        acks: dict[int, BaseCommand] = {}
        told: list[BaseCommand] = []
        for frame, payload in self.decoder.feed(data):
            command = BaseCommand.FromString(frame)
            if command.type == BaseCommand.MESSAGE:
                consumer, message_id = command.message.consumer_id, command.message.message_id
                if consumer not in self._used:
                    continue
                if self._on_message(consumer, message_id, payload):
                    acks.setdefault(consumer, BaseCommand(type=BaseCommand.ACK)).ack.message_id.append(message_id)
                self._used[consumer] += 1
                if self._used[consumer] * 2 >= self._queue:
                    told.append(self._flow(consumer, self._used[consumer]))
                    self._used[consumer] = 0
            else:
                self._answered(command, told)
        for consumer, ack in acks.items():
            ack.ack.consumer_id, ack.ack.ack_type = consumer, CommandAck.Individual
        if acks or told:
            self._tell([*acks.values(), *told])

    def pump_until_answered(self) -> None:
        """Process data until all requests are answered."""
        while self.waiting:
            self.pump()

    def _answered(self, command: BaseCommand, told: list[BaseCommand]) -> None:
        """Handle a command other than MESSAGE."""
        if command.type == BaseCommand.SUCCESS:
            self.waiting -= 1
            consumer, opened = divmod(command.success.request_id, 2)
            if opened and consumer in self._used:  # the broker ignores a FLOW before it has confirmed the consumer
                told.append(self._flow(consumer, self._queue))
        elif command.type == BaseCommand.PING:
            self.socket.sendall(pong())
        elif command.type == BaseCommand.ERROR:
            raise DriverError(command.error.message)


# Holes


def publish_all(job: Job, count: int, body: bytes) -> None:
    """Publish a backlog to the job's topic."""
    link = Link(job)
    link.open({0: job["topic"]})
    for first in range(0, count, SLICE):
        numbers = range(first, min(first + SLICE, count))
        prepare([link], 1, numbers, body)
        publish([link], job["pending"], len(numbers))
    link.socket.close()


def every(number: int) -> bool:
    """Acknowledge every message."""
    return True


def every_second(number: int) -> bool:
    """Acknowledge every second message: as many holes as acknowledgements."""
    return number % 2 == 1


class Stage(NamedTuple):
    """Number of messages, and which of them to acknowledge."""

    messages: int
    acked: Callable[[int], bool] = every


def catch_up(job: Job, name: str, *stages: Stage) -> list[float]:
    """Connect a consumer, receive all stages in turn, and disconnect; return the messages per second of each stage."""
    seen = 0
    stage = Stage(0)

    def receive(consumer: int, message_id: MessageIdData, payload: bytes) -> bool:
        nonlocal seen
        seen += 1
        return stage.acked(seen - 1)

    link = Subscriber(job, receive)
    link.subscribe(1, job["topic"], name, CommandSubscribe.Exclusive)
    rates = []
    end = 0
    for stage in stages:
        first, end = seen, end + stage.messages
        begin = time.perf_counter()
        while seen < end:
            link.pump()
        rates.append((seen - first) / (time.perf_counter() - begin))
    while link.waiting:
        link.pump()
    link.unsubscribe(1)
    link.pump_until_answered()
    link.socket.close()
    return rates


def holes(job: Job) -> dict[str, float]:
    """Run ``holes``: see the module."""
    count = job["messages"] // 4 * 4
    for name in ("holes", "plain"):  # without a subscription, the topic would not retain messages
        catch_up(job, name)
    publish_all(job, count + count // 4, bytes(job["size"]))
    _, behind = catch_up(job, "holes", Stage(count, every_second), Stage(count // 4))
    broker = job.get("pid")
    before = busy(broker) if broker else 0.0
    (rate,) = catch_up(job, "holes", Stage(count // 2))
    between = busy(broker) if broker else 0.0
    (plain,) = catch_up(job, "plain", Stage(count // 2))
    figures = {"rate": rate, "plain_rate": plain, "share": rate / plain, "behind_share": behind / plain}
    if broker:
        figures["broker_us"] = (between - before) / (count // 2) * 1e6
        figures["plain_us"] = (busy(broker) - between) / (count // 2) * 1e6
    return figures


# Join and leave


class Watch:
    """Measurement of receipts on another topic, one message at a time."""

    def __init__(self, job: Job) -> None:
        self.link = Link(job)
        self.link.open({0: job["topic"] + "-watched"})
        self._sent = 0
        self._begin = 0.0
        self._due = time.perf_counter()
        self.waits: list[float] = []

    def turn(self, now: float) -> None:
        """Send the next message if it is due and the previous one has its receipt."""
        if not self._begin and now >= self._due:
            self.link.prepare([message(self.link, 0, self._sent, b"watch")])
            self.link.allow(1)
            self._sent += 1
            self._begin, self._due = now, now + 1 / WATCHES_PER_SECOND
            self.link.write()

    def pump(self) -> None:
        """Process the receipt."""
        if self.link.read():
            self.waits.append((time.perf_counter() - self._begin) * 1000)
            self._begin = 0.0


class JoinLeave:
    """Publisher and consumers of the messages, with a check of the order by key."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._keys = job["keys"]
        self._next = [0] * self._keys
        self.received = self.published = self.wrong = 0
        self._publisher = Link(job)
        self._publisher.open({0: job["topic"]})
        self._publisher.socket.setblocking(False)
        self._watch = Watch(job)
        self._links = [Subscriber({**job, "queue": 100}, self._receive) for _ in range(CONNECTIONS + 1)]
        self._selector = selectors.DefaultSelector()
        for link in self._links:
            self._selector.register(link.socket, selectors.EVENT_READ, link.pump)
        self._selector.register(self._watch.link.socket, selectors.EVENT_READ, self._watch.pump)
        self._selector.register(self._publisher.socket, selectors.EVENT_READ, self._publisher.read)

    def _receive(self, consumer: int, message_id: MessageIdData, payload: bytes) -> bool:
        number, key = divmod(int.from_bytes(payload[-NUMBER_BYTES:]), self._keys)
        if number != self._next[key]:
            self.wrong += 1
        self._next[key] = number + 1
        self.received += 1
        return True

    def _publish(self, due: int) -> None:
        if due <= self.published or self._publisher.wants_to_write:
            self._publisher.write()
            return
        frames = []
        for number in range(self.published, due):
            body = bytes(self._job["size"] - NUMBER_BYTES) + number.to_bytes(NUMBER_BYTES)
            frames.append(message(self._publisher, 0, number, body, f"key-{number % self._keys}"))
        self.published = due
        self._publisher.prepare(frames)
        self._publisher.allow(len(frames))
        self._publisher.write()

    def _turn(self, due: int) -> None:
        self._publish(due)
        self._watch.turn(time.perf_counter())
        for key, _ in self._selector.select(0.002):
            key.data()

    def run(self) -> dict[str, float]:
        """Join and leave on schedule; a slow broker extends the run."""
        job, name = self._job, "join-leave"
        consumers, seconds, rate = job["consumers"], job["seconds"], job["rate"]
        self._links[0].subscribe(0, job["topic"], name, CommandSubscribe.Key_Shared)
        begin = time.perf_counter()
        while (now := time.perf_counter()) < begin + QUIET_SECONDS or self._links[0].waiting:
            self._turn(int((now - begin) * rate))
        quiet, self._watch.waits = self._watch.waits, []
        start, steps = time.perf_counter(), 0
        while steps < 2 * consumers or any(link.waiting for link in self._links) or not self._watch.waits:
            now = time.perf_counter()
            while steps < min(2 * consumers, (now - start) / seconds * 2 * consumers):
                consumer = steps % consumers + 1
                link = self._links[1 + consumer % CONNECTIONS]
                if steps < consumers:
                    link.subscribe(consumer, job["topic"], name, CommandSubscribe.Key_Shared)
                else:
                    link.unsubscribe(consumer)
                steps += 1
            self._turn(int((now - begin) * rate))
            if now > start + job["limit_seconds"]:
                raise DriverError(f"{sum(link.waiting for link in self._links)} requests are not answered")
        took, waits = time.perf_counter() - start, sorted(self._watch.waits)
        end = time.perf_counter() + SILENCE_SECONDS
        while self.received < self.published and time.perf_counter() < end:
            self._turn(self.published)
        return {
            "seconds": took,
            "max_ms": waits[-1],
            "p99_ms": waits[int(0.99 * (len(waits) - 1))],
            "quiet_ms": max(quiet),
            "wrong": self.wrong,
            "lost": self.published - self.received,
        }


def join_leave(job: Job) -> dict[str, float]:
    """Run ``join-leave``: see the module."""
    job["consumers"] = min(job["consumers"], job["messages"])  # --scale reduces ``messages``
    job["seconds"] = job["seconds"] * job["consumers"] / 1000
    broker = job.get("pid")
    before = busy(broker) if broker else 0.0
    figures = JoinLeave(job).run()
    if broker:
        figures["broker_s"] = busy(broker) - before
    return figures


ROWS: Final = {"holes": holes, "join-leave": join_leave}

if __name__ == "__main__":
    the_job = json.load(sys.stdin)
    print(json.dumps(ROWS[the_job["row"]](the_job)))
