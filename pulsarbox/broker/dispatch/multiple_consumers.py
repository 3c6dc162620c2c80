"""Base of Shared and Key_Shared dispatching: several consumers receive entries concurrently.

Entries given back by a consumer (it left, or asked for redelivery) are sent again before new ones. The redelivery count
rises on request, and when a connection is lost (``redeliveryCountOnConnectionLoss``), so that a message which crashes
its consumers is found. It does not rise on an orderly close. The cursor stores the counts.
"""

from collections.abc import Iterable, Mapping
from typing import Protocol

from pulsarbox.broker.dead_letter.redelivery_limit import RedeliveryLimit
from pulsarbox.broker.dispatch.blocked_reason import BlockedSince, Reason
from pulsarbox.broker.dispatch.entry_source import EntrySource
from pulsarbox.broker.dispatch.replay import At, ReadServices, Replay
from pulsarbox.broker.dispatch.unacked_limits import BrokerUnacked, Unacked
from pulsarbox.broker.limits.dispatch_throttle import ANY, Grant, Throttle
from pulsarbox.broker.services import HasSettings
from pulsarbox.broker.subscription.consumer import NO_SLOT, Consumer, HeldEntry
from pulsarbox.clock import Now
from pulsarbox.storage.cursor import ManagedCursor
from pulsarbox.storage.record import Entry


class DispatchServices(HasSettings, ReadServices, Protocol):
    """The services of the broker that dispatch to several consumers."""

    @property
    def unacked(self) -> BrokerUnacked:
        """The limit of unacknowledged messages of all subscriptions."""


class MultipleConsumersDispatcher:
    """Base of the dispatchers with several active consumers."""

    def __init__(
        self, cursor: ManagedCursor, source: EntrySource, services: DispatchServices, throttle: Throttle
    ) -> None:
        settings = services.settings
        self._cursor = cursor
        self._source = source
        self._bounds = services.bounds
        self._throttle = throttle
        self._count_lost = settings.redeliveryCountOnConnectionLoss
        self._unacked = Unacked(settings, services.unacked, self.dispatch)
        self._replay = Replay(cursor, services, self._reread, source.set_aside)
        self._consumers: list[Consumer] = []
        self._parcels = 0
        """Number of deliveries so far."""
        self._now = Now(0.0, 0)
        """Time of the dispatch in progress."""
        self.standstill = BlockedSince()
        self.dead_letters: RedeliveryLimit | None = None
        """Removes messages that were redelivered too often; None without a dead letter policy."""
        self.life = object()
        """Replaced whenever dispatching starts over at mark-delete."""

    # Implemented by each type

    def _send_all(self, now: Now) -> str:
        """Dispatch as much as possible; return the Reason for stopping."""
        raise NotImplementedError

    def _consumer_added(self, consumer: Consumer, now: Now) -> None:
        """Handle a new consumer. Raises, without a change, if it cannot be accepted."""
        raise NotImplementedError

    def _consumer_removed(self, consumer: Consumer, held: Mapping[At, HeldEntry]) -> None:
        """Handle a removed consumer; other consumers get its entries."""
        raise NotImplementedError

    def _wait_again(self, given_back: Mapping[At, HeldEntry]) -> None:
        """Queue entries for redelivery."""
        raise NotImplementedError

    def _may_be_ready(self, consumer: Consumer) -> None:
        """Note that the consumer is probably ready."""
        raise NotImplementedError

    def _forget(self) -> None:
        """Forget all waiting entries and their holders."""
        raise NotImplementedError

    def _slot_of(self, entry: Entry) -> int:
        """Return the slot of the entry's key if the type dispatches by key."""
        return NO_SLOT

    def _reread(self, now: Now) -> None:
        """Handle the end of a read of waiting entries, or its retry."""
        self.dispatch(now)

    # Shared by both types

    def dispatch(self, now: Now) -> None:
        """See Dispatcher.dispatch."""
        before = self._parcels
        self._now = now
        reason = self._send_all(now)
        self.standstill.stopped(reason, now, sent=self._parcels != before)

    def add(self, consumer: Consumer, now: Now) -> None:
        """See Dispatcher.add."""
        if not self._consumers:
            self.rewind()
        self._consumer_added(consumer, now)
        self._consumers.append(consumer)
        self._may_be_ready(consumer)
        self.dispatch(now)

    def remove(self, consumer: Consumer, now: Now, *, lost: bool = False) -> None:
        """See Dispatcher.remove."""
        self._consumers.remove(consumer)
        held = consumer.release_all()
        if lost and self._count_lost:
            for position in held:
                self._cursor.redelivered(position)
        self._consumer_removed(consumer, held)
        if not self._consumers:
            self.rewind()
            self.standstill.stopped(Reason.NO_CONSUMER, now)
        self._unacked.released(consumer)
        self.dispatch(now)
        self._unacked.resume_others(now)

    def redeliver(self, consumer: Consumer, positions: Iterable[At] | None, now: Now) -> None:
        """Redeliver entries that the consumer holds, incrementing their redelivery counts."""
        given_back: dict[At, HeldEntry] = {}
        for position in list(consumer.held) if positions is None else positions:
            held = consumer.release(position)
            if held is not None:
                given_back[position] = held
                consumer.given_back += held.messages
                self._cursor.redelivered(position)
        self._wait_again(given_back)
        if self._unacked.released(consumer):
            self._freed(consumer)
        self.dispatch(now)
        self._unacked.resume_others(now)

    def send_again(self, entries: list[Entry], now: Now) -> None:
        """Dispatch entries that were taken out as dead letters but could not be moved."""
        self._wait_again({(entry.ledger_id, entry.entry_id): _held(entry, self._slot_of(entry)) for entry in entries})
        self.dispatch(now)

    def rewind(self) -> None:
        """See Dispatcher.rewind."""
        self.life = object()
        for consumer in self._consumers:
            consumer.release_all()
        self._unacked.reset(self._consumers)
        self._replay.clear()
        self._forget()
        self._source.rewind()
        for consumer in self._consumers:
            self._may_be_ready(consumer)

    def flow(self, consumer: Consumer, now: Now) -> None:
        """See Dispatcher.flow."""
        if consumer.ready:
            self._may_be_ready(consumer)
        self.dispatch(now)

    def acknowledged(self, consumer: Consumer, now: Now) -> None:
        """See Dispatcher.acknowledged."""
        if self._unacked.released(consumer):
            self._freed(consumer)
            self.dispatch(now)
        self._unacked.resume_others(now)

    def acknowledged_unheld(self, at: At) -> None:
        """See Dispatcher.acknowledged_unheld. Waiting entries are tested when they are sent."""

    def limit_unacked(self, per_consumer: int, per_subscription: int, now: Now) -> None:
        """Apply new limits of unacknowledged messages; 0 means no limit."""
        if not self._unacked.limit(per_consumer, per_subscription, self._consumers):
            return
        for consumer in self._consumers:
            self._freed(consumer)
        self.dispatch(now)

    def _freed(self, consumer: Consumer) -> None:
        """Handle that the consumer's limit is no longer reached."""
        if consumer.ready:
            self._may_be_ready(consumer)

    @property
    def _letters_wait(self) -> bool:
        """Whether dispatching pauses until dead letters are on disk."""
        return self.dead_letters is not None and self.dead_letters.full

    def _living(self, entries: list[Entry]) -> list[Entry]:
        """Remove entries that become dead letters instead of being redelivered."""
        if self.dead_letters is None or not self._cursor.redeliveries:
            return entries
        return self.dead_letters.move_exceeding(entries, self, self._now)

    def _granted(self, entries: int, now: Now) -> Grant | None:
        """Return what the dispatch rates allow of ``entries`` and one read's bytes; None for nothing."""
        return self._throttle.allowed(Grant(entries, ANY, self._bounds.read_bytes), now)

    def _deliver(self, consumer: Consumer, entries: list[Entry], slots: Iterable[int]) -> None:
        cursor = self._cursor
        messages, size = consumer.messages_out, consumer.bytes_out
        consumer.deliver(entries, cursor.ack_sets, cursor.redeliveries, consumer.cnx.body_of, slots)
        if self._throttle.limiters:
            self._throttle.sent(len(entries), consumer.messages_out - messages, consumer.bytes_out - size)
        consumer.sent(self._now)
        self._unacked.sent(consumer)
        self._parcels += 1

    @property
    def blocked(self) -> bool:
        """Whether the subscription's limit of unacknowledged messages is reached."""
        return self._unacked.blocked

    @property
    def waiting_again(self) -> int:
        """Number of entries that wait for redelivery."""
        raise NotImplementedError

    def _stopped_for(self) -> str:
        """Return the recorded reason, corrected if it no longer applies."""
        return self.standstill.reason

    def blocked_reason(self) -> str:
        """See Dispatcher.blocked_reason."""
        reason = self._stopped_for()
        if not self._consumers:
            return Reason.NO_CONSUMER
        if reason == Reason.END_OF_LOG:
            delayed = self._source.delayed
            if self._source.reading or self._replay.reading or (delayed is not None and delayed.reading):
                return Reason.READING
            held = sum(len(each.held) for each in self._consumers)
            if delayed is not None and delayed.next_at and self._cursor.backlog_entries > held:
                return Reason.DELAYED
        if reason == Reason.NO_PERMITS:
            asking = [each for each in self._consumers if each.permits > 0]
            if asking and all(each.blocked for each in asking):
                return Reason.UNACKED_LIMIT
            if asking:
                return Reason.SLOW_CONNECTION
        return reason


def _held(entry: Entry, slot: int) -> HeldEntry:
    return HeldEntry(
        entry.num_messages, len(entry.body), entry.total_messages, entry.total_bytes, entry.num_messages, slot
    )
