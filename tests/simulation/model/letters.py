"""Dead letters on disk: an entry that names its origin, followed by the acknowledgement of the original."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from pulsarbox.protocol.batch import iterate_batch
from pulsarbox.protocol.dead_letters.properties import REPLAY_JOB
from pulsarbox.protocol.metadata import key_values, parse_entry
from pulsarbox.storage.format import MOVED
from pulsarbox.storage.record import Acked, BatchAcked, Entry, Position, Record
from tests.simulation.model.views import MessageKey, SubView, message_keys

TOPIC_SUFFIX = "-graves"
"""Suffix of the dead letter topics; no client uses these topics by itself."""


def grave_of(topic: str) -> str:
    """Return the dead letter topic of a topic or partition; its name has no partition suffix."""
    return topic.replace("-partition-", "-") + TOPIC_SUFFIX


RISEN_SUFFIX = "-risen"
"""Suffix of the topics that receive the messages replayed by dead letter jobs."""


class Letter(NamedTuple):
    """A dead letter, or a message replayed by a dead letter job."""

    at: Position
    """Its position in the dead letter topic."""
    keys: list[MessageKey]
    source: str
    subscription: str
    redeliveries: int
    cursor_id: int = 0
    origin: Position = Position(-1, -1)

    @property
    def risen(self) -> bool:
        """Whether a job has replayed this message."""
        return not self.source


def letter_of(entry: Entry) -> Letter | None:
    """Parse an entry as a dead letter; return None for any other entry."""
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
    """A reader of the records of consecutive batches. A property of the message identifies replayed messages."""

    def __init__(self) -> None:
        self.pending: Letter | None = None
        """A stored dead letter; the next record acknowledges the original."""
        self.graves: dict[str, dict[Position, list[MessageKey]]] = {}
        """All moved messages by dead letter topic."""
        self.risen: dict[str, list[MessageKey]] = {}
        """All messages replayed by jobs, by target topic."""

    def rises(self, record: Record) -> bool:
        """Return whether a record is an entry replayed by a job, and record its messages."""
        letter = letter_of(record) if isinstance(record, Entry) else None
        if letter is None or not letter.risen:
            return False
        topic = grave_of(letter.keys[0].topic) + RISEN_SUFFIX
        self.risen.setdefault(topic, []).extend(letter.keys)
        return True

    def put_back(self, record: Record, flags: int, subs: Callable[[], list[SubView]]) -> None:
        """Apply the durable acknowledgement of a replayed dead letter."""
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
        """Return the acknowledgement of a replayed dead letter: cursor ID, entry position, and unacknowledged bits."""
        if self.pending is not None or not flags & MOVED:
            return None
        if isinstance(record, Acked):
            (acked,) = record.ranges
            return record.cursor_id, Position(acked.ledger_id, acked.first), 0
        return (record.cursor_id, record.position, record.ack_set) if isinstance(record, BatchAcked) else None

    def read(self, record: Record, flags: int) -> Letter | None:
        """Return the dead letter that this record completes, or None."""
        if isinstance(record, Entry):
            self.pending = letter_of(record)
        elif isinstance(record, Acked) and flags & MOVED:
            if self.pending is None:
                return None  # replayed by a job: see ``back``
            (acked,) = record.ranges
            origin = Position(acked.ledger_id, acked.first)
            letter = self.pending._replace(cursor_id=record.cursor_id, origin=origin)
            self.pending = None
            self.graves.setdefault(grave_of(letter.source), {})[letter.at] = letter.keys
            return letter
        return None
