"""What the model knows of the box: made only from the frames that go in and out, and from what the disk was given."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

from pulsarbox.protocol.batch import iterate_batch
from pulsarbox.protocol.metadata import parse_entry
from pulsarbox.storage.cursor import ManagedCursor
from pulsarbox.storage.record import Position
from tests.simulation.box import BoxEnd

SHARED = 1
NOWHERE = Position(-1, -1)
"""Where the receipt of a duplicate says it is."""


class MessageKey(NamedTuple):
    """Which message it is: clients write it into the payload."""

    topic: str
    producer: str
    session: int
    """How often the producer had been opened when it sent this copy."""
    sequence: int

    def payload(self) -> bytes:
        """As bytes."""
        return "|".join(map(str, self)).encode()


def message_key(payload: bytes) -> MessageKey:
    """The message with this payload."""
    topic, producer, session, sequence = payload.decode().split("|")
    return MessageKey(topic, producer, int(session), int(sequence))


def message_keys(entry: bytes) -> list[MessageKey]:
    """The messages of an entry."""
    parsed = parse_entry(entry)
    body = entry[parsed.body_offset :]
    if parsed.metadata.HasField("num_messages_in_batch"):
        return [message_key(payload) for _, payload in iterate_batch(body, parsed.metadata.num_messages_in_batch)]
    return [message_key(body)]


@dataclass(eq=False)
class EntryView:
    """A durable entry."""

    position: Position
    size: int
    keys: list[MessageKey]
    index: int
    """In the order of its topic."""

    @property
    def all_bits(self) -> int:
        """A bit for every message."""
        return (1 << len(self.keys)) - 1


@dataclass(eq=False)
class TopicView:
    """A topic: its durable entries in the order of the log, and its subscriptions."""

    name: str
    entries: dict[Position, EntryView] = field(default_factory=dict)
    order: list[Position] = field(default_factory=list)
    subs: dict[str, SubView] = field(default_factory=dict)
    ledgers: dict[int, list[Position]] = field(default_factory=dict)
    """The entries of each ledger that is not trimmed."""
    trimmed: set[int] = field(default_factory=set)
    """Ledgers that are no more."""
    gone: set[int] = field(default_factory=set)
    """Those of them whose end is durable."""
    core: object = None
    """The topic in memory that was seen last."""
    seen: tuple[int, int] = (0, 0)
    """How many ledgers it had, and the first."""
    removed: dict[str, SubView] = field(default_factory=dict)
    """Unsubscribed, by name; they may come back with a crash until that is answered."""


@dataclass(eq=False)
class SubView:
    """A subscription and what it has acknowledged."""

    topic: TopicView
    name: str
    cursor: ManagedCursor
    type: int = 0
    durable: bool = True
    answered: bool = False
    """A client was told that it exists."""
    removal_answered: bool = False
    left: dict[Position, int] = field(default_factory=dict)
    """What is not acknowledged: a bit for each message."""
    messages: int = 0
    """Messages, and bytes of the entries, in ``left``."""
    bytes: int = 0
    sure: dict[Position, int] = field(default_factory=dict)
    """Messages whose acknowledgement was answered: a bit for each."""
    unsure: set[Position] = field(default_factory=set)
    """Acknowledged while the core had to read first whether they exist: it may be done or not."""
    owner: dict[Position, ConsumerView] = field(default_factory=dict)
    counts: dict[Position, int] = field(default_factory=dict)
    """Redeliveries asked for."""
    asked: dict[Position, int] = field(default_factory=dict)
    """The same, of what is acknowledged as well: a crash may bring it back."""
    fresh_counts: set[Position] = field(default_factory=set)
    """Where that number may not be durable yet."""
    sure_counts: dict[Position, int] = field(default_factory=dict)
    """Redeliveries that are durable."""
    exact_counts: bool = True
    seeks: int = 0
    """Seeks that are not answered."""
    rewound: bool = False
    """Mark-delete may have gone back since it was last looked at."""

    def add(self, entry: EntryView) -> None:
        """An entry became durable."""
        self.set(entry, entry.all_bits)

    def set(self, entry: EntryView, bits: int) -> None:
        """Of an entry these messages are not acknowledged."""
        before = self.left.pop(entry.position, 0)
        self.messages += bits.bit_count() - before.bit_count()
        self.bytes += entry.size * (bool(bits) - bool(before))
        if bits:
            self.left[entry.position] = bits

    def adopt(self) -> None:
        """Take over what the core says."""
        cursor = self.cursor
        for position, entry in self.topic.entries.items():
            partly = cursor.batch_acks.get(position)
            bits = 0 if cursor.is_acked(*position) else partly[1] if partly is not None else entry.all_bits
            self.set(entry, bits)
            if not bits:
                self.owner.pop(position, None)
        self.adopt_counts()
        self.unsure.clear()

    def adopt_counts(self) -> None:
        """Take over the redelivery counts that the core has."""
        self.counts = {Position(*position): count for position, count in self.cursor.redeliveries.items()}
        self.asked.update(self.counts)
        self.sure_counts.clear()
        self.fresh_counts = set(self.counts)

    def acked(self, position: Position) -> None:
        """Nothing need be known of it any more."""
        self.owner.pop(position, None)
        self.counts.pop(position, None)
        self.sure_counts.pop(position, None)


@dataclass(eq=False)
class ConsumerView:
    """A consumer that is open."""

    conn: ConnView
    consumer_id: int
    sub: SubView
    permits: int = 0
    last: Position | None = None
    """The entry delivered last."""
    may_rewind: bool = False
    open: bool = True


@dataclass(eq=False)
class Pending:
    """A SEND that is not answered."""

    sequence_id: int
    keys: list[MessageKey]


@dataclass(eq=False)
class ProducerView:
    """A producer that is open."""

    conn: ConnView
    producer_id: int
    name: str
    topic: TopicView
    pending: deque[Pending] = field(default_factory=deque)
    """What was sent and is not answered, oldest first."""


@dataclass(eq=False)
class Request:
    """A request that is not answered."""

    kind: str
    topic: str = ""
    name: str = ""
    object_id: int = 0
    start: Position | None = None
    """Of a SUBSCRIBE: the first position it is to get, None for behind everything."""
    known: int = 0
    """Of a SUBSCRIBE: the entries that were durable when it came."""
    type: int = 0
    durable: bool = True
    acks: list[tuple[Position, int]] = field(default_factory=list)
    """Of an ACK: the messages it names."""
    sub: SubView | None = None
    given_up: bool = False
    """Its object was closed meanwhile: it need not be answered."""


@dataclass(eq=False)
class ConnView:
    """A connection."""

    end: BoxEnd
    producers: dict[int, ProducerView] = field(default_factory=dict)
    consumers: dict[int, ConsumerView] = field(default_factory=dict)
    closing: list[ProducerView] = field(default_factory=list)
    """Closed ones, of which receipts may still come."""
    requests: dict[int, Request] = field(default_factory=dict)
    aborted: bool = False
    heard: float = 0.0
    """When a frame came, on the monotonic clock."""
