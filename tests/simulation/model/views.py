"""The model's knowledge of the box, from the frames in both directions and the data given to the disk."""

from __future__ import annotations

from base64 import b64decode
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from mmh3 import hash as murmur3_32

from pulsarbox.broker.subscription.consumer import Consumer
from pulsarbox.broker.subscription.subscription import Subscription
from pulsarbox.protocol.batch import iterate_batch
from pulsarbox.protocol.metadata import parse_entry
from pulsarbox.protocol.PulsarApi_pb2 import MessageIdData, MessageMetadata
from pulsarbox.storage.cursor import ManagedCursor
from pulsarbox.storage.format import EntryFlag
from pulsarbox.storage.record import Entry, Position
from pulsarbox.storage.transactions import TxnId
from tests.simulation.box import BoxEnd

if TYPE_CHECKING:
    from tests.simulation.model.pledges import Pledge, TxnView

SHARED, KEY_SHARED = 1, 3
NOWHERE = Position(-1, -1)
"""Position in the receipt of a duplicate."""


def signed(word: int) -> int:
    """Convert an unsigned 64-bit integer to signed, as Java reads it."""
    return word - 2**64 if word >> 63 else word


def position_of(message_id: MessageIdData) -> Position:
    """Return the position of a message ID."""
    return Position(signed(message_id.ledgerId), signed(message_id.entryId))


class MessageKey(NamedTuple):
    """Identity of a message; clients write it into the payload."""

    topic: str
    producer: str
    session: int
    """Number of times that the producer had been opened, or had rewound to resend, before it sent this copy."""
    sequence: int

    def payload(self) -> bytes:
        """Encode the key as a payload."""
        return "|".join(map(str, self)).encode()


def message_key(payload: bytes) -> MessageKey:
    """Decode the key in a payload."""
    topic, producer, session, sequence = payload.decode().split("|")
    return MessageKey(topic, producer, int(session), int(sequence))


def message_keys(entry: bytes) -> list[MessageKey]:
    """Return the keys of all messages in an entry."""
    parsed = parse_entry(entry)
    body = entry[parsed.body_offset :]
    if parsed.metadata.HasField("num_messages_in_batch"):
        return [message_key(payload) for _, payload in iterate_batch(body, parsed.metadata.num_messages_in_batch)]
    return [message_key(body)]


def key_hash(metadata: MessageMetadata) -> int:
    """Return the Key_Shared hash: of the ordering key, else of the partition key, else of producer name and sequence
    ID.
    """
    if metadata.HasField("ordering_key"):
        key = metadata.ordering_key
    elif metadata.HasField("partition_key"):
        key = metadata.partition_key.encode()
        if metadata.partition_key_b64_encoded:
            key = b64decode(key)
    else:
        key = f"{metadata.producer_name}-{metadata.sequence_id}".encode()
    return murmur3_32(key, 0, False) & 0x7FFFFFFF


@dataclass(eq=False)
class EntryView:
    """A durable entry."""

    position: Position
    size: int
    keys: list[MessageKey]
    index: int
    """Index in its topic."""
    key_hash: int
    chunk_of: str
    """UUID of the chunked message; empty if the entry is no chunk."""
    chunk_id: int
    chunks: int
    """Number of chunks of its message; 0 if the entry is no chunk."""
    deliver_at: int
    """Delivery time (ms since 1970); 0: immediate."""
    late: bool
    """Whether the delivery time is later than the append time."""
    begins: int
    """Time from which it ages (ms since 1970)."""
    appended: int
    """Append time (ms since 1970)."""
    through: int
    """Size of all entries of its topic up to and including it, in bytes."""
    sent_again: bool = False
    """Whether an earlier entry is the same chunk."""
    txn: TxnId | None = None
    """The transaction of the entry."""

    @classmethod
    def of(cls, record: Entry, topic: TopicView) -> EntryView:
        """Return the view of the next entry of a topic."""
        before = topic.entries[topic.order[-1]].through if topic.order else 0
        metadata = parse_entry(record.body).metadata
        keys = message_keys(record.body)
        chunk_of = metadata.uuid if metadata.num_chunks_from_msg else ""
        return cls(
            record.position,
            len(record.body),
            keys,
            len(topic.order),
            key_hash(metadata),
            chunk_of,
            metadata.chunk_id,
            metadata.num_chunks_from_msg,
            record.deliver_at,
            record.deliver_at > record.append_time,
            min(record.publish_time, record.append_time),
            record.append_time,
            before + len(record.body),
            txn=TxnId(metadata.txnid_most_bits, metadata.txnid_least_bits)
            if record.flags & EntryFlag.TRANSACTION
            else None,
        )

    @property
    def all_bits(self) -> int:
        """A bit set for every message."""
        return (1 << len(self.keys)) - 1


@dataclass(eq=False)
class TopicView:
    """A topic: its durable entries in log order, and its subscriptions."""

    name: str
    entries: dict[Position, EntryView] = field(default_factory=dict)
    order: list[Position] = field(default_factory=list)
    subs: dict[str, SubView] = field(default_factory=dict)
    ledgers: dict[int, list[Position]] = field(default_factory=dict)
    """The entries of each ledger that is not trimmed."""
    trimmed: set[int] = field(default_factory=set)
    """Trimmed ledgers."""
    chunks: set[tuple[str, int]] = field(default_factory=set)
    """UUID and number of every durable chunk."""
    gone: set[int] = field(default_factory=set)
    """Trimmed ledgers whose deletion is durable."""
    core: object = None
    """The last loaded topic object."""
    seen: tuple[int, int, int] = (0, 0, 0)
    """Number of ledgers, first ledger ID, and current ledger ID when last checked."""
    rewound_at: float = 0.0
    """Time of the last subscription, seek, or load of the topic (monotonic)."""
    full_since: float = 0.0
    """Time since which its backlog has reached a quota; 0: below the quota."""
    free_since: float = 0.0
    """Time since which its backlog is below the quota while producers wait; 0: no producer waits."""
    removed: dict[str, SubView] = field(default_factory=dict)
    """Deleted subscriptions by name; a crash may restore them until the response."""

    def append(self, entry: EntryView) -> None:
        """Add a durable entry."""
        if entry.chunk_of:
            chunk = entry.chunk_of, entry.chunk_id
            entry.sent_again = chunk in self.chunks
            self.chunks.add(chunk)
        self.entries[entry.position] = entry
        self.order.append(entry.position)
        self.ledgers.setdefault(entry.position.ledger_id, []).append(entry.position)
        for sub in self.subs.values():
            sub.add(entry)


class Policy(NamedTuple):
    """The Key_Shared policy of a subscription's consumers."""

    sticky: bool = False
    out_of_order: bool = False


IN_ORDER = Policy()


@dataclass(eq=False)
class SubView:
    """A subscription and its acknowledgements."""

    topic: TopicView
    name: str
    cursor: ManagedCursor
    type: int = 0
    durable: bool = True
    answered: bool = False
    """Whether a client has received a successful response to SUBSCRIBE."""
    removal_answered: bool = False
    left: dict[Position, int] = field(default_factory=dict)
    """Unacknowledged entries, a bit per message."""
    messages: int = 0
    """Number of messages in ``left``, and the size of their entries in bytes."""
    bytes: int = 0
    sure: dict[Position, int] = field(default_factory=dict)
    """Messages with an acknowledgement response, a bit per message."""
    unsure: set[Position] = field(default_factory=set)
    """Entries whose acknowledgement is uncertain, because the core had to read first whether they exist."""
    owner: dict[Position, ConsumerView] = field(default_factory=dict)
    counts: dict[Position, int] = field(default_factory=dict)
    """Requested redeliveries."""
    asked: dict[Position, int] = field(default_factory=dict)
    """The same, including acknowledged entries: a crash may undo the acknowledgement."""
    fresh_counts: set[Position] = field(default_factory=set)
    """Entries whose redelivery count may not be durable yet."""
    sure_counts: dict[Position, int] = field(default_factory=dict)
    """Durable redelivery counts."""
    exact_counts: bool = True
    seeks: int = 0
    """Number of pending seeks."""
    rewound: bool = False
    """Whether mark-delete may have moved back since the last check."""
    policy: Policy = IN_ORDER
    """The Key_Shared policy of its consumers."""
    marked: Position | None = None
    """Mark-delete position at the last check of the box's own acknowledgements."""
    leaving: bool = False
    """Whether a client has requested its deletion."""
    idle_since: int = 2**63
    """Time since which it has no consumer (ms since 1970)."""
    seen: set[Position] = field(default_factory=set)
    """Entries delivered since the last cursor reset or start of the box."""
    newest: dict[int, Position] = field(default_factory=dict)
    """The last delivered entry of every key."""
    chunk_takers: dict[str, set[ConsumerView]] = field(default_factory=dict)
    """Consumers that have received chunks of a message."""
    reborn: set[Position] = field(default_factory=set)
    """Entries acknowledged in aborted transactions and not yet redelivered."""

    @property
    def side_by_side(self) -> bool:
        """Whether several consumers receive entries concurrently."""
        return self.type in (SHARED, KEY_SHARED)

    def of_type(self, sub_type: int, policy: Policy) -> None:
        """Set the subscription type and the Key_Shared policy of its consumers."""
        if (sub_type, policy) != (self.type, self.policy):
            self.forget_deliveries()
        self.type, self.policy = sub_type, policy

    def forget_deliveries(self) -> None:
        """Forget all deliveries because dispatch restarts."""
        self.seen.clear()
        self.newest.clear()
        self.chunk_takers.clear()

    def doubt_deliveries(self) -> None:
        """Drop ordering assumptions because dispatch may have restarted: any present entry may be a redelivery."""
        self.forget_deliveries()
        self.seen.update(self.topic.entries)

    def delivered(self, entry: EntryView, consumer: ConsumerView) -> None:
        """Record a delivery to a consumer."""
        if self.side_by_side:
            self.owner[entry.position] = consumer
        self.seen.add(entry.position)
        self.reborn.discard(entry.position)
        if not entry.deliver_at:
            self.newest[entry.key_hash] = max(entry.position, self.newest.get(entry.key_hash, entry.position))

    def count_again(self, position: Position) -> None:
        """Count a redelivery of an entry."""
        self.counts[position] = self.counts.get(position, 0) + 1
        self.asked[position] = max(self.counts[position], self.asked.get(position, 0))
        self.fresh_counts.add(position)

    def add(self, entry: EntryView) -> None:
        """Add a durable entry."""
        self.set(entry, entry.all_bits)

    def set(self, entry: EntryView, bits: int) -> None:
        """Set the unacknowledged messages of an entry."""
        before = self.left.pop(entry.position, 0)
        self.messages += bits.bit_count() - before.bit_count()
        self.bytes += entry.size * (bool(bits) - bool(before))
        if bits:
            self.left[entry.position] = bits

    def adopt(self) -> None:
        """Adopt the core's acknowledgement state."""
        cursor = self.cursor
        for position, entry in self.topic.entries.items():
            partly = cursor.batch_acks.get(position)
            bits = 0 if cursor.is_acked(*position) else partly[1] if partly is not None else entry.all_bits
            self.set(entry, bits)
            if not bits:
                self.owner.pop(position, None)
        self.adopt_counts()
        self.unsure.clear()
        self.marked = None

    def adopt_counts(self) -> None:
        """Adopt the core's redelivery counts."""
        self.counts = {Position(*position): count for position, count in self.cursor.redeliveries.items()}
        self.asked.update(self.counts)
        self.sure_counts.clear()
        self.fresh_counts = set(self.counts)

    def acked(self, position: Position) -> None:
        """Forget the state of an acknowledged entry."""
        self.owner.pop(position, None)
        self.counts.pop(position, None)
        self.sure_counts.pop(position, None)


@dataclass(eq=False)
class ConsumerView:
    """An open consumer."""

    conn: ConnView
    consumer_id: int
    sub: SubView
    permits: int = 0
    last: Position | None = None
    """The last delivered entry."""
    may_rewind: bool = False
    may_go_back: bool = False
    """Whether dispatch may restart because an aborted transaction had acknowledged entries."""
    open: bool = True

    @property
    def core(self) -> Consumer:
        """The core's consumer."""
        return self.conn.end.cnx.consumers[self.consumer_id]

    @property
    def subscription(self) -> Subscription:
        """The core's subscription."""
        subscription = self.core.subscription
        assert isinstance(subscription, Subscription)
        return subscription


@dataclass(eq=False)
class Pending:
    """A SEND without a response."""

    sequence_id: int
    keys: list[MessageKey]
    at: float = 0.0
    """Arrival time (monotonic)."""


@dataclass(eq=False)
class ProducerView:
    """An open producer."""

    conn: ConnView
    producer_id: int
    name: str
    topic: TopicView
    pending: deque[Pending] = field(default_factory=deque)
    """Messages without a response, oldest first."""
    sent_away: bool = False
    """Whether the broker has closed it and notified the client."""


@dataclass(eq=False)
class Request:
    """A request without a response."""

    kind: str
    at: float = 0.0
    """Arrival time (monotonic)."""
    topic: str = ""
    name: str = ""
    object_id: int = 0
    start: Position | None = None
    """For SUBSCRIBE: the first position to deliver; None: after all entries."""
    known: int = 0
    """For SUBSCRIBE: the number of durable entries on arrival."""
    type: int = 0
    policy: Policy = IN_ORDER
    durable: bool = True
    acks: list[tuple[Position, int]] = field(default_factory=list)
    """For ACK: the acknowledged messages."""
    sub: SubView | None = None
    held: bool = False
    """For PRODUCER: whether the producer is suspended."""
    given_up: bool = False
    """Whether its producer or consumer was closed meanwhile; an error is the response."""
    txn: TxnView | None = None
    """For ACK or END_TXN: the transaction."""
    pledge: Pledge | None = None
    """For ACK: its pledge in the transaction."""
    outcome: str = ""
    """For END_TXN: the requested outcome."""
    asked_at: str = ""
    """State of the transaction on arrival."""


@dataclass(eq=False)
class ConnView:
    """A connection."""

    end: BoxEnd
    producers: dict[int, ProducerView] = field(default_factory=dict)
    consumers: dict[int, ConsumerView] = field(default_factory=dict)
    closing: list[ProducerView] = field(default_factory=list)
    """Closed producers for which receipts may still arrive."""
    requests: dict[int, Request] = field(default_factory=dict)
    notices: dict[int, bool] = field(default_factory=dict)
    """The last active-consumer notification for each consumer."""
    aborted: bool = False
    heard: float = 0.0
    """Time of the last frame (monotonic)."""
