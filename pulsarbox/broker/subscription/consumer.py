"""Broker-side state of a consumer on one connection: permits, unacknowledged messages and delivery."""

from collections.abc import Callable, Iterable, Mapping
from itertools import repeat
from typing import Final, NamedTuple, Protocol

from pulsarbox.broker.connection.outbox import Outbox
from pulsarbox.broker.connection.served_connection import ServedConnection
from pulsarbox.broker.dispatch.selectors.key_shared_meta import KeySharedMeta
from pulsarbox.broker.stats.rate_window import RateWindow
from pulsarbox.broker.topic.producer import NO_REQUEST
from pulsarbox.clock import Now
from pulsarbox.names import TopicName
from pulsarbox.protocol import replies
from pulsarbox.protocol.ack_sets import words_of
from pulsarbox.protocol.features import supports_end_of_topic
from pulsarbox.protocol.message_frame import DeliveryEncoder
from pulsarbox.protocol.PulsarApi_pb2 import CommandSubscribe
from pulsarbox.storage.entry_map import EntryMap
from pulsarbox.storage.format import EntryFlag
from pulsarbox.storage.record import Entry
from pulsarbox.storage.transaction_acks import ClaimedSets

CHUNK: Final = EntryFlag.CHUNK
NO_SLOT: Final = 0
"""Slot of an entry outside Key_Shared subscriptions; slots of keys start at 1."""


class HeldEntry(NamedTuple):
    """Metadata of an entry that its acknowledgement needs."""

    messages: int
    """Messages of the entry that were unacknowledged when it was sent."""
    size: int
    total_messages: int
    total_bytes: int
    batch_size: int
    """Messages in the entry."""
    slot: int = NO_SLOT
    """Slot of its key in a Key_Shared subscription."""


new_held: Final = tuple.__new__
"""Used for each dispatched entry: a NamedTuple's own constructor takes three times as long."""


def held_of(entry: Entry) -> HeldEntry:
    """Return the metadata that the acknowledgement of an entry needs."""
    messages = entry.num_messages
    return HeldEntry(messages, len(entry.body), entry.total_messages, entry.total_bytes, messages)


class Rates(NamedTuple):
    """Rates of a consumer, or of all consumers of a subscription; each per second."""

    messages_out: float
    bytes_out: float
    given_back: float
    """Messages returned for redelivery."""
    acknowledged: float
    """Messages acknowledged."""
    entries_out: float
    chunks_out: float
    """Entries that are chunks of larger messages."""


BodyOf = Callable[[Entry], bytes]


class ConsumerConnection(ServedConnection, Protocol):
    """The connection of a consumer."""

    body_of: BodyOf | None
    """Adds broker entry metadata for clients that support it."""

    def consumer_closed(self, consumer: "Consumer", now: Now) -> None:
        """Remove a consumer that the broker has closed."""


class AnySubscription(Protocol):
    """A persistent or non-persistent subscription, as used by connections and the Admin API."""

    name: str
    consumers: list["Consumer"]
    type: CommandSubscribe.SubType
    removed: tuple[int, int]
    """Messages and bytes sent to consumers that have since been removed."""
    replicated: bool
    """Whether clients asked for its position to be replicated."""

    @property
    def topic_name(self) -> TopicName:
        """The name of its topic."""

    @property
    def durable(self) -> bool:
        """Whether the subscription outlives its consumers."""

    @property
    def active_consumer(self) -> "Consumer | None":
        """The active consumer of an Exclusive or Failover subscription."""

    @property
    def key_ranges(self) -> "dict[Consumer, list[tuple[int, int]]]":
        """The hash slots of each consumer of a Key_Shared subscription."""

    def flow(self, consumer: "Consumer", permits: int, now: Now) -> None:
        """Add permits of a consumer."""

    def dispatch(self, now: Now) -> None:
        """Dispatch the available messages."""

    def remove_consumer(self, consumer: "Consumer", now: Now, *, lost: bool = False) -> None:
        """Remove a consumer. ``lost``: its connection broke instead of it being closed."""

    def unsubscribe(self, consumer: "Consumer", force: bool, now: Now) -> None:
        """Delete the subscription on request of one of its consumers."""

    def close(self, now: Now, asked_by: "Consumer | None" = None) -> None:
        """Disconnect all consumers."""


class Consumer:
    """A consumer of one subscription."""

    # As in ManagedLedger.
    __slots__ = (
        "_end_notified",
        "_header",
        "_meter",
        "blocked",
        "bytes_out",
        "chunks_out",
        "closed",
        "cnx",
        "connected_since",
        "consumer_id",
        "counted",
        "entries_out",
        "epoch",
        "first_flow",
        "first_sent",
        "forgotten",
        "given_back",
        "held",
        "key_shared",
        "last_acked",
        "last_flow",
        "last_sent",
        "messages_out",
        "metadata",
        "name",
        "outbox",
        "permits",
        "priority_level",
        "read_compacted",
        "released",
        "subscription",
        "takes_any_schema",
        "unacked",
    )  # fmt: skip

    def __init__(
        self,
        cnx: ConsumerConnection,
        consumer_id: int,
        name: str,
        subscription: AnySubscription,
        *,
        partition: int,
        priority_level: int,
        epoch: int | None,
        now: Now,
    ) -> None:
        self.cnx = cnx
        self.outbox: Outbox = cnx.outbox
        self.consumer_id = consumer_id
        self.name = name
        self.subscription = subscription
        self.priority_level = priority_level
        self.epoch = epoch
        """The highest consumer epoch sent by its client, if it uses epochs; attached to every message."""
        self.key_shared = KeySharedMeta()
        """Its Key_Shared mode and options; set before it is added to a Key_Shared subscription."""
        self.permits = 0
        """Messages that may be sent; negative after a batch larger than the permits."""
        self.held: dict[tuple[int, int], HeldEntry] = {}
        """Sent and unacknowledged entries by position, in the order of sending."""
        self.unacked = 0
        """Messages in ``held``."""
        self.counted = 0
        """The part of ``unacked`` counted against the subscription's limits."""
        self.released: Callable[[Consumer, HeldEntry], None] | None = None
        """Called for every entry removed by ``release``."""
        self.blocked = False
        """Whether dispatch is blocked by too many unacknowledged messages."""
        self.closed = False
        self._end_notified = False
        """Whether the end of the topic was sent to its client."""
        self.connected_since = now.wall
        # Reads the compacted view of the topic; decodes by each message's own schema (AUTO_CONSUME).
        self.read_compacted = self.takes_any_schema = False
        self.metadata: dict[str, str] = {}
        """Metadata set by the client."""
        self.messages_out = self.entries_out = self.bytes_out = self.chunks_out = 0
        """Sent so far; bytes are those of the entries, without the frame headers."""
        self.given_back = 0
        """Messages returned for redelivery, on the client's request or because the cursor was reset."""
        self.forgotten = 0
        """Messages removed from ``held`` without an acknowledgement of the consumer (expired, skipped, over the limit),
        less those acknowledged without being held."""
        self.first_sent = 0
        """When the first message was sent to it; here and below: ms since 1970, 0 for never."""
        self.last_sent = 0
        self.first_flow = 0
        """When the client first sent permits."""
        self.last_flow = 0
        self.last_acked = 0
        self._meter = RateWindow(now.monotonic, len(Rates._fields))
        self._header = DeliveryEncoder(consumer_id, partition).header

    def __str__(self) -> str:
        """Return Pulsar's description of a consumer in errors."""
        return (
            f"Consumer{{subscription={self.subscription}, consumerId={self.consumer_id}, consumerName={self.name}, "
            f"address={self.cnx.address}}}"
        )

    def deliver(
        self,
        entries: list[Entry],
        ack_sets: "Mapping[tuple[int, int], tuple[int, int]] | EntryMap[tuple[int, int]] | ClaimedSets",
        redelivered: Mapping[tuple[int, int], int],
        body_of: BodyOf | None = None,
        slots: Iterable[int] = repeat(NO_SLOT),
    ) -> None:
        """Send entries to the client.

        ``ack_sets``: the cursor's partly acknowledged batches; ``redelivered``: redelivery counts; ``body_of`` adds
        broker entry metadata if the client wants it; ``slots``: the slots of the entries' keys.
        """
        header, held, epoch = self._header, self.held, self.epoch
        plain = not ack_sets and not redelivered and epoch is None
        parts: list[bytes] = []
        size = heads = sent = 0
        for entry, slot in zip(entries, slots, strict=False):
            (ledger_id, entry_id, flags, messages, total_messages, total_bytes, *_, body) = entry
            stored = len(body)
            if flags & CHUNK:
                self.chunks_out += 1
            if body_of is not None:
                body = body_of(entry)
            position = (ledger_id, entry_id)
            unacked = messages
            if plain:
                head = header(ledger_id, entry_id, len(body))
            else:
                partly = ack_sets.get(position) if ack_sets else None
                words: tuple[int, ...] = ()
                if partly is not None:
                    unacked = partly[1].bit_count()
                    words = words_of(partly[1])
                head = header(ledger_id, entry_id, len(body), redelivered.get(position, 0), words, epoch)
            held[position] = new_held(HeldEntry, (unacked, stored, total_messages, total_bytes, messages, slot))
            parts.append(head)
            parts.append(body)
            size += len(body)
            heads += len(head)
            sent += unacked
        self.permits -= sent
        self.unacked += sent
        self.messages_out += sent
        self.entries_out += len(entries)
        self.bytes_out += size
        self.outbox.send_parts(parts, size + heads)

    def release(self, position: tuple[int, int]) -> HeldEntry | None:
        """Remove an entry from ``held``; return its metadata, None if it was not held."""
        held = self.held.pop(position, None)
        if held is not None:
            self.unacked -= held.messages
            if self.released is not None:
                self.released(self, held)
        return held

    def release_all(self) -> dict[tuple[int, int], HeldEntry]:
        """Empty ``held`` for redelivery; return its entries."""
        held, self.held = self.held, {}
        self.given_back += self.unacked
        self.unacked = 0
        return held

    def raise_epoch(self, epoch: int) -> None:
        """Raise the consumer epoch on a redelivery request; the client drops messages of lower epochs."""
        if self.epoch is None or epoch > self.epoch:
            self.epoch = epoch

    def sent(self, now: Now) -> None:
        """Record the time of a delivery."""
        self.last_sent = now.wall
        if not self.first_sent:
            self.first_sent = now.wall

    def add_permits(self, permits: int, now: Now) -> None:
        """Add permits sent by the client."""
        self.permits += permits
        self.last_flow = now.wall
        if not self.first_flow:
            self.first_flow = now.wall

    def notify_end_of_topic(self) -> None:
        """Notify the client, once, that it reached the end of the topic, if its version supports that."""
        cnx = self.cnx
        if not self._end_notified and supports_end_of_topic(cnx.client_version, cnx.protocol_version):
            self._end_notified = True
            self.outbox.send(replies.reached_end_of_topic(self.consumer_id))

    def added_to(self, totals: tuple[int, int]) -> tuple[int, int]:
        """Return totals of messages and bytes plus those sent to this consumer."""
        return totals[0] + self.messages_out, totals[1] + self.bytes_out

    @property
    def counters(self) -> tuple[int, int, int, int, int, int]:
        """The counters from which ``Rates`` are computed."""
        acknowledged = self.messages_out - self.unacked - self.given_back - self.forgotten
        return self.messages_out, self.bytes_out, self.given_back, acknowledged, self.entries_out, self.chunks_out

    def sample(self, now: Now) -> None:
        """See RateWindow.sample."""
        self._meter.sample(self.counters, now)

    def rates(self, now: Now) -> "Rates":
        """Return the current rates."""
        return Rates(*self._meter.rates(self.counters, now))

    @property
    def ready(self) -> bool:
        """Whether messages can be sent to it now."""
        return self.permits > 0 and not self.blocked and not self.outbox.full and not self.closed

    def disconnect(self, now: Now, *, tell: bool = True) -> None:
        """Close the consumer on the broker's initiative; with ``tell``, CLOSE_CONSUMER makes its client reconnect."""
        if not self.closed:
            self.closed = True
            self.cnx.consumer_closed(self, now)
            if tell:
                self.outbox.send(replies.close_consumer(self.consumer_id, NO_REQUEST))
