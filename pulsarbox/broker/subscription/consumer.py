"""One consumer on one connection, as the broker sees it: permits, what it holds unacknowledged, how it is sent to."""

from collections.abc import Callable, Iterable, Mapping
from itertools import repeat
from typing import TYPE_CHECKING, Final, NamedTuple

from pulsarbox.broker.dispatch.selectors.key_shared_meta import KeySharedMeta
from pulsarbox.broker.outbox import Outbox
from pulsarbox.broker.stats.rate_window import Meter
from pulsarbox.broker.topic.producer import NO_REQUEST
from pulsarbox.clock import Now
from pulsarbox.protocol import replies
from pulsarbox.protocol.ack_sets import words_of
from pulsarbox.protocol.features import takes_end_of_topic
from pulsarbox.protocol.message_frame import DeliveryEncoder
from pulsarbox.storage.entry_map import EntryMap
from pulsarbox.storage.format import EntryFlag
from pulsarbox.storage.record import Entry
from pulsarbox.storage.transaction_acks import ClaimedSets

if TYPE_CHECKING:
    from pulsarbox.broker.cnx import ServerCnx
    from pulsarbox.broker.subscription.interface import AnySubscription

CHUNK: Final = EntryFlag.CHUNK
NO_SLOT: Final = 0
"""Stands for the slot of an entry where keys decide nothing; slots of keys begin with 1."""


class Held(NamedTuple):
    """What an acknowledgement needs to know of an entry, without its bytes."""

    messages: int
    """Messages of the entry that were not yet acknowledged when it was sent."""
    size: int
    total_messages: int
    total_bytes: int
    batch_size: int
    """Messages in the entry."""
    slot: int = NO_SLOT
    """Of its key, on a Key_Shared subscription."""


new_held: Final = tuple.__new__
"""A NamedTuple's own constructor takes three times as long, and this is done for each entry that is sent."""


def held_of(entry: Entry) -> Held:
    """What an acknowledgement needs to know of an entry that was read."""
    messages = entry.num_messages
    return Held(messages, len(entry.body), entry.total_messages, entry.total_bytes, messages)


class Rates(NamedTuple):
    """Of a consumer, or of all that a subscription has had; each a second."""

    messages_out: float
    bytes_out: float
    given_back: float
    """Messages that were sent and are to be sent again."""
    acknowledged: float
    """Messages."""
    entries_out: float
    chunks_out: float
    """Entries that are chunks of larger messages."""


BodyOf = Callable[[Entry], bytes]


class Consumer:
    """A consumer of one subscription."""

    # As in ManagedLedger.
    __slots__ = (
        "_header", "_meter", "_told_end", "blocked", "bytes_out", "chunks_out", "closed", "cnx", "connected_since",
        "consumer_id", "counted", "entries_out", "epoch", "first_flow", "first_sent", "forgotten", "given_back", "held",
        "key_shared", "last_acked", "last_flow", "last_sent", "messages_out", "metadata", "name", "outbox", "permits",
        "priority_level", "read_compacted", "released", "subscription", "takes_any_schema", "unacked",
    )  # fmt: skip

    def __init__(
        self,
        cnx: "ServerCnx",
        consumer_id: int,
        name: str,
        subscription: "AnySubscription",
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
        """The highest consumer epoch its client has told, if it uses them; goes with every message."""
        self.key_shared = KeySharedMeta()
        """On which terms it wants keys; set before it is added to a Key_Shared subscription."""
        self.permits = 0
        """Messages that may be sent; negative after a large batch."""
        self.held: dict[tuple[int, int], Held] = {}
        """Entries that are sent and not acknowledged, by position, in the order of sending."""
        self.unacked = 0
        """Messages among them."""
        self.counted = 0
        """Those that the subscription's limits know of."""
        self.released: Callable[[Consumer, Held], None] | None = None
        """Told of every entry that the consumer holds no longer."""
        self.blocked = False
        """Too many messages are unacknowledged."""
        self.closed = False
        self._told_end = False
        """Its client knows that nothing more will come."""
        self.connected_since = now.wall
        # It wants the compacted view of the topic; it decodes by whatever schema a message has (AUTO_CONSUME).
        self.read_compacted = self.takes_any_schema = False
        self.metadata: dict[str, str] = {}
        """What its client says of it."""
        self.messages_out = self.entries_out = self.bytes_out = self.chunks_out = 0
        """Of the entries, as they are stored and sent; without what stands before each on the wire."""
        self.given_back = 0
        """Messages that were sent and are to be sent again: the client asked for that, or the cursor was set back."""
        self.forgotten = 0
        """Messages that went out of ``held`` for want of room, less those acknowledged without being held."""
        self.first_sent = 0
        """When it was sent something for the first time; here and below: ms since 1970, 0 for never."""
        self.last_sent = 0
        self.first_flow = 0
        """When it asked for messages for the first time."""
        self.last_flow = 0
        self.last_acked = 0
        self._meter = Meter(now.monotonic, len(Rates._fields))
        self._header = DeliveryEncoder(consumer_id, partition).header

    def __str__(self) -> str:
        """As Pulsar names a consumer in errors."""
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
        """Send entries, as they are. ``ack_sets`` are the cursor's partly acknowledged batches, ``redelivered`` the
        counts of those that were sent before; ``body_of`` adds the broker's own metadata where the client wants it;
        ``slots`` are those of the entries' keys."""
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
            held[position] = new_held(Held, (unacked, stored, total_messages, total_bytes, messages, slot))
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

    def release(self, position: tuple[int, int]) -> Held | None:
        """The consumer holds the entry no longer; what was known of it, None where it was not held."""
        held = self.held.pop(position, None)
        if held is not None:
            self.unacked -= held.messages
            if self.released is not None:
                self.released(self, held)
        return held

    def release_all(self) -> dict[tuple[int, int], Held]:
        """The consumer holds nothing any more; what it held."""
        held, self.held = self.held, {}
        self.given_back += self.unacked
        self.unacked = 0
        return held

    def tell_epoch(self, epoch: int) -> None:
        """The client asks for what is unacknowledged, and drops messages of lower epochs. An epoch never falls."""
        if self.epoch is None or epoch > self.epoch:
            self.epoch = epoch

    def sent(self, now: Now) -> None:
        """Something was sent just now."""
        self.last_sent = now.wall
        if not self.first_sent:
            self.first_sent = now.wall

    def asked(self, permits: int, now: Now) -> None:
        """The client can take ``permits`` more messages."""
        self.permits += permits
        self.last_flow = now.wall
        if not self.first_flow:
            self.first_flow = now.wall

    def tell_end(self) -> None:
        """Nothing more will ever come: tell the client, once, if it knows what that means."""
        cnx = self.cnx
        if not self._told_end and takes_end_of_topic(cnx.client_version, cnx.protocol_version):
            self._told_end = True
            self.outbox.send(replies.reached_end_of_topic(self.consumer_id))

    def added_to(self, totals: tuple[int, int]) -> tuple[int, int]:
        """Totals of messages and bytes, with what the consumer was sent."""
        return totals[0] + self.messages_out, totals[1] + self.bytes_out

    @property
    def counters(self) -> tuple[int, int, int, int, int, int]:
        """What ``Rates`` are rates of."""
        acknowledged = self.messages_out - self.unacked - self.given_back - self.forgotten
        return self.messages_out, self.bytes_out, self.given_back, acknowledged, self.entries_out, self.chunks_out

    def look(self, now: Now) -> None:
        """See Meter.look."""
        self._meter.look(self.counters, now)

    def rates(self, now: Now) -> "Rates":
        """How fast messages go out, come back and are acknowledged."""
        return Rates(*self._meter.rates(self.counters, now))

    @property
    def ready(self) -> bool:
        """Whether it can be sent to."""
        return self.permits > 0 and not self.blocked and not self.outbox.full and not self.closed

    def disconnect(self, now: Now, *, tell: bool = True) -> None:
        """The broker closes: the client is told to come back, unless it has asked for this itself."""
        if not self.closed:
            self.closed = True
            self.cnx.consumer_is_gone(self, now)
            if tell:
                self.outbox.send(replies.close_consumer(self.consumer_id, NO_REQUEST))
