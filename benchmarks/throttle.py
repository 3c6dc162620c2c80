"""Benchmark of rate limits, in real time: the accuracy of dispatch and of publishing (by receipts) over some periods.

``make bench-throttle``. For each rate and batch size a topic is limited to a number of messages per second, which are
counted over whole periods. First, the rate without a limit is measured; limits above half of it are skipped. A limit is
kept if the count is off by at most 2 %, or by one entry. Table on stdout, and optionally a JSON file.
"""

import argparse
import json
import selectors
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from benchmarks.drivers.raw_driver import Link
from benchmarks.drivers.raw_subscriptions import Subscriber
from pulsarbox import PulsarBox
from pulsarbox.protocol.commands import encode_payload, encode_payload_frame
from pulsarbox.protocol.PulsarApi_pb2 import BaseCommand, CommandSubscribe, MessageIdData, MessageMetadata

RATES: Final = (10, 1000, 100_000)
BATCHES: Final = (1, 100, 1000)
MESSAGE_BYTES: Final = 10
PENDING: Final = 1000
CEILING_ENTRIES: Final = 20_000
ALLOWED: Final = 0.02
PHASES: Final = 50
"""Parts of a second, among which one without arrivals is chosen as the boundary of the count."""


class Arrivals:
    """Arrival times with numbers of messages."""

    def __init__(self) -> None:
        self.at: list[tuple[float, int]] = []

    def add(self, messages: int) -> None:
        """Record messages that arrived now."""
        self.at.append((time.monotonic(), messages))

    @property
    def total(self) -> int:
        """Number of all messages."""
        return sum(count for _, count in self.at)

    def rate(self, began: float) -> float:
        """Return messages per second, up to the last arrival."""
        return self.total / (self.at[-1][0] - began)

    def in_periods(self, began: float, periods: int) -> int:
        """Return the messages of ``periods`` whole periods after the first one."""
        begin = began + 1 + self._quiet_phase(began)
        return sum(count for at, count in self.at if begin <= at < begin + periods)

    def _quiet_phase(self, began: float) -> float:
        busy = {int((at - began) % 1 * PHASES) for at, _ in self.at if at >= began + 1}
        quiet = [phase for phase in range(PHASES) if phase not in busy]
        around = [(sum(1 for i in range(-9, 10) if (phase + i) % PHASES not in busy), -phase) for phase in quiet]
        return (-max(around)[1] + 0.5) / PHASES if around else 0.0


class Line(NamedTuple):
    """Result of one case."""

    what: str
    rate: int
    batch: int
    periods: int
    ceiling: float
    """Messages per second without a limit."""
    came: int

    @property
    def error(self) -> float:
        """Relative error of the count; negative if too low."""
        return self.came / (self.rate * self.periods) - 1

    @property
    def entries_off(self) -> float:
        """Error of the count in entries."""
        return (self.came - self.rate * self.periods) / self.batch

    @property
    def kept(self) -> bool:
        """Whether the count was within the tolerance."""
        wanted = self.rate * self.periods
        return abs(self.came - wanted) <= max(ALLOWED * wanted, self.batch)


def frames(link: Link, entries: range, batch: int) -> list[bytes]:
    """Return SEND frames of entries that look to a broker like ``batch`` messages each."""
    body, made = b"x" * (MESSAGE_BYTES * batch), []
    for number in entries:
        now = time.time_ns() // 1_000_000
        metadata = MessageMetadata(producer_name=link.names[0], sequence_id=number, publish_time=now)
        if batch > 1:
            metadata.num_messages_in_batch = batch
        send = BaseCommand(type=BaseCommand.SEND)
        send.send.producer_id, send.send.sequence_id, send.send.num_messages = 0, number, batch
        made.append(encode_payload_frame(send, encode_payload(metadata.SerializeToString(), body)))
    return made


def publish(link: Link, entries: int, batch: int, until: float) -> Arrivals:
    """Send entries, at most PENDING without a receipt, until all have theirs or the time is up."""
    link.prepare(frames(link, range(entries), batch))
    link.allow(PENDING)
    arrivals = Arrivals()
    with selectors.DefaultSelector() as selector:
        selector.register(link.socket, selectors.EVENT_READ | selectors.EVENT_WRITE)
        while link.receipted < entries and time.monotonic() < until:
            for _, events in selector.select(0.1):
                if events & selectors.EVENT_READ:
                    receipts = link.read()
                    if receipts:
                        arrivals.add(receipts * batch)
                    link.allow(receipts)
                if link.wants_to_write:
                    link.write()
                writes = selectors.EVENT_WRITE if link.wants_to_write else 0
                selector.modify(link.socket, selectors.EVENT_READ | writes)
    return arrivals


def receive(job: dict[str, Any], entries: int, batch: int, until: float) -> Arrivals:
    """Receive with a new subscription, until everything has arrived or the time is up."""
    arrivals = Arrivals()

    def came(consumer: int, message_id: MessageIdData, payload: bytes) -> bool:
        arrivals.add(batch)
        return True

    subscriber = Subscriber(job | {"queue": max(2 * entries * batch, PENDING)}, came)
    subscriber.subscribe(1, job["topic"], f"s{until}", CommandSubscribe.Exclusive)
    with selectors.DefaultSelector() as selector:
        selector.register(subscriber.socket, selectors.EVENT_READ)
        while len(arrivals.at) < entries and time.monotonic() < until:
            if selector.select(0.1):
                subscriber.pump()
    subscriber.socket.close()
    return arrivals


class Cases:
    """All cases on one box."""

    def __init__(self, box: PulsarBox, periods: int) -> None:
        self._box = box
        self._periods = periods
        self._topics = 0

    def run(self, rates: Sequence[int], batches: Sequence[int]) -> Iterator[Line]:
        """Run the cases one after another."""
        for batch in batches:
            entries = max(CEILING_ENTRIES // batch, 2000)
            job = self._job()
            link = self._opened(job)
            began = time.monotonic()
            ceiling_in = publish(link, entries, batch, began + 60).rate(began)
            link.socket.close()
            began = time.monotonic()
            ceiling_out = receive(job, entries, batch, began + 60).rate(began)
            for rate in rates:
                if rate * 2 <= ceiling_out:
                    yield Line("dispatch", rate, batch, self._periods, ceiling_out, self._dispatched(rate, batch))
                if rate * 2 <= ceiling_in:
                    yield Line("publish", rate, batch, self._periods, ceiling_in, self._published(rate, batch))

    def _job(self) -> dict[str, Any]:
        self._topics += 1
        return {"url": self._box.service_url, "topic": f"persistent://public/default/throttle-{self._topics}"}

    @staticmethod
    def _opened(job: dict[str, Any]) -> Link:
        link = Link(job)
        link.open({0: job["topic"]})
        return link

    def _limit(self, job: dict[str, Any], policy: str, **value: int) -> None:
        topic = job["topic"].replace("://", "/")
        self._box.admin("POST", f"/admin/v2/{topic}/{policy}", value)

    def _dispatched(self, rate: int, batch: int) -> int:
        job = self._job()
        entries = rate * (self._periods + 3) // batch + 3
        link = self._opened(job)
        publish(link, entries, batch, time.monotonic() + 120)
        link.socket.close()
        self._limit(job, "dispatchRate", dispatchThrottlingRateInMsg=rate, dispatchThrottlingRateInByte=-1)
        began = time.monotonic()
        return receive(job, entries, batch, began + self._periods + 2.5).in_periods(began, self._periods)

    def _published(self, rate: int, batch: int) -> int:
        job = self._job()
        link = self._opened(job)
        self._limit(job, "publishRate", publishThrottlingRateInMsg=rate, publishThrottlingRateInByte=-1)
        began = time.monotonic()
        entries = rate * (self._periods + 3) // batch + 3
        arrivals = publish(link, entries, batch, began + self._periods + 2.5)
        link.socket.close()
        return arrivals.in_periods(began, self._periods)


def arguments_of(words: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--periods", type=int, default=10, help="seconds that are counted")
    parser.add_argument("--rates", type=int, nargs="+", default=RATES, help="messages a second")
    parser.add_argument("--batches", type=int, nargs="+", default=BATCHES, help="messages an entry")
    parser.add_argument("--not-precise", action="store_true", help="without preciseDispatcherFlowControl")
    parser.add_argument("--json", type=Path)
    return parser.parse_args(words)


def main(words: Sequence[str] | None = None) -> None:
    arguments = arguments_of(words)
    lines = []
    print("what      messages/s  an entry      came  to come   error  entries off      without a limit")
    with PulsarBox(process=True, preciseDispatcherFlowControl=not arguments.not_precise) as box:
        for line in Cases(box, arguments.periods).run(arguments.rates, arguments.batches):
            lines.append({**line._asdict(), "error": line.error, "kept": line.kept})
            print(
                f"{line.what:<9} {line.rate:>10,}  {line.batch:>8,}  {line.came:>8,}  {line.rate * line.periods:>7,}"
                f"  {line.error:>6.1%}  {line.entries_off:>11.2f}  {line.ceiling:>13,.0f}/s"
                f"{'' if line.kept else '  not kept'}",
                flush=True,
            )
    if arguments.json:
        arguments.json.write_text(json.dumps(lines, indent=1) + "\n")
    print(f"{sum(each['kept'] for each in lines)} of {len(lines)} kept", file=sys.stderr)


if __name__ == "__main__":
    main()
