"""This machine's telemetry through a box that is killed in the middle: what went in comes out, to the last digit.

Starts ``pulsarbox`` on a directory of its own, publishes readings of this machine (processor, memory, disks, network,
processes; the device is the key) with the official Python client, and consumes them. Half way the box gets a SIGKILL
and is started in place; the clients carry on by themselves. In the end both sides are compared, device by device.

    make demo                  # some 15 seconds; ends with 1 if the numbers do not agree

Talk on stderr, the result on stdout.
"""

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import psutil
import pulsar
from rich.console import Console
from rich.table import Table

TOPIC: Final = "persistent://public/default/telemetry"
SUBSCRIPTION: Final = "demo"
PATIENCE_SECONDS: Final = 30.0
ROUNDS_A_SECOND: Final = 20

talk: Final = Console(stderr=True, highlight=False)


# ------------------------------------------------------------------------------------------------------ the machine


def readings() -> Iterator[tuple[str, str, float]]:
    """(device, measure, value) of everything that psutil sees now."""
    for number, percent in enumerate(psutil.cpu_percent(percpu=True)):
        yield f"cpu{number}", "percent", percent
    memory = psutil.virtual_memory()
    yield "memory", "used", memory.used
    yield "memory", "available", memory.available
    for name, disk in (psutil.disk_io_counters(perdisk=True) or {}).items():
        if not any(disk):
            continue  # a device that nothing uses
        yield f"disk:{name}", "read_bytes", disk.read_bytes
        yield f"disk:{name}", "write_bytes", disk.write_bytes
    for name, net in psutil.net_io_counters(pernic=True).items():
        if not any(net):
            continue
        yield f"net:{name}", "sent", net.bytes_sent
        yield f"net:{name}", "received", net.bytes_recv
    yield "processes", "count", len(psutil.pids())


# ---------------------------------------------------------------------------------------------------------- the box


class Box:
    """``pulsarbox start`` in a process of its own."""

    def __init__(self, data: Path) -> None:
        with socket.socket() as one, socket.socket() as other:
            one.bind(("127.0.0.1", 0))
            other.bind(("127.0.0.1", 0))
            self.port, self._web_port = one.getsockname()[1], other.getsockname()[1]
        self.url = f"pulsar://127.0.0.1:{self.port}"
        self._data = data
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> float:
        """Start, and return the seconds until it accepts connections."""
        begin = time.monotonic()
        ports = ["--port", str(self.port), "--web-port", str(self._web_port)]
        command = [sys.executable, "-m", "pulsarbox", "start", "--data-dir", str(self._data), *ports]
        with self._data.with_name("box.log").open("ab") as log:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        while time.monotonic() - begin < PATIENCE_SECONDS and self._process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
            except OSError:
                time.sleep(0.005)
            else:
                return time.monotonic() - begin
        raise SystemExit(f"the box did not start:\n{self._data.with_name('box.log').read_text()}")

    def end(self, how: signal.Signals) -> None:
        if self._process is not None:
            os.kill(self._process.pid, how)
            self._process.wait()
            self._process = None


# -------------------------------------------------------------------------------------------------------- the books


@dataclass
class Account:
    """What one side knows of one device: how many readings, their sum, and a checksum over all of them in order."""

    count: int = 0
    total: float = 0.0
    checksum: int = 0

    def add(self, body: bytes) -> None:
        self.count += 1
        self.total += json.loads(body)["value"]
        self.checksum = zlib.crc32(body, self.checksum)


@dataclass
class Books:
    """One side's account of everything."""

    devices: dict[str, Account] = field(default_factory=dict)

    def add(self, device: str, body: bytes) -> None:
        self.devices.setdefault(device, Account()).add(body)

    @property
    def count(self) -> int:
        return sum(account.count for account in self.devices.values())


class Publisher:
    """Reads the machine, publishes, and keeps the books of what was published."""

    def __init__(self, client: Any) -> None:
        self.books = Books()
        self.receipts = 0
        self.failed = 0
        # No time-out: what has no receipt when the box dies is sent again to its successor.
        self._producer = client.create_producer(
            TOPIC,
            producer_name="telemetry",
            batching_enabled=True,
            batching_max_publish_delay_ms=5,
            block_if_queue_full=True,
            send_timeout_millis=0,
        )

    def publish_for(self, seconds: float) -> None:
        begin, number = time.monotonic(), 0
        while time.monotonic() - begin < seconds:
            for device, measure, value in readings():
                body = json.dumps(
                    {"n": self.books.count, "device": device, "measure": measure, "value": value}
                ).encode()
                self.books.add(device, body)
                self._producer.send_async(body, self._receipted, partition_key=device)
            number += 1
            time.sleep(max(0.0, begin + number / ROUNDS_A_SECOND - time.monotonic()))
        self._producer.flush()
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self.receipts + self.failed < self.books.count and time.monotonic() < deadline:
            time.sleep(0.01)

    def _receipted(self, result: Any, _message_id: Any) -> None:
        if result == pulsar.Result.Ok:
            self.receipts += 1
        else:
            self.failed += 1


class Consumer(threading.Thread):
    """Consumes until told how much there is, and keeps the books of what came."""

    def __init__(self, client: Any) -> None:
        super().__init__(name="consumer")
        self.books = Books()
        self.again = 0
        self.out_of_order = 0
        self.expected: int | None = None
        self._newest = -1
        self._consumer = client.subscribe(
            TOPIC, SUBSCRIPTION, initial_position=pulsar.InitialPosition.Earliest, receiver_queue_size=500
        )

    def run(self) -> None:
        deadline = None
        while self.expected is None or self.books.count < self.expected:
            if self.expected is not None:
                deadline = deadline or time.monotonic() + PATIENCE_SECONDS
                if time.monotonic() > deadline:
                    return
            try:
                message = self._consumer.receive(timeout_millis=100)
                self._take(message.partition_key(), message.data())
                self._consumer.acknowledge(message)
            except pulsar.PulsarException:  # nothing yet, or the box is away: the client connects again by itself
                continue

    def _take(self, device: str, body: bytes) -> None:
        number = json.loads(body)["n"]
        if number <= self._newest:  # published again by the client, or delivered again: counted once
            self.again += 1
            return
        self.out_of_order += number != self._newest + 1
        self._newest = number
        self.books.add(device, body)


# --------------------------------------------------------------------------------------------------------- the play


def play(seconds: float, folder: Path) -> tuple[Publisher, Consumer, dict[str, float]]:
    box = Box(folder / "data")
    times = {"start": box.start()}
    talk.print(f"a box listens on {box.url}, {times['start']:.2f} s after its start")
    client = pulsar.Client(box.url, logger=pulsar.FileLogger(pulsar.LoggerLevel.Warn, str(folder / "client.log")))
    try:
        consumer, publisher = Consumer(client), Publisher(client)
        consumer.start()
        publishing = threading.Thread(target=publisher.publish_for, args=(seconds,), name="publisher")
        publishing.start()
        publishing.join(seconds / 2)
        talk.print(f"{publisher.receipts} readings receipted so far; kill -9 in the middle of it")
        box.end(signal.SIGKILL)
        times["restart"] = box.start()
        talk.print(f"started again in place in {times['restart']:.2f} s; the clients find it by themselves")
        publishing.join()
        consumer.expected = publisher.books.count
        consumer.join()
        client.close()
    finally:
        box.end(signal.SIGTERM)
    return publisher, consumer, times


def agree(publisher: Publisher, consumer: Consumer) -> bool:
    counts = {publisher.books.count, publisher.receipts, consumer.books.count}
    same = publisher.books.devices == consumer.books.devices
    return len(counts) == 1 and same and consumer.out_of_order == 0


def show(publisher: Publisher, consumer: Consumer, times: dict[str, float]) -> None:
    table = Table(title="telemetry, by device: published and consumed")
    for name in ("device", "published", "consumed", "sum published", "sum consumed", "checksum", ""):
        table.add_column(name, justify="left" if name == "device" else "right", no_wrap=True)
    for device in sorted(publisher.books.devices.keys() | consumer.books.devices.keys()):
        sent = publisher.books.devices.get(device, Account())
        came = consumer.books.devices.get(device, Account())
        verdict = "[green]agree[/]" if sent == came else "[red]DIFFER[/]"
        sums = (f"{sent.total:,.0f}", f"{came.total:,.0f}", f"{came.checksum:08x}")
        table.add_row(device, f"{sent.count:,}", f"{came.count:,}", *sums, verdict)
    console = Console(width=None if sys.stdout.isatty() else 110, highlight=False)
    console.print(table)
    console.print(
        f"published {publisher.books.count}, receipted {publisher.receipts}, failed {publisher.failed}, "
        f"consumed {consumer.books.count}, seen again after the kill {consumer.again}, "
        f"out of order {consumer.out_of_order}; "
        f"start {times['start']:.2f} s, restart {times['restart']:.2f} s"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=14.0, help="how long to publish")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="pulsarbox-demo-") as folder:
        publisher, consumer, times = play(arguments.seconds, Path(folder))
    show(publisher, consumer, times)
    if not agree(publisher, consumer):
        print("the two sides DIFFER")
        return 1
    print("the two sides agree")
    return 0


if __name__ == "__main__":
    sys.exit(main())
