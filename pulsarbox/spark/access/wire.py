"""Entries over the Pulsar protocol: a reader, which leaves nothing behind, from a place until the end of a segment.

Of a box all entries are known that have to come, so a gap is noticed. Of Apache Pulsar they are not: there, what was
aborted and what was trimmed since are not told apart.
"""

import time
from collections.abc import Callable, Iterator
from typing import Final
from uuid import uuid4

from pulsarbox.client.client import Client
from pulsarbox.client.errors import NoAnswer
from pulsarbox.client.places import MessageId, Start
from pulsarbox.client.topic_consumer import Subscribing, TopicConsumer
from pulsarbox.names import parse_topic
from pulsarbox.protocol.metadata import parse_entry
from pulsarbox.protocol.violations import ChecksumMismatch, MalformedMetadata
from pulsarbox.spark.connecting import client_of
from pulsarbox.spark.segments import Lost, Place, Reach, Segment

AHEAD: Final = 5000
"""Messages that are asked for before they are needed."""
ENTRIES: Final = 1000
"""Those of one answer, at most."""
_LOOK_SECONDS: Final = 1.0
"""Nothing for so long: it is asked whether there is anything left."""
SUBSCRIPTION: Final = "pulsarbox-spark-reader-"
"""What the names of readers begin with: each has its own, which is gone when it has read."""

Entry = tuple[int, int, bytes]
"""Ledger, entry, and the bytes as the client sent them, verified."""


def entries(segment: Segment, reach: Reach, lost: Callable[[Lost], None]) -> Iterator[list[Entry]]:
    """What a segment has, in order. ``lost`` is told what is missing, and may raise.

    Raises NoAnswer where nothing comes for ``reach.seconds``, and what the broker tells.
    """
    client = client_of(reach)
    try:
        reading = _Reading(client, segment, reach, lost)
        while (found := reading.some()) is not None:
            if found:
                yield found
    finally:
        client.close()


class _Reading:
    """A reader of one segment."""

    def __init__(self, client: Client, segment: Segment, reach: Reach, lost: Callable[[Lost], None]) -> None:
        self._client = client
        self._segment = segment
        self._reach = reach
        self._lost = lost
        by_ids = segment.end is not None
        runs = [] if by_ids else segment.visible
        self._runs = runs if segment.instance else []
        """Of a box, what has to come."""
        if by_ids:
            self._begin, self._end = Place(*segment.start[:2]), segment.end or segment.start
            if self._end.batch:
                self._end = Place(self._end.ledger, self._end.entry + 1)
        elif runs:
            self._begin = Place(segment.ledger, runs[0][0])
            self._end = Place(segment.ledger, runs[-1][1] + 1)
        else:
            self._begin = self._end = Place(segment.ledger, segment.first)
        self._next = self._begin
        self._over = self._begin >= self._end
        if not self._over:
            name = parse_topic(segment.topic)
            options = Subscribing(
                SUBSCRIPTION + uuid4().hex,
                durable=False,
                start=Start(MessageId(self._begin.ledger, self._begin.entry)),
                create=False,
                queue=AHEAD,
                compacted=segment.compacted != 0,
            )
            self._consumer = TopicConsumer(client, segment.topic, name.partition_index, options, lambda _: None)
            self._consumer.open()
        self._deadline = time.monotonic() + reach.seconds

    def some(self) -> list[Entry] | None:
        """The next entries; none where it is still waited for, None behind the end."""
        if self._over:
            return None
        taken = self._consumer.take_entries(ENTRIES)
        if not taken:
            self._consumer.is_waiting = False
            self._wait()
            return []
        self._deadline = time.monotonic() + self._reach.seconds
        found = []
        for ledger, entry, payload in taken:
            at = Place(ledger, entry)
            if at < self._next:
                continue  # it was there before the connection was lost
            if at >= self._end:
                self._finish()
                break
            self._expect(ledger, entry)
            self._next = Place(ledger, entry + 1)
            if self._is_whole(ledger, entry, payload):
                found.append((ledger, entry, payload))
            if self._next >= self._end:
                self._finish()
                break
        return found

    def _wait(self) -> None:
        if self._client.turn(_LOOK_SECONDS) or self._consumer.has_some:
            return
        last, _ = self._consumer.last_id()
        if Place(last.ledger, last.entry) < self._next:
            self._finish()  # what is behind is not there, or nobody sees it
        elif time.monotonic() > self._deadline:
            where = f"{self._next.ledger}:{self._next.entry}"
            raise NoAnswer(f"{self._segment.topic}: nothing came from {where} on for {self._reach.seconds:g} s")

    def _expect(self, ledger: int, entry: int) -> None:
        """Of a box: what should have come before this one."""
        while self._runs and (self._segment.ledger, self._runs[0][1]) < (ledger, entry):
            first, last = self._runs.pop(0)
            self._missing(max(first, self._next.entry), last + 1)
        if self._runs and max(self._runs[0][0], self._next.entry) < entry:
            self._missing(max(self._runs[0][0], self._next.entry), entry)
        if self._runs and entry >= self._runs[0][1]:
            self._runs.pop(0)

    def _missing(self, first: int, end: int) -> None:
        ledger = self._segment.ledger
        if first < end:
            self._lost(Lost(self._segment.topic, Place(ledger, first), Place(ledger, end), "do not come any more"))

    def _finish(self) -> None:
        self._over = True
        for first, last in self._runs:
            self._missing(max(first, self._next.entry), last + 1)
        self._consumer.close()

    def _is_whole(self, ledger: int, entry: int, payload: bytes) -> bool:
        try:
            parse_entry(payload)
        except (ChecksumMismatch, MalformedMetadata) as error:
            reason = f"cannot be read: {error}"
            self._lost(Lost(self._segment.topic, Place(ledger, entry), Place(ledger, entry + 1), reason))
            return False
        return True


def bounds(client: Client, topic: str) -> tuple[Place, Place]:
    """Where a topic begins, as far as that is told, and the place behind the last entry that a reader sees."""
    name = parse_topic(topic)
    options = Subscribing(SUBSCRIPTION + uuid4().hex, durable=False, create=False, queue=1)
    consumer = TopicConsumer(client, topic, name.partition_index, options, lambda _: None)
    consumer.open()
    try:
        last, _ = consumer.last_id()
    finally:
        consumer.close()
    return Place(-1, -1), Place(last.ledger, last.entry + 1) if last.ledger >= 0 else Place(-1, -1)
