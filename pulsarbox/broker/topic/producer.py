"""Broker-side state of a producer on one connection."""

from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

from pulsarbox.broker.connection.outbox import Outbox
from pulsarbox.broker.connection.served_connection import ServedConnection
from pulsarbox.broker.events import Events
from pulsarbox.broker.limits.limiter import Limiter, time_of
from pulsarbox.broker.limits.publish_throttle import Receipt, ReceiptHold
from pulsarbox.broker.limits.topic_limits import TopicLimits
from pulsarbox.broker.stats.rate_window import RateWindow
from pulsarbox.clock import Now
from pulsarbox.errors import ProducerFenced, PulsarBoxError
from pulsarbox.names import TopicName
from pulsarbox.protocol import replies
from pulsarbox.protocol.PulsarApi_pb2 import CommandSend, ProducerAccessMode
from pulsarbox.protocol.send_receipt import ReceiptEncoder

NO_REQUEST = 0xFFFFFFFFFFFFFFFF
"""Request id of a command that the broker sends unsolicited."""


class Access(NamedTuple):
    """Access mode of a producer, and its topic epoch."""

    mode: ProducerAccessMode
    topic_epoch: int | None = None
    """The topic epoch when this producer got exclusive access; None if it never had it."""


class ProducerRates(NamedTuple):
    """Rates of a producer, each per second."""

    messages_in: float
    bytes_in: float
    chunks_in: float
    dropped: float
    """Messages dropped; see Producer.dropped."""


SHARED: Final = Access(ProducerAccessMode.Shared)


class ProducerConnection(ServedConnection, Protocol):
    """The connection of a producer."""

    producers: dict[int, "AttachedProducer"]
    pending_sends: int
    """Entries of all producers that are not durable yet."""
    held_bytes: int
    """Bytes of durable entries whose receipts publish rates hold back."""

    @property
    def held_room(self) -> int:
        """Remaining bytes of entries with held-back receipts; negative if over the limit."""

    def producer_closed(self, producer: "AttachedProducer", now: Now) -> None:
        """Remove a producer that the broker has closed."""

    def producer_drains(self, producer: "AttachedProducer") -> None:
        """Remove a closed producer, but keep it until its pending messages are answered."""

    def producer_is_drained(self, producer: "AttachedProducer") -> None:
        """Remove a closed producer whose messages are all answered."""


class PresentProducers(Protocol):
    """The producers of a topic."""

    epoch: int | None
    """Incremented for each exclusive producer; None if the topic never had one."""
    has_chunks: bool
    """Whether producers have sent chunks of larger messages since the topic was loaded."""


class PublishedTopic(Protocol):
    """The topic of a producer."""

    name: TopicName
    limits: TopicLimits
    events: Events

    @property
    def producers(self) -> PresentProducers:
        """Its producers."""

    def publish(self, producer: "AttachedProducer", send: CommandSend, payload: bytes, now: Now) -> None:
        """Accept a message, batch or chunk. Raise PulsarBoxError, and store nothing, if it is rejected."""

    def remove_producer(self, producer: "AttachedProducer", now: Now) -> None:
        """Remove a producer that was closed or lost its connection."""

    def last_sequence_id(self, name: str) -> int:
        """Return a producer's highest stored sequence id; -1 if unknown or deduplication is off."""

    def is_settling(self, name: str) -> bool:
        """Return whether messages that are not durable yet may still change ``last_sequence_id``."""


class AttachedProducer:
    """A producer: its identity, counters and pending messages."""

    # As in ManagedLedger.
    __slots__ = (
        "_drained", "_hold", "_limits", "_meter", "_receipt", "access", "bytes_in", "chunks_in", "closed", "cnx",
        "connected_since", "dropped", "encrypted", "fenced", "messages_in", "metadata", "name", "outbox", "pending",
        "producer_id", "schema_version", "suspended", "topic",
    )  # fmt: skip

    def __init__(
        self,
        cnx: ProducerConnection,
        producer_id: int,
        name: str,
        topic: PublishedTopic,
        *,
        access: Access = SHARED,
        now: Now,
    ) -> None:
        self.cnx = cnx
        self.outbox: Outbox = cnx.outbox
        self.producer_id = producer_id
        self.name = name
        self.topic = topic
        self.access = access
        self.connected_since = now.wall
        self.metadata: dict[str, str] = {}
        """Metadata set by the client."""
        self.pending = 0
        """Received entries without a receipt so far."""
        self.closed = False
        self.suspended = 0
        """Since when its messages are dropped (ms since 1970) because the publish rate holds back too many receipts; 0
        if not suspended. The producer is closed once those receipts are sent."""
        self.encrypted = False
        """Whether the client declared that it encrypts its messages."""
        self.schema_version = b""
        self.fenced: ProducerFenced | None = None
        """Set if another producer fenced it out before it was open."""
        self.messages_in = 0
        self.bytes_in = 0
        self.chunks_in = 0
        """Entries that are chunks of larger messages."""
        self.dropped = 0
        """Messages to a non-persistent topic that at least one subscription dropped."""
        self._meter = RateWindow(now.monotonic, len(ProducerRates._fields))
        self._receipt = ReceiptEncoder(producer_id).encode
        self._drained: list[Callable[[Now], None]] = []
        self._limits = topic.limits
        self._hold: ReceiptHold | None = None
        """Receipts held back by the publish rates; None without rates."""

    def receipt(self, sequence_id: int, highest_sequence_id: int, ledger_id: int, entry_id: int, now: Now) -> None:
        """Send the receipt of a durable entry, at the publish rate of the topic."""
        self.cnx.pending_sends -= 1
        if self._hold is not None:
            self._hold_receipt(self._hold, Receipt(sequence_id, highest_sequence_id, ledger_id, entry_id), now)
            return
        self.pending -= 1
        self.outbox.send(self._receipt(sequence_id, highest_sequence_id, ledger_id, entry_id))
        if self._drained:
            self._settle(now)

    def _hold_receipt(self, hold: ReceiptHold, receipt: Receipt, now: Now) -> None:
        """Send a receipt at the publish rate. Suspend the producer if its held bytes exceed its connection's room."""
        before = hold.held
        hold.receipt(receipt, now)
        limiter = hold.limiter
        if limiter is None:
            return
        if not before and limiter.waiting == 1 and not limiter.holds.last_minute(time_of(now)):
            text = f"receipts wait for the publish rate: {limiter.in_words}"
            self.topic.events.report("publish-held", str(self.topic.name), text, now)
        if not self.suspended and not self.closed and hold.waiting_bytes > self.cnx.held_room:
            self._suspend(hold.waiting_bytes, now)

    def _suspend(self, waiting: int, now: Now) -> None:
        """Drop further messages until all receipts are sent; then close the producer, so that its client resends them.

        An exclusive producer is never suspended: another one could take the topic while it is closed.
        """
        if self.access.mode != ProducerAccessMode.Shared:
            return
        self.suspended = now.wall
        self._drained.append(self.disconnect)
        text = f"producer {self.name} of {self.cnx.address} is suspended: {waiting:,} bytes wait for the publish rate"
        events, topic = self.topic.events, str(self.topic.name)
        events.report("producer-suspended", topic, text, now, producer=self.name, bytes=waiting)

    def _send_held(self, receipt: Receipt, now: Now) -> None:
        """Send a receipt released by the publish rates."""
        self.pending -= 1
        self.outbox.send(self._receipt(*receipt))
        if self._drained:
            self._settle(now)

    @property
    def held(self) -> ReceiptHold | None:
        """Receipts held back by the publish rates; None without rates."""
        return self._hold

    def release_receipts(self, now: Now) -> None:
        """Release all held receipts, because the producer closes or no rate applies any more."""
        hold, self._hold = self._hold, None
        if hold is not None:
            hold.end(now)

    def limits_changed(self, before: tuple[Limiter, ...], now: Now) -> None:
        """Apply changed publish rates; ``before`` are the previous limiters."""
        if not self._limits.publish:
            self.release_receipts(now)
        elif self._hold is not None:
            self._hold.changed(before, now)

    def refuse(self, sequence_id: int, error: PulsarBoxError, now: Now) -> None:
        """Send the error of an entry that could not be stored. The caller disconnects the producer right after."""
        self.release_receipts(now)
        self.pending -= 1
        self.cnx.pending_sends -= 1
        self.outbox.send(replies.send_error(self.producer_id, sequence_id, error.server_error, str(error)))
        if self._drained:
            self._settle(now)

    def published(self, messages: int, size: int, *, is_chunk: bool = False) -> None:
        """Count an accepted entry of ``messages`` messages and ``size`` bytes."""
        if is_chunk:
            self.chunks_in += 1
            self.topic.producers.has_chunks = True
        if self._limits.publish:
            if self._hold is None:
                self._hold = ReceiptHold(self._limits, self.cnx, self._send_held, self.pending)
            self._hold.published(messages, size)
        self.pending += 1
        self.cnx.pending_sends += 1
        self.messages_in += messages
        self.bytes_in += size

    def sample(self, now: Now) -> None:
        """See RateWindow.sample."""
        self._meter.sample(self._counters, now)

    def rates(self, now: Now) -> ProducerRates:
        """Return the current rates."""
        return ProducerRates(*self._meter.rates(self._counters, now))

    @property
    def _counters(self) -> tuple[int, int, int, int]:
        return self.messages_in, self.bytes_in, self.chunks_in, self.dropped

    def close(self, drained: Callable[[], None], now: Now) -> None:
        """Close on the client's request; ``drained`` is called when every message has its receipt."""
        self.closed = True
        self.topic.remove_producer(self, now)
        self._drain(now, drained)

    def disconnect(self, now: Now, refused: tuple[int, PulsarBoxError] | None = None) -> None:
        """Close on the broker's initiative; the client gets CLOSE_PRODUCER after the receipts of all pending messages.

        Earlier, it would resend those messages and they would be stored twice. Later messages are ignored, which keeps
        the order. ``refused``: sequence id and error of a rejected message, sent after the receipts too, because
        clients drop the connection on it.
        """
        if not self.closed:
            self.closed = True
            self.topic.remove_producer(self, now)
            self.cnx.producer_closed(self, now)
            self._drained.append(lambda when: self._send_close(refused))
            self._settle(now)

    def _send_close(self, refused: tuple[int, PulsarBoxError] | None) -> None:
        if refused is not None:
            sequence_id, error = refused
            self.outbox.send(replies.send_error(self.producer_id, sequence_id, error.server_error, str(error)))
        self.outbox.send(replies.close_producer(self.producer_id, NO_REQUEST))

    def fence(self, error: ProducerFenced, now: Now) -> None:
        """Fence out the producer because another one took the topic: its later messages are not stored.

        As in Pulsar, the client is not notified. Its next message gets an error while earlier ones are pending, and
        closes the connection after that; on reconnect the producer is rejected. A producer that is not open yet gets
        the error as its reply.
        """
        if self.closed:
            return
        self.closed = True
        self.release_receipts(now)
        if self.cnx.producers.get(self.producer_id) is not self:
            self.fenced = error
            return
        self._drain(now)

    def _drain(self, now: Now, drained: Callable[[], None] | None = None) -> None:
        """Reject further messages of a closed producer while earlier ones are pending."""
        self.cnx.producer_drains(self)
        if drained is not None:
            self._drained.append(lambda when: drained())
        self._drained.append(lambda when: self.cnx.producer_is_drained(self))
        self._settle(now)

    def _settle(self, now: Now) -> None:
        if self.pending == 0:
            drained, self._drained = self._drained, []
            for each in drained:
                each(now)
