"""Benchmark of transactions: their rate by number of messages, and messages inside one against those outside.

Uses the bare protocol, as raw_driver does. A transaction is begun, gets its partition added, is filled, waits for its
receipts, and is committed; the job sets how many run concurrently. Inside one long transaction and outside, the same
messages go to the same topic alternately.

It reads its job from stdin and prints figures, like driver/main.go.
"""

import json
import random
import sys
import time
from collections.abc import Iterator
from statistics import median, quantiles
from typing import Any, Final

from benchmarks.drivers.raw_driver import SILENCE_SECONDS, DriverError, Job, Link, busy, pong, publish
from pulsarbox.protocol.commands import encode_frame, encode_payload, encode_payload_frame, parse_command
from pulsarbox.protocol.PulsarApi_pb2 import BaseCommand, MessageMetadata, TxnAction

COORDINATOR: Final = "persistent://pulsar/system/transaction_coordinator_assign-partition-0"
TIMEOUT_MS: Final = 600_000
READY_SECONDS: Final = 30.0
READ_BYTES: Final = 256 << 10
TURNS: Final = 6
PRODUCER: Final = 0

Id = tuple[int, int]


class Coordinated(Link):
    """Connection with a producer and the transaction coordinator, which share a broker."""

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self.topic = job["topic"]
        self.open({PRODUCER: self.topic})
        self._sequence = 0
        lookup = BaseCommand(type=BaseCommand.LOOKUP)
        lookup.lookupTopic.topic, lookup.lookupTopic.request_id = COORDINATOR, 1_000_000
        lookup.lookupTopic.authoritative = False
        self.ask([lookup])
        self._until_ready()

    def _until_ready(self) -> None:
        """Wait for the coordinator: an unused one of Apache Pulsar needs a moment."""
        deadline = time.monotonic() + READY_SECONDS
        connect = BaseCommand(type=BaseCommand.TC_CLIENT_CONNECT_REQUEST)
        connect.tcClientConnectRequest.request_id, connect.tcClientConnectRequest.tc_id = 1_000_001, 0
        while True:
            (answer,) = self.ask([connect])
            if not answer.tcClientConnectResponse.HasField("error"):
                return
            if time.monotonic() > deadline:
                raise DriverError(answer.tcClientConnectResponse.message)
            time.sleep(0.2)

    def begin(self, request: int) -> BaseCommand:
        command = BaseCommand(type=BaseCommand.NEW_TXN)
        command.newTxn.request_id, command.newTxn.txn_ttl_seconds, command.newTxn.tc_id = request, TIMEOUT_MS, 0
        return command

    def add(self, request: int, txn: Id) -> BaseCommand:
        command = BaseCommand(type=BaseCommand.ADD_PARTITION_TO_TXN)
        part = command.addPartitionToTxn
        part.request_id, part.txnid_most_bits, part.txnid_least_bits = request, *txn
        part.partitions.append(self.topic)
        return command

    def commit(self, request: int, txn: Id) -> BaseCommand:
        command = BaseCommand(type=BaseCommand.END_TXN)
        part = command.endTxn
        part.request_id, part.txnid_most_bits, part.txnid_least_bits = request, *txn
        part.txn_action = TxnAction.COMMIT
        return command

    def messages(self, count: int, body: bytes, txn: Id | None) -> tuple[range, list[bytes]]:
        """Return the sequence IDs and frames of messages, in a transaction or in none."""
        made, now = [], time.time_ns() // 1_000_000
        numbers = range(self._sequence, self._sequence + count)
        for number in numbers:
            metadata = MessageMetadata(producer_name=self.names[PRODUCER], sequence_id=number, publish_time=now)
            command = BaseCommand(type=BaseCommand.SEND)
            send = command.send
            send.producer_id, send.sequence_id = PRODUCER, number
            if txn is not None:
                send.txnid_most_bits, send.txnid_least_bits = txn
                metadata.txnid_most_bits, metadata.txnid_least_bits = txn
            made.append(encode_payload_frame(command, encode_payload(metadata.SerializeToString(), body)))
        self._sequence = numbers.stop
        return numbers, made

    def answers(self) -> list[BaseCommand]:
        """Wait for data and return its commands."""
        data = self.socket.recv(READ_BYTES)
        if not data:
            raise DriverError("the broker closed the connection")
        return [parse_command(command) for command, _ in self.decoder.feed(data)]

    def one(self) -> Id:
        """Begin a transaction with the topic added, and return its ID."""
        (answer,) = self.ask([self.begin(1_000_002)])
        begun = checked(answer.newTxnResponse)
        txn = (begun.txnid_most_bits, begun.txnid_least_bits)
        checked(self.ask([self.add(1_000_003, txn)])[0].addPartitionToTxnResponse)
        return txn


class Slot:
    """Sequence of consecutive transactions."""

    def __init__(self, link: Coordinated, number: int, count: int, body: bytes) -> None:
        self._link = link
        self._request = number
        self._count = count
        self._body = body
        self._began = 0.0
        self._txn: Id = (0, 0)
        self._missing = 0
        """Messages without a receipt."""

    def begin(self) -> bytes:
        self._began = time.perf_counter()
        return encode_frame(self._link.begin(self._request))

    def begun(self, txn: Id) -> bytes:
        self._txn = txn
        return encode_frame(self._link.add(self._request, txn))

    def added(self) -> tuple[range, bytes]:
        """Return the sequence IDs and the frames of its messages."""
        numbers, frames = self._link.messages(self._count, self._body, self._txn)
        self._missing = len(numbers)
        return numbers, b"".join(frames)

    def receipted(self) -> bytes:
        self._missing -= 1
        return b"" if self._missing else encode_frame(self._link.commit(self._request, self._txn))

    def ended(self) -> float:
        """Return its duration in seconds."""
        return time.perf_counter() - self._began


def transact(link: Coordinated, slots: list[Slot], count: int) -> list[float]:
    """Run ``count`` transactions; return the duration of each."""
    took: list[float] = []
    owner: dict[int, Slot] = {}
    left = count - len(slots)
    out = [each.begin() for each in slots]
    while len(took) < count:
        if out:
            link.socket.sendall(b"".join(out))
            out = []
        for answer in link.answers():
            if answer.type == BaseCommand.NEW_TXN_RESPONSE:
                begun = checked(answer.newTxnResponse)
                out.append(slots[begun.request_id].begun((begun.txnid_most_bits, begun.txnid_least_bits)))
            elif answer.type == BaseCommand.ADD_PARTITION_TO_TXN_RESPONSE:
                slot = slots[checked(answer.addPartitionToTxnResponse).request_id]
                numbers, frames = slot.added()
                owner.update(dict.fromkeys(numbers, slot))
                out.append(frames)
            elif answer.type == BaseCommand.SEND_RECEIPT:
                out.append(owner.pop(answer.send_receipt.sequence_id).receipted())
            elif answer.type == BaseCommand.END_TXN_RESPONSE:
                slot = slots[checked(answer.endTxnResponse).request_id]
                took.append(slot.ended())
                if left > 0:
                    left -= 1
                    out.append(slot.begin())
            elif answer.type == BaseCommand.PING:
                out.append(pong())
            else:
                raise DriverError(f"not expected: {answer}")
    return took


def checked(answer: Any) -> Any:
    """Return the answer. Raises DriverError if it is an error."""
    if answer.HasField("error"):
        raise DriverError(answer.message)
    return answer


def many(job: Job) -> dict[str, float]:
    """Measure transactions per second and their duration."""
    link = Coordinated(job)
    body = random.Random(1).randbytes(job["size"])
    inside, together = job["inside"], job["together"]
    slots = [Slot(link, number, inside, body) for number in range(together)]
    count = max(together, job["messages"] // inside)
    transact(link, slots, max(together, count // 10))  # warms up
    before, begin = busy(job["pid"]) if "pid" in job else 0.0, time.perf_counter()
    took = transact(link, slots, count)
    seconds = time.perf_counter() - begin
    cuts = quantiles(took, n=100) if len(took) > 1 else took * 99
    figures = {
        "txns": count / seconds,
        "rate": count * inside / seconds,
        "p50_ms": cuts[49] * 1000,
        "p99_ms": cuts[98] * 1000,
    }
    if "pid" in job:
        figures["broker_us"] = (busy(job["pid"]) - before) / count * 1e6
    return figures


def beside(job: Job) -> dict[str, float]:
    """Measure messages per second inside one long transaction, and outside, alternately."""
    link = Coordinated(job)
    body = random.Random(1).randbytes(job["size"])
    count = job["messages"] // (2 * TURNS)
    rates: dict[bool, list[float]] = {True: [], False: []}
    works: dict[bool, list[float]] = {True: [], False: []}
    for turn, inside in enumerate(turns()):
        txn = link.one() if inside else None
        link.prepare(link.messages(count, body, txn)[1])
        before, begin = busy(job["pid"]) if "pid" in job else 0.0, time.perf_counter()
        publish([link], job["pending"], count)
        if turn > 1:  # the first two warm up
            rates[inside].append(count / (time.perf_counter() - begin))
            works[inside].append((busy(job["pid"]) - before) / count * 1e6 if "pid" in job else 0.0)
        link.socket.settimeout(SILENCE_SECONDS)
        if txn is not None:
            checked(link.ask([link.commit(1_000_004, txn)])[0].endTxnResponse)
    figures = {"rate": median(rates[True]), "without": median(rates[False])}
    if "pid" in job:
        figures |= {"broker_us": median(works[True]), "without_us": median(works[False])}
    return figures | {"ratio": figures["rate"] / figures["without"]}


def turns() -> Iterator[bool]:
    """Yield for each turn whether it is inside a transaction."""
    for turn in range(2 * TURNS + 2):
        yield (True, False, False, True)[turn % 4]


def run(job: Job) -> dict[str, float]:
    return many(job) if "inside" in job else beside(job)


if __name__ == "__main__":
    print(json.dumps(run(json.load(sys.stdin))))
