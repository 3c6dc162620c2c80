"""Sample traffic: a shop whose shipping is slow, whose fraud check rejects orders, and whose invoices are throttled.

    python -m pulsarbox.cli.tour.traffic pulsar://localhost:6650 PID FOLDER

Runs until stdin is closed, then stops the process PID, the box, and removes FOLDER with its data. So nothing outlives
the command that started them, however that ends.
"""

import contextlib
import json
import os
import random
import shutil
import signal
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from pulsarbox.cli.connect.target import TargetOptions, service_target
from pulsarbox.cli.tour.scene import INVOICES, ORDERS
from pulsarbox.client.client import Client
from pulsarbox.client.message_decoder import ReceivedMessage
from pulsarbox.client.multi_topic_consumer import MultiTopicConsumer
from pulsarbox.client.partition_consumer import TYPES, Subscribing
from pulsarbox.client.places import EARLIEST, Start
from pulsarbox.client.producer import Options, Producer
from pulsarbox.errors import PulsarBoxError
from pulsarbox.protocol.message_encoder import Outgoing

_CUSTOMERS: Final = ("ada", "alan", "barbara", "edsger", "grace", "john", "leslie", "tony")
_END_SECONDS: Final = 10.0
_POLL_SECONDS: Final = 0.05
_TICK_SECONDS: Final = 0.25
_QUEUE: Final = 20
"""Messages that a consumer receives ahead; few, so that the backlog stays visible in the box."""
_REJECTED_OF: Final = 40
"""One of so many orders is rejected."""

Stopped = threading.Event


class SteadyProducer(NamedTuple):
    """A producer with a steady rate."""

    topic: str
    a_second: int

    def run(self, client: Client, stopped: Stopped) -> None:
        """Publish until ``stopped``."""
        producer = Producer(client, self.topic, Options(name=f"{self.topic.rpartition('/')[2]}-web"), _forget)
        number = 0
        while not stopped.wait(_TICK_SECONDS):
            for _ in range(round(self.a_second * _TICK_SECONDS)):
                number += 1
                producer.send(order(number))
            producer.send_batches()
            client.turn()
        producer.close()


class PacedConsumer(NamedTuple):
    """A consumer, with the time it takes for a message."""

    topic: str
    subscription: str
    kind: str = "shared"
    seconds: float = 0.0
    is_picky: bool = False
    """Whether it rejects some orders, always the same ones."""

    def run(self, client: Client, stopped: Stopped) -> None:
        """Consume until ``stopped``."""
        name = f"{self.subscription}-1"
        options = Subscribing(self.subscription, TYPES[self.kind], start=Start(EARLIEST), queue=_QUEUE, name=name)
        consumer = MultiTopicConsumer(client, options)
        consumer.add(self.topic)
        while not stopped.is_set():
            for message in consumer.take(_QUEUE if not self.seconds else 1, _TICK_SECONDS):
                self._process(consumer, message)
                if self.seconds:
                    stopped.wait(self.seconds)
            client.turn()
        consumer.close()

    def _process(self, consumer: MultiTopicConsumer, message: ReceivedMessage) -> None:
        if self.is_picky and is_rejected(json.loads(message.payload or b"{}")["order"]):
            consumer.give_back([message])
        else:
            consumer.acknowledge([message])


def order(number: int) -> Outgoing:
    """Return an order as JSON, with its customer as the key."""
    customer = random.choice(_CUSTOMERS)
    value = {"order": number, "customer": customer, "total": round(random.uniform(5, 500), 2)}
    return Outgoing(json.dumps(value).encode(), key=customer)


def is_rejected(number: int) -> bool:
    """Return whether the fraud check rejects an order."""
    return number % _REJECTED_OF == 0


PARTICIPANTS: Final[Sequence[SteadyProducer | PacedConsumer]] = (
    SteadyProducer(ORDERS, 80),
    SteadyProducer(INVOICES, 60),
    PacedConsumer(ORDERS, "billing"),
    PacedConsumer(ORDERS, "shipping", seconds=0.05),
    PacedConsumer(ORDERS, "fraud-check", "key_shared", is_picky=True),
    PacedConsumer(INVOICES, "archive", "failover"),
)


def _forget(*receipt: Any) -> None:
    """Ignore the receipt of a message."""


def _participate(client: Client, participant: SteadyProducer | PacedConsumer, stopped: Stopped) -> None:
    try:
        participant.run(client, stopped)
    except PulsarBoxError as error:
        if not stopped.is_set():
            print(f"{participant.topic}: {error}", file=sys.stderr)
    finally:
        client.close()


def run(url: str, stopped: Stopped) -> None:
    """Run all participants until ``stopped``."""
    target = service_target(TargetOptions(url=url))
    threads = [
        threading.Thread(target=_participate, args=(Client(target.hosts), participant, stopped), daemon=True)
        for participant in PARTICIPANTS
    ]
    for thread in threads:
        thread.start()
    stopped.wait()
    for thread in threads:
        thread.join(timeout=2)


def main(url: str, box: int, folder: str) -> None:
    """Run until stdin is closed; then end the box and remove its folder."""
    stopped = Stopped()

    def watch() -> None:
        sys.stdin.buffer.read()
        stopped.set()

    threading.Thread(target=watch, daemon=True).start()
    try:
        run(url, stopped)
    finally:
        end(box)
        shutil.rmtree(folder, ignore_errors=True)


def end(pid: int) -> None:
    """End a process, and wait for its end for some seconds."""
    deadline = time.monotonic() + _END_SECONDS
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
        while time.monotonic() < deadline:
            os.kill(pid, 0)
            time.sleep(_POLL_SECONDS)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
