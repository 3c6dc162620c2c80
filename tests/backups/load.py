"""Clients of a broker during a backup, and their state before and after each backup.

A publisher numbers the messages of INPUT. A worker consumes them: one transaction per message publishes the number to
LEFT and RIGHT and acknowledges the message. A third client creates, fills and deletes topics: volumes fill up, are
packed and removed.
"""

import itertools
import threading
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import pulsar

from pulsarbox import PulsarBox
from pulsarbox.client.client import Client
from pulsarbox.client.multi_topic_consumer import TYPES, MultiTopicConsumer, Subscribing
from pulsarbox.client.producer import Options, Producer
from pulsarbox.protocol.message_encoder import Outgoing
from tests.e2e.clients import PATIENCE_SECONDS, connect

INPUT: Final = "persistent://public/default/input"
LEFT: Final = "persistent://public/default/left"
RIGHT: Final = "persistent://public/default/right"
KEPT: Final = "persistent://public/default/kept-"
SUBSCRIPTION: Final = "worker"
AUDIT: Final = "audit"
"""A subscription without acknowledgements, which retains everything."""
BODY: Final = 2_000
_AHEAD_MAX: Final = 200
"""Messages by which the publisher may be ahead of the worker."""
_CHURN_MESSAGES: Final = 300


class Known(NamedTuple):
    """State of the clients at one moment."""

    sent: int
    """Messages sent to INPUT."""
    receipted: int
    begun: int
    """Transactions begun, one per message, in order."""
    committed: int
    deleted: int
    """Topics deleted, in order."""


class Load:
    """The clients, one thread each, from ``start`` to ``stop``."""

    def __init__(self, box: PulsarBox) -> None:
        self._box = box
        self._stopping = threading.Event()
        self._threads: list[threading.Thread] = []
        self.failures: list[BaseException] = []
        self._sent = self._receipted = self._begun = self._committed = self._deleted = 0

    def known(self) -> Known:
        return Known(self._sent, self._receipted, self._begun, self._committed, self._deleted)

    def start(self) -> None:
        client = connect(self._box.service_url)
        for topic in (INPUT, LEFT, RIGHT):
            client.subscribe(topic, AUDIT).close()
        client.subscribe(INPUT, SUBSCRIPTION, pulsar.ConsumerType.Shared).close()
        client.close()
        for work in (self._publish, self._work, self._churn):
            thread = threading.Thread(target=self._kept, args=(work,))
            thread.start()
            self._threads.append(thread)

    def stop(self) -> None:
        """Stop the clients; raises the first failure of a client."""
        self._stopping.set()
        for thread in self._threads:
            thread.join()
        if self.failures:
            raise self.failures[0]

    def _kept(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            self.failures.append(error)
            self._stopping.set()

    def _publish(self) -> None:
        client = connect(self._box.service_url)
        producer = client.create_producer(INPUT, batching_enabled=False, block_if_queue_full=True)
        for number in self._numbers():
            while self._sent - self._committed > _AHEAD_MAX and not self._stopping.wait(0.001):
                pass
            self._sent = number + 1
            producer.send_async(body_of(number), self._receipt)
        producer.flush()
        client.close()

    def _receipt(self, result: Any, _: Any) -> None:
        if result != pulsar.Result.Ok:
            self.failures.append(AssertionError(f"a message was not stored: {result}"))
        self._receipted += 1

    def _work(self) -> None:
        host, _, port = self._box.service_url.removeprefix("pulsar://").rpartition(":")
        ours = Client([(host, int(port))], timeout=PATIENCE_SECONDS)
        consumer = MultiTopicConsumer(ours, Subscribing(SUBSCRIPTION, TYPES["shared"]))
        consumer.add(INPUT)
        left, right = (Producer(ours, topic, Options(batching=False), _nothing) for topic in (LEFT, RIGHT))
        while not self._stopping.is_set():
            for message in consumer.take(1, 0.1):
                self._begun += 1
                with ours.transaction(600) as transaction:
                    for producer in (left, right):
                        producer.enter(transaction)
                        producer.send(Outgoing(message.payload))
                    consumer.acknowledge([message], transaction)
                self._committed += 1
        ours.close()

    def _churn(self) -> None:
        client = connect(self._box.service_url)
        for number in self._numbers():
            topic = f"{KEPT}{number}"
            consumer = client.subscribe(topic, AUDIT)
            producer = client.create_producer(topic, block_if_queue_full=True)
            for _ in range(_CHURN_MESSAGES):
                producer.send_async(bytes(BODY), None)
            producer.flush()
            producer.close()
            consumer.close()
            self._box.admin("DELETE", f"/admin/v2/persistent/public/default/kept-{number}?force=true")
            self._deleted = number + 1
            self._stopping.wait(0.05)
        client.close()

    def _numbers(self) -> Iterator[int]:
        return itertools.takewhile(lambda _: not self._stopping.is_set(), itertools.count())


def body_of(number: int) -> bytes:
    """Return the payload of a message in INPUT, LEFT and RIGHT."""
    return b"%d " % number + bytes(number * 37 % BODY)


def number_of(body: bytes) -> int:
    """Return the number of a message. Raises AssertionError if its payload is damaged."""
    number = int(body.partition(b" ")[0])
    assert body == body_of(number)
    return number


def _nothing(*told: object) -> None:
    """Ignore a callback: a producer may report batches that failed."""
