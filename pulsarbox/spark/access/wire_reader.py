"""Reading of entries over the Pulsar protocol, by non-durable readers that start at the segment.

Segments are read concurrently over one connection to each broker, so waiting for one does not stall the others.

For a box, the expected entries are known, so gaps are detected. For Apache Pulsar they are not: aborted entries and
entries trimmed since cannot be told apart.
"""

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Final
from uuid import uuid4

from pulsarbox.client.client import Client
from pulsarbox.client.entry_reader import EntryReader
from pulsarbox.client.errors import NoAnswer, passes
from pulsarbox.client.partition_consumer import Subscribing, TopicConsumer
from pulsarbox.client.places import MessageId, Start
from pulsarbox.errors import PulsarBoxError
from pulsarbox.names import parse_topic
from pulsarbox.protocol.message_stream_decoder import Deliveries
from pulsarbox.protocol.metadata import parse_entry
from pulsarbox.protocol.violations import ChecksumMismatch, MalformedMetadata
from pulsarbox.spark.access.volume_blocks import Block
from pulsarbox.spark.connect.connections import client_of
from pulsarbox.spark.topic_segments import Lost, Reach, ReadPosition, TopicSegment

AT_ONCE: Final = 8
"""Segments read concurrently."""
AHEAD: Final = 5000
"""Permits per segment: messages requested in advance."""
BLOCK_BYTES: Final = 512 << 10
"""Bytes of entries yielded together."""
_LOOK_SECONDS: Final = 1.0
"""Idle time before checking whether anything is left to read."""
SUBSCRIPTION: Final = "pulsarbox-spark-reader-"
"""Prefix of subscription names: each reader has a unique one, deleted when it has finished."""

Entry = tuple[int, int, bytes]
"""Ledger, entry, and the bytes as the client sent them, verified."""
Piece = Block | tuple[int, list[Entry]]
"""Entries of several segments; or a segment's number and some of its entries."""


def entries(segment: TopicSegment, reach: Reach, lost: Callable[[Lost], None]) -> Iterator[list[Entry]]:
    """Yield the entries of a segment in order. ``lost`` is called with missing ranges, and may raise.

    Raises NoAnswer if nothing arrives for ``reach.seconds``, and the broker's errors.
    """
    for piece in pieces({0: segment}, reach, lost):
        if isinstance(piece, Block):
            yield from piece.each().values()
        else:
            yield piece[1]


def pieces(segments: Mapping[int, TopicSegment], reach: Reach, lost: Callable[[Lost], None]) -> Iterator[Piece]:
    """Yield the entries of several segments, by number, in order per segment. Otherwise as ``entries``."""
    client = client_of(reach)
    try:
        yield from _Readings(client, segments, reach, lost).pieces()
    finally:
        client.close()


class _Found:
    """Entries received and not yet yielded."""

    def __init__(self, segments: Mapping[int, TopicSegment]) -> None:
        self.deliveries = Deliveries()
        self.portion = 0
        """Number of the current portion: the entries that are yielded together."""
        self.ledgers = {
            number: each.ledger for number, each in segments.items() if each.end is None and not each.compacted
        }
        """Ledgers of the segments whose entries may arrive in bulk, by segment number."""
        self._single: dict[int, list[Entry]] = {}
        """Entries received one by one, by segment: they precede those received in bulk."""
        self._size = 0
        self._ready: list[Piece] = []
        self.has_news = False
        """Whether anything arrived since the flag was last cleared."""

    def add(self, number: int, entry: Entry) -> None:
        """Add an entry received singly."""
        self._single.setdefault(number, []).append(entry)
        self._size += len(entry[2])

    @property
    def is_much(self) -> bool:
        """Whether a portion is large enough to be yielded."""
        return self._size + self.deliveries.size >= BLOCK_BYTES

    def end_portion(self) -> None:
        """End the portion: everything received later follows it."""
        self.portion += 1
        self._ready += self._single.items()
        self._single, self._size = {}, 0
        found = self.deliveries.drain()
        if found is not None:
            self._ready.append(Block(*found, self.ledgers))

    def take(self) -> list[Piece]:
        """Return the entries of all ended portions."""
        ready, self._ready = self._ready, []
        return ready


class _Reading(EntryReader):
    """Reader of one segment."""

    def __init__(
        self, client: Client, segment: TopicSegment, number: int, found: _Found, lost: Callable[[Lost], None]
    ) -> None:
        self._segment = segment
        self._found = found
        self._lost = lost
        self._portion = -1
        """The last portion in which entries arrived in bulk."""
        by_ids = segment.end is not None
        runs = [] if by_ids else segment.visible
        self._runs = runs if segment.instance else []
        """Runs of entries still expected; empty for Apache Pulsar."""
        if by_ids:
            begin, end = segment.start[:2], segment.end or segment.start
            self._end = (end.ledger, end.entry + (end.batch > 0))
        elif runs:
            begin, self._end = (segment.ledger, runs[0][0]), (segment.ledger, runs[-1][1] + 1)
        else:
            begin = self._end = (segment.ledger, segment.first)
        self._next: tuple[int, int] = begin
        self.over = begin >= self._end
        options = Subscribing(
            SUBSCRIPTION + uuid4().hex,
            durable=False,
            start=Start(MessageId(*begin)),
            create=False,
            queue=min(AHEAD, self._left),
            compacted=segment.compacted != 0,
        )
        partition = parse_topic(segment.topic).partition_index
        super().__init__(client, segment.topic, partition, options, found.deliveries, number)
        self._expect_next()

    @property
    def place(self) -> MessageId:
        """See EntryReader."""
        return MessageId(*self._next)

    @property
    def _left(self) -> int:
        """Estimated number of messages still to arrive, at least one."""
        segment = self._segment
        if segment.end is not None:
            return AHEAD
        entries = self._end[1] - self._next[1]
        share = entries / max(1, segment.last - segment.first + 1)
        return max(1, entries, round(segment.messages * share))

    def ask(self) -> None:
        """Grant the permits needed soon. More would make the broker send messages after the end."""
        left = min(AHEAD, self._left)
        if self.asked < min(AHEAD // 2, left):
            self.ask_for(left - self.asked)

    def finish_if_idle(self) -> bool:
        """Check an idle reader: finish if nothing is left, and return whether it has finished."""
        last, _ = self.last_id()
        if not self.over and (last.ledger, last.entry) < self._next:
            self._finish()  # the rest is gone or invisible to readers
        return self.over

    def took(self, end: int, messages: int) -> None:
        """See EntryReader."""
        super().took(end, messages)
        self._portion = self._found.portion
        self._advance_to(self.ledger, end)

    def entry(self, ledger: int, entry: int, payload: bytes) -> None:
        """See EntryReader."""
        at = (ledger, entry)
        if at < self._next:
            return  # received before the connection was lost
        if at >= self._end:
            self._finish()
            return
        self._miss_before(ledger, entry)
        if self._is_whole(ledger, entry, payload):
            if self._portion == self._found.portion:
                self._found.end_portion()
            self._found.add(self.number, (ledger, entry, payload))
        self._advance_to(ledger, entry + 1)

    def _advance_to(self, ledger: int, end: int) -> None:
        """Advance to ``end``."""
        self._next = (ledger, end)
        self._found.has_news = True
        if self._runs and end > self._runs[0][1]:
            self._runs.pop(0)
        if self._next >= self._end:
            self._finish()
        else:
            self._expect_next()

    def _expect_next(self) -> None:
        """Set the range of entries that may arrive in bulk: those of which all messages are requested."""
        segment = self._segment
        self.last = -1
        if self.number not in self._found.ledgers:
            return
        first, last = self._runs[0] if self._runs else (segment.first, segment.last)
        self.ledger, self.next = segment.ledger, max(first, self._next[1])
        if not (segment.from_batch and self.next == segment.first):
            self.last = min(last, segment.last - (segment.to_batch > 0))

    def _miss_before(self, ledger: int, entry: int) -> None:
        """Report the expected entries missing before this one."""
        while self._runs and (self._segment.ledger, self._runs[0][1]) < (ledger, entry):
            first, last = self._runs.pop(0)
            self._missing(max(first, self._next[1]), last + 1)
        if self._runs and max(self._runs[0][0], self._next[1]) < entry:
            self._missing(max(self._runs[0][0], self._next[1]), entry)

    def _missing(self, first: int, end: int) -> None:
        ledger = self._segment.ledger
        if first < end:
            self._lost(
                Lost(
                    self._segment.topic,
                    ReadPosition(ledger, first),
                    ReadPosition(ledger, end),
                    "are no longer delivered",
                )
            )

    def _finish(self) -> None:
        self.over = True
        self.close()
        for first, last in self._runs:
            self._missing(max(first, self._next[1]), last + 1)

    def _is_whole(self, ledger: int, entry: int, payload: bytes) -> bool:
        try:
            parse_entry(payload)
        except (ChecksumMismatch, MalformedMetadata) as error:
            reason = f"cannot be read: {error}"
            self._lost(Lost(self._segment.topic, ReadPosition(ledger, entry), ReadPosition(ledger, entry + 1), reason))
            return False
        return True


class _Readings:
    """Readers of several segments, some of them concurrent."""

    def __init__(
        self, client: Client, segments: Mapping[int, TopicSegment], reach: Reach, lost: Callable[[Lost], None]
    ) -> None:
        self._client = client
        self._reach = reach
        self._lost = lost
        self._waiting = deque(segments.items())
        self._found = _Found(segments)
        self._open: list[_Reading] = []
        self._was_open = False

    def pieces(self) -> Iterator[Piece]:
        """Yield the entries of all segments."""
        deadline = time.monotonic() + self._reach.seconds
        while self._waiting or self._open:
            self._open_more()
            if not self._client.turn(_LOOK_SECONDS):
                self._check_idle(deadline)
            if self._found.has_news:
                self._found.has_news = False
                deadline = time.monotonic() + self._reach.seconds
            self._open = [each for each in self._open if not each.over]
            for each in self._open:
                each.ask()
            if self._found.is_much:
                self._found.end_portion()
            yield from self._found.take()
        self._found.end_portion()
        yield from self._found.take()

    def _open_more(self) -> None:
        while self._waiting and len(self._open) < AT_ONCE:
            number, segment = self._waiting.popleft()
            reading = _Reading(self._client, segment, number, self._found, self._lost)
            if reading.over:
                continue
            try:
                reading.open()
            except PulsarBoxError as error:
                if not self._was_open or not passes(error):
                    raise
                reading.open_later(error)  # reconnects like the others
            self._was_open = True
            self._open.append(reading)

    def _check_idle(self, deadline: float) -> None:
        for each in self._open:
            if not each.over and not each.finish_if_idle() and time.monotonic() > deadline:
                where = f"{each.place.ledger}:{each.place.entry}"
                raise NoAnswer(f"{each.topic}: nothing received from {where} on for {self._reach.seconds:g} s")


def bounds(client: Client, topic: str) -> tuple[ReadPosition, ReadPosition]:
    """Return -1:-1, as the start is unknown here, and the position after the last visible entry of a topic."""
    name = parse_topic(topic)
    options = Subscribing(SUBSCRIPTION + uuid4().hex, durable=False, create=False, queue=1)
    consumer = TopicConsumer(client, topic, name.partition_index, options, lambda _: None)
    consumer.open()
    try:
        last, _ = consumer.last_id()
    finally:
        consumer.close()
    return ReadPosition(-1, -1), ReadPosition(last.ledger, last.entry + 1) if last.ledger >= 0 else ReadPosition(-1, -1)
