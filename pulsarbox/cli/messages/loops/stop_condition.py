"""Stop condition of reading: ``--until``, checked per message, and when no more messages arrive."""

import time
from collections.abc import Sequence
from typing import Final

from pulsarbox.cli.common.position_options import End, Until
from pulsarbox.client.message_decoder import ReceivedMessage
from pulsarbox.client.multi_topic_consumer import MultiTopicConsumer
from pulsarbox.client.partition_consumer import TopicConsumer
from pulsarbox.client.places import MessageId
from pulsarbox.errors import NotAllowed

_PER_TOPIC: Final = (End.END, End.TIME, End.ID)
UNKNOWN_SECONDS: Final = 3.0
"""Time without messages after which the end counts as reached if the broker does not report the reader's position."""


class StopCondition:
    """Truncates the received messages at the requested end, per topic or partition."""

    def __init__(self, consumer: MultiTopicConsumer, until: Until, limit: int | None = None) -> None:
        """Ask the broker for the ends of topics, if needed. ``limit`` is the maximum number of messages."""
        self.count = 0
        """Number of accepted messages."""
        self._consumer = consumer
        self._until = until
        counts = [each for each in (limit, until.number if until.kind is End.COUNT else None) if each is not None]
        self._limit = min(counts, default=None)
        self._deadline = time.monotonic() + until.number / 1000 if until.kind is End.DURATION else None
        self._ends: dict[TopicConsumer, MessageId] = {}
        self._open: set[TopicConsumer] = set()
        if until.kind in _PER_TOPIC:
            for part in consumer.parts.values():
                self._begin(part)

    def _begin(self, part: TopicConsumer) -> None:
        if self._until.kind is End.END:
            end, mark = part.last_id()
            if end.entry < 0 or _covers(mark, end):
                return
            self._ends[part] = end
        elif self._until.kind is End.ID:
            self._ends[part] = self._until.id
        self._open.add(part)

    def is_reached(self) -> bool:
        """Return whether the end is reached, or no more messages can arrive."""
        kind = self._until.kind
        if kind in _PER_TOPIC and not self._open:
            return True
        if self._limit is not None and self.count >= self._limit:
            return True
        if self._deadline is not None and time.monotonic() >= self._deadline:
            return True
        return self._consumer.ended

    @property
    def seconds_left(self) -> float:
        """Maximum wait for a message before the next check."""
        if self._deadline is None:
            return 3600.0
        return max(0.0, self._deadline - time.monotonic())

    @property
    def wanted(self) -> int:
        """Maximum number of messages to receive."""
        return 1 << 30 if self._limit is None else self._limit - self.count

    def cut(self, messages: Sequence[ReceivedMessage]) -> Sequence[ReceivedMessage]:
        """Return and count the messages before the end."""
        if self._until.kind in _PER_TOPIC and not self._all_before(messages):
            messages = [each for each in messages if self._accepts(each)]
        if self._limit is not None:
            messages = messages[: self.wanted]
        self.count += len(messages)
        return messages

    def _all_before(self, messages: Sequence[ReceivedMessage]) -> bool:
        """Return whether all messages are from the only topic, and before its end. This is the common case."""
        part, last = messages[0].entry.consumer, messages[-1].entry
        end = self._ends.get(part)
        return (
            end is not None
            and len(self._consumer.parts) == 1
            and part in self._open
            and (last.ledger, last.entry) < end[:2]
        )

    def _accepts(self, message: ReceivedMessage) -> bool:
        part = message.entry.consumer
        if part not in self._open:
            return False
        here = message.id
        if self._until.kind is End.TIME:
            if message.publish_time >= self._until.number:
                self._open.discard(part)
                return False
            return True
        end = self._ends[part]
        if here[:2] < end[:2] or (here[:2] == end[:2] and -1 < here.batch_index < end.batch_index):
            return True
        self._open.discard(part)
        return here[:3] == end[:3] or (here[:2] == end[:2] and -1 in (end.batch_index, here.batch_index))

    def quiet(self, seconds: float) -> None:
        """Check after some seconds without messages whether the end is passed.

        The remaining messages may have been acknowledged elsewhere.
        """
        if self._until.kind is End.TIME and time.time_ns() // 1_000_000 < self._until.number:
            return
        for part in list(self._open):
            try:
                last, mark = part.last_id()
            except NotAllowed:  # a non-persistent topic
                continue
            end = self._ends.get(part, last)
            unknown = mark is None and seconds >= UNKNOWN_SECONDS
            if end.entry < 0 or _covers(mark, end) or (part.seen is not None and part.seen >= end[:2]) or unknown:
                self._open.discard(part)


def _covers(mark: MessageId | None, end: MessageId) -> bool:
    return mark is not None and mark[:2] >= end[:2] and (mark.batch_index < 0 or mark[:3] >= end[:3])
