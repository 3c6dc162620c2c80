"""Dead letters as the disk has them: an entry that says where it comes from, and behind it what it acknowledges."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from pulsarbox.broker.replay.entry_messages import REPLAY_JOB
from pulsarbox.protocol.batch import iterate_batch
from pulsarbox.protocol.metadata import key_values, parse_entry
from pulsarbox.storage.format import MOVED
from pulsarbox.storage.record import Acked, BatchAcked, Entry, Position, Record
from tests.simulation.views import MessageKey, SubView, message_keys

TOPIC_SUFFIX = "-graves"
"""Of the topics that dead letters go to, so that no client comes there by itself."""


def grave_of(topic: str) -> str:
    """The dead letter topic of a topic, or of a partition, which it is not called like."""
    return topic.replace("-partition-", "-") + TOPIC_SUFFIX


RISEN_SUFFIX = "-risen"
"""Of the topics that jobs put those into that were in the others."""


class Letter(NamedTuple):
    """One of them."""

    at: Position
    """Where it is in the dead letter topic."""
    keys: list[MessageKey]
    source: str
    subscription: str
    redeliveries: int
    cursor_id: int = 0
    origin: Position = Position(-1, -1)

    @property
    def risen(self) -> bool:
        """A job has put it back."""
        return not self.source


def letter_of(entry: Entry) -> Letter | None:
    """An entry as a dead letter; None where it is none."""
    parsed = parse_entry(entry.body)
    properties = parsed.metadata.properties
    count = parsed.metadata.num_messages_in_batch
    if parsed.metadata.HasField("num_messages_in_batch"):
        properties = next(iterate_batch(entry.body[parsed.body_offset :], count))[0].properties
    told = key_values(properties)
    if REPLAY_JOB in told:
        return Letter(entry.position, message_keys(entry.body), "", "", 0)
    if "DEAD_LETTER_REASON" not in told:
        return None
    source, subscription, times = (
        told[name] for name in ("REAL_TOPIC", "REAL_SUBSCRIPTION", "DEAD_LETTER_REDELIVERIES")
    )
    return Letter(entry.position, message_keys(entry.body), source, subscription, int(times))


class Letters:
    """Reads the records of batches, one after another. What jobs put back is told apart by its mark."""

    def __init__(self) -> None:
        self.pending: Letter | None = None
        """Stored, and what it acknowledges comes next."""
        self.graves: dict[str, dict[Position, list[MessageKey]]] = {}
        """All that was moved, by the topic it went to."""
        self.risen: dict[str, list[MessageKey]] = {}
        """All that jobs have put back, by the topic it went to."""

    def rises(self, record: Record) -> bool:
        """Whether a record is an entry that a job has put back."""
        letter = letter_of(record) if isinstance(record, Entry) else None
        if letter is None or not letter.risen:
            return False
        topic = grave_of(letter.keys[0].topic) + RISEN_SUFFIX
        self.risen.setdefault(topic, []).extend(letter.keys)
        return True

    def put_back(self, record: Record, flags: int, subs: Callable[[], list[SubView]]) -> None:
        """What a job has acknowledged is durable."""
        back = self.back(record, flags)
        if back is None:
            return
        cursor_id, position, left = back
        sub = next((each for each in subs() if each.cursor.cursor_id == cursor_id), None)
        entry = None if sub is None else sub.topic.entries.get(position)
        if sub is not None and entry is not None:
            sub.set(entry, left)
            if not left:
                sub.acked(position)
                sub.sure[position] = entry.all_bits

    def back(self, record: Record, flags: int) -> tuple[int, Position, int] | None:
        """What a job has acknowledged with what it has put back: the cursor, the entry, what is left of it."""
        if self.pending is not None or not flags & MOVED:
            return None
        if isinstance(record, Acked):
            (acked,) = record.ranges
            return record.cursor_id, Position(acked.ledger_id, acked.first), 0
        return (record.cursor_id, record.position, record.ack_set) if isinstance(record, BatchAcked) else None

    def read(self, record: Record, flags: int) -> Letter | None:
        """The letter that this record makes whole."""
        if isinstance(record, Entry):
            self.pending = letter_of(record)
        elif isinstance(record, Acked) and flags & MOVED:
            if self.pending is None:
                return None  # a job has put it back: ``back`` knows it
            (acked,) = record.ranges
            origin = Position(acked.ledger_id, acked.first)
            letter = self.pending._replace(cursor_id=record.cursor_id, origin=origin)
            self.pending = None
            self.graves.setdefault(grave_of(letter.source), {})[letter.at] = letter.keys
            return letter
        return None
