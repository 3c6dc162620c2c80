"""Consumer in this process that records its readings."""

import threading
from typing import Any

import pulsar

from examples.demo.archive import Archive
from examples.demo.books import Books
from examples.demo.readings import Reading, kind_of, read


class Consumer(threading.Thread):
    """Consumer thread that runs until ``end``."""

    def __init__(self, client: Any, topic: str, subscription: str, archive: Archive | None = None) -> None:
        super().__init__(name=subscription)
        self.books = Books()
        self.readings: list[Reading] = []
        self.topics: dict[str, set[str]] = {}
        """Partitions that readings came from, by kind of device."""
        self._archive = archive
        self._ended = threading.Event()
        self._consumer = client.subscribe(
            topic,
            subscription,
            consumer_type=pulsar.ConsumerType.Failover,
            initial_position=pulsar.InitialPosition.Earliest,
            receiver_queue_size=500,
        )

    def run(self) -> None:
        while not self._ended.is_set():
            try:
                message = self._consumer.receive(timeout_millis=100)
                self._take(read(message.data()), message)
                self._consumer.acknowledge(message)
            except pulsar.PulsarException:  # nothing yet, or the box is down: the client reconnects
                continue

    def _take(self, reading: Reading, message: Any) -> None:
        self.topics.setdefault(kind_of(reading.device), set()).add(message.topic_name())
        self.readings.append(reading)
        if self.books.add(reading) and self._archive is not None:
            self._archive.add(reading)

    def end(self) -> None:
        """Stop consuming."""
        self._ended.set()
        self.join()
