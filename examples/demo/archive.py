"""Archive of readings by the hundred, for later reads. The box compresses it with ``xz``."""

import json
import platform
import time
from typing import Any, Final

import pulsar

from examples.demo.box import PATIENCE_SECONDS, Box
from examples.demo.readings import Reading

PAGE: Final = 100
"""Readings per page, which is one message."""
CODEC: Final = "xz"


class Archive:
    """Writer and reader of pages; not thread-safe."""

    def __init__(self, client: Any, topic: str) -> None:
        self.pages = 0
        self._client = client
        self._topic = topic
        self._page: list[Reading] = []
        # No timeout: messages without a receipt when the box dies are resent after its restart.
        self._producer = client.create_producer(topic, send_timeout_millis=0, block_if_queue_full=True)

    def add(self, reading: Reading) -> None:
        """Add a reading to the current page."""
        self._page.append(reading)
        if len(self._page) == PAGE:
            self._write()

    def close(self) -> None:
        """Write the last page, and wait for all receipts."""
        if self._page:
            self._write()
        self._producer.flush()

    def _write(self) -> None:
        readings = [json.loads(each.body) for each in self._page]
        page = {"host": platform.node(), "system": platform.platform(), "page": self.pages, "readings": readings}
        self._producer.send_async(json.dumps(page).encode(), None)
        self.pages += 1
        self._page = []

    def read(self) -> set[int]:
        """Return the numbers of all archived readings."""
        reader = self._client.create_reader(self._topic, pulsar.MessageId.earliest)
        numbers: set[int] = set()
        while reader.has_message_available():
            page = json.loads(reader.read_next(int(PATIENCE_SECONDS * 1000)).data())
            numbers.update(each["n"] for each in page["readings"])
        reader.close()
        return numbers


def compress(box: Box, topic: str) -> None:
    """Have the box compress a topic, as ``pulsarbox topic policy TOPIC compression-at-rest xz`` does."""
    box.ask("POST", f"/pulsarbox/v1/policies/{topic.replace('://', '/')}/compressionAtRest", CODEC)


def packed(box: Box, topic: str) -> dict[str, Any] | None:
    """Return a topic's compression: entries, bytes, `stored` bytes on disk, ratio. None if not compressed yet."""
    rows: list[dict[str, Any]] = box.ask("GET", "/pulsarbox/v1/compression")
    return next((row for row in rows if row["topic"] == topic and row["codec"] == CODEC), None)


def wait_until_packed(box: Box, topic: str) -> dict[str, Any] | None:
    """Wait until every volume sealed so far is packed, and return the compression as ``packed`` does."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    full = _full(box)
    while full:
        full &= _full(box)
        found = packed(box, topic)
        if (found is not None and not full) or time.monotonic() > deadline:
            return found
        time.sleep(0.1)
    return packed(box, topic)


def _full(box: Box) -> set[str]:
    """Return the names of the volumes that are neither written to nor packed yet."""
    volumes: list[dict[str, Any]] = box.ask("GET", "/pulsarbox/v1/top/storage")["rows"]
    return {each["name"] for each in volumes if each["state"] not in ("current", "packed")}
