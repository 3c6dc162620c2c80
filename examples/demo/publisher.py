"""Publisher of the readings."""

import threading
import time
from typing import Any, Final

import pulsar

from examples.demo.books import Books
from examples.demo.box import PATIENCE_SECONDS, PLUGINS
from examples.demo.readings import key_of, made, measure
from pulsarbox.client import router

ROUNDS_A_SECOND: Final = 30


class Publisher(threading.Thread):
    """Thread that measures, publishes, and records the published readings."""

    def __init__(self, client: Any, topic: str, seconds: float) -> None:
        super().__init__(name="publisher")
        self.books = Books()
        self.receipts = 0
        self.failed = 0
        self._seconds = seconds
        # No timeout: messages without a receipt when the box dies are resent after its restart.
        self._producer = client.create_producer(
            topic,
            producer_name="telemetry",
            batching_enabled=True,
            batching_type=pulsar.BatchingType.KeyBased,
            batching_max_publish_delay_ms=5,
            block_if_queue_full=True,
            send_timeout_millis=0,
            # Called per message, so that all messages of a key-based batch go to one partition.
            message_router=router("consistent", topic=topic, hashing="hash-tag", plugins_dir=PLUGINS),
        )

    def run(self) -> None:
        begin, rounds = time.monotonic(), 0
        while time.monotonic() - begin < self._seconds:
            for device, what, value in measure():
                reading = made(self.books.count, device, what, value)
                self.books.add(reading)
                now = int(time.time() * 1000)
                key = key_of(device)
                self._producer.send_async(reading.body, self._receipted, partition_key=key, event_timestamp=now)
            rounds += 1
            time.sleep(max(0.0, begin + rounds / ROUNDS_A_SECOND - time.monotonic()))
        self._producer.flush()
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self.receipts + self.failed < self.books.count and time.monotonic() < deadline:
            time.sleep(0.01)

    def _receipted(self, result: Any, _message_id: Any) -> None:
        if result == pulsar.Result.Ok:
            self.receipts += 1
        else:
            self.failed += 1
