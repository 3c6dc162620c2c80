"""What the model knows of the box: made only from the frames that go in and out, and from what the disk was given."""

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
    from tests.simulation.pledges import Pledge, TxnView

SHARED, KEY_SHARED = 1, 3
NOWHERE = Position(-1, -1)
"""Where the receipt of a duplicate says it is."""


def signed(word: int) -> int:
    """Unsigned 64 bits as Java reads them."""
    return word - 2**64 if word >> 63 else word


def position_of(message_id: MessageIdData) -> Position:
    """The entry of a message id."""
    return Position(signed(message_id.ledgerId), signed(message_id.entryId))


class MessageKey(NamedTuple):
    """Which message it is: clients write it into the payload."""

    topic: str
    producer: str
    session: int
    """How often the producer had been opened, or had gone back to send something again, when it sent this copy."""
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


def key_hash(metadata: MessageMetadata) -> int:
    """The hash by which Key_Shared shares entries out: of the ordering key, else of the partition key, else of what the
    producer calls the entry."""
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
    """In the order of its topic."""
    key_hash: int
    chunk_of: str
    """The message of which it is a chunk; empty where it is none."""
    chunk_id: int
    chunks: int
    """How many its message has; 0 where it is none."""
    deliver_at: int
    """When it is to be delivered (ms since 1970); 0: at once."""
    late: bool
    """That is later than it was published."""
    begins: int
    """From when on it gets old (ms since 1970)."""
    appended: int
    """When it was appended (ms since 1970)."""
    through: int
    """Bytes of all entries of its topic, up to its end."""
    sent_again: bool = False
    """An earlier entry is the same chunk."""
    txn: TxnId | None = None
    """The transaction that it is of."""

    @classmethod
    def of(cls, record: Entry, topic: TopicView) -> EntryView:
        """What is known of the next entry of a topic."""
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
    chunks: set[tuple[str, int]] = field(default_factory=set)
    """The messages that came in chunks, and the numbers of these."""
    gone: set[int] = field(default_factory=set)
    """Those of them whose end is durable."""
    core: object = None
    """The topic in memory that was seen last."""
    seen: tuple[int, int, int] = (0, 0, 0)
    """How many ledgers it had, and the first."""
    rewound_at: float = 0.0
    """When a subscription came or was set back, or the topic came into memory (monotonic)."""
    full_since: float = 0.0
    """Since when its backlog has reached a quota; 0: it has not."""
    free_since: float = 0.0
    """Since when it has not, while producers wait; 0: none do."""
    removed: dict[str, SubView] = field(default_factory=dict)
    """Unsubscribed, by name; they may come back with a crash until that is answered."""

    def append(self, entry: EntryView) -> None:
        """An entry became durable."""
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
    """What consumers of a Key_Shared subscription agree on."""

    sticky: bool = False
    out_of_order: bool = False


IN_ORDER = Policy()


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
    policy: Policy = IN_ORDER
    """Of its consumers, where it is a Key_Shared one."""
    marked: Position | None = None
    """Where mark-delete was when it was looked at what the box acknowledges by itself."""
    leaving: bool = False
    """Somebody has asked that it be deleted."""
    idle_since: int = 2**63
    """When its last consumer went (ms since 1970)."""
    seen: set[Position] = field(default_factory=set)
    """Delivered since the cursor was reset, or the box started."""
    newest: dict[int, Position] = field(default_factory=dict)
    """Of these the last one of every key."""
    chunk_takers: dict[str, set[ConsumerView]] = field(default_factory=dict)
    """Who got chunks of a message."""
    reborn: set[Position] = field(default_factory=set)
    """What transactions that were aborted had acknowledged, until it is delivered."""

    @property
    def side_by_side(self) -> bool:
        """Whether several consumers take entries at a time."""
        return self.type in (SHARED, KEY_SHARED)

    def of_type(self, sub_type: int, policy: Policy) -> None:
        """Its consumers are of this type."""
        if (sub_type, policy) != (self.type, self.policy):
            self.forget_deliveries()
        self.type, self.policy = sub_type, policy

    def forget_deliveries(self) -> None:
        """It starts again: nothing follows from what was delivered so far."""
        self.seen.clear()
        self.newest.clear()
        self.chunk_takers.clear()

    def doubt_deliveries(self) -> None:
        """It may have started again: of nothing that is there can be said that it is delivered for the first time."""
        self.forget_deliveries()
        self.seen.update(self.topic.entries)

    def delivered(self, entry: EntryView, consumer: ConsumerView) -> None:
        """An entry went to a consumer."""
        if self.side_by_side:
            self.owner[entry.position] = consumer
        self.seen.add(entry.position)
        self.reborn.discard(entry.position)
        if not entry.deliver_at:
            self.newest[entry.key_hash] = max(entry.position, self.newest.get(entry.key_hash, entry.position))

    def count_again(self, position: Position) -> None:
        """An entry is to be delivered again, and that counts."""
        self.counts[position] = self.counts.get(position, 0) + 1
        self.asked[position] = max(self.counts[position], self.asked.get(position, 0))
        self.fresh_counts.add(position)

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
        self.marked = None

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
    may_go_back: bool = False
    """A transaction was aborted that had acknowledged something: maybe it starts again."""
    open: bool = True

    @property
    def core(self) -> Consumer:
        """The box's own."""
        return self.conn.end.cnx.consumers[self.consumer_id]

    @property
    def subscription(self) -> Subscription:
        """The box's own."""
        subscription = self.core.subscription
        assert isinstance(subscription, Subscription)
        return subscription


@dataclass(eq=False)
class Pending:
    """A SEND that is not answered."""

    sequence_id: int
    keys: list[MessageKey]
    at: float = 0.0
    """When it came (monotonic)."""


@dataclass(eq=False)
class ProducerView:
    """A producer that is open."""

    conn: ConnView
    producer_id: int
    name: str
    topic: TopicView
    pending: deque[Pending] = field(default_factory=deque)
    """What was sent and is not answered, oldest first."""
    sent_away: bool = False
    """The broker closed it, and told the client."""


@dataclass(eq=False)
class Request:
    """A request that is not answered."""

    kind: str
    at: float = 0.0
    """When it came (monotonic)."""
    topic: str = ""
    name: str = ""
    object_id: int = 0
    start: Position | None = None
    """Of a SUBSCRIBE: the first position it is to get, None for behind everything."""
    known: int = 0
    """Of a SUBSCRIBE: the entries that were durable when it came."""
    type: int = 0
    policy: Policy = IN_ORDER
    durable: bool = True
    acks: list[tuple[Position, int]] = field(default_factory=list)
    """Of an ACK: the messages it names."""
    sub: SubView | None = None
    held: bool = False
    """Of a PRODUCER: it was told to wait."""
    given_up: bool = False
    """Its object was closed meanwhile: the reply is an error."""
    txn: TxnView | None = None
    """Of an ACK or END_TXN: the transaction."""
    pledge: Pledge | None = None
    """What the ACK names in it."""
    outcome: str = ""
    """What the END_TXN asks for."""
    asked_at: str = ""
    """The state of the transaction when it came."""


@dataclass(eq=False)
class ConnView:
    """A connection."""

    end: BoxEnd
    producers: dict[int, ProducerView] = field(default_factory=dict)
    consumers: dict[int, ConsumerView] = field(default_factory=dict)
    closing: list[ProducerView] = field(default_factory=list)
    """Closed ones, of which receipts may still come."""
    requests: dict[int, Request] = field(default_factory=dict)
    notices: dict[int, bool] = field(default_factory=dict)
    """Whether a consumer was last told that it is the active one."""
    aborted: bool = False
    heard: float = 0.0
    """When a frame came, on the monotonic clock."""
