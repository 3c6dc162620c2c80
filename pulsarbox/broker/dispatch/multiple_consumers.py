"""What Shared and Key_Shared have in common: several consumers take entries side by side.

What a consumer gives back (it went, or asked for redelivery) is sent again before anything new. Redelivery counts rise
when a consumer asks, and when its connection is lost (``redeliveryCountOnConnectionLoss``): so a message that kills
its consumer is found. They do not rise when it closes. The cursor keeps them.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from pulsarbox.broker.core import Core
from pulsarbox.broker.dispatch.blocked_reason import Reason, Standstill
from pulsarbox.broker.dispatch.entry_source import EntrySource
from pulsarbox.broker.dispatch.replay import At, Replay
from pulsarbox.broker.dispatch.unacked_limits import Unacked
from pulsarbox.broker.limits.dispatch_throttle import ANY, Grant, Throttle
from pulsarbox.broker.subscription.consumer import NO_SLOT, Consumer, Held
from pulsarbox.clock import Now
from pulsarbox.storage.cursor import ManagedCursor
from pulsarbox.storage.record import Entry

if TYPE_CHECKING:
    from pulsarbox.broker.dead_letter.redelivery_limit import DeadLetters


class MultipleConsumersDispatcher:
    """Base of the dispatchers that have several active consumers."""

    def __init__(self, cursor: ManagedCursor, source: EntrySource, core: Core, throttle: Throttle) -> None:
        settings = core.settings
        self._cursor = cursor
        self._source = source
        self._bounds = core.bounds
        self._throttle = throttle
        self._count_lost = settings.redeliveryCountOnConnectionLoss
        self._unacked = Unacked(settings, core.unacked, self.dispatch)
        self._replay = Replay(cursor, core, self._reread, source.set_aside)
        self._consumers: list[Consumer] = []
        self._parcels = 0
        """How often something was sent."""
        self._now = Now(0.0, 0)
        """Of the dispatch that is under way."""
        self.standstill = Standstill()
        self.dead_letters: DeadLetters | None = None
        """Takes out what was sent too often; None where there is no such thing."""
        self.life = object()
        """Another one whenever it starts again behind mark-delete."""

    # What the types differ in

    def _send_all(self, now: Now) -> str:
        """Send what can be sent; the Reason why it is no more."""
        raise NotImplementedError

    def _came(self, consumer: Consumer, now: Now) -> None:
        """A consumer has come. Raises, and changes nothing, where it cannot be taken."""
        raise NotImplementedError

    def _went(self, consumer: Consumer, held: Mapping[At, Held]) -> None:
        """A consumer has gone, others are there; what it held goes to them."""
        raise NotImplementedError

    def _wait_again(self, given_back: Mapping[At, Held]) -> None:
        """Entries are to be sent again."""
        raise NotImplementedError

    def _may_be_ready(self, consumer: Consumer) -> None:
        """The consumer can be sent to, as far as is known."""
        raise NotImplementedError

    def _forget(self) -> None:
        """Nothing waits to be sent again, nobody holds anything."""
        raise NotImplementedError

    def _slot_of(self, entry: Entry) -> int:
        """The slot of its key, where keys decide anything."""
        return NO_SLOT

    def _reread(self, now: Now) -> None:
        """Entries that wait to be sent again are at hand, or a read is to be tried again."""
        self.dispatch(now)

    # What they share

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
        self._came(consumer, now)
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
        self._went(consumer, held)
        if not self._consumers:
            self.rewind()
            self.standstill.stopped(Reason.NO_CONSUMER, now)
        self._unacked.released(consumer)
        self.dispatch(now)
        self._unacked.others_go_on(now)

    def redeliver(self, consumer: Consumer, positions: Iterable[At] | None, now: Now) -> None:
        """Entries that the consumer holds go out again, their redelivery count one higher."""
        given_back: dict[At, Held] = {}
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
        self._unacked.others_go_on(now)

    def send_again(self, entries: list[Entry], now: Now) -> None:
        """Entries that were taken out, and that nobody holds, go out after all."""
        self._wait_again({(entry[0], entry[1]): _held(entry, self._slot_of(entry)) for entry in entries})
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
        self._unacked.others_go_on(now)

    def acknowledged_unheld(self, at: At) -> None:
        """See Dispatcher.acknowledged_unheld. What waits is looked at when it is sent."""

    def limit_unacked(self, per_consumer: int, per_subscription: int, now: Now) -> None:
        """Hold back at so many unacknowledged messages from now on; 0 is no limit."""
        if not self._unacked.limit(per_consumer, per_subscription, self._consumers):
            return
        for consumer in self._consumers:
            self._freed(consumer)
        self.dispatch(now)

    def _freed(self, consumer: Consumer) -> None:
        """A limit that was reached is so no longer."""
        if consumer.ready:
            self._may_be_ready(consumer)

    @property
    def _letters_wait(self) -> bool:
        """Whether nothing is sent before dead letters are on the disk."""
        return self.dead_letters is not None and self.dead_letters.full

    def _living(self, entries: list[Entry]) -> list[Entry]:
        """Without those that become dead letters instead of being sent once more."""
        if self.dead_letters is None or not self._cursor.redeliveries:
            return entries
        return self.dead_letters.take_out(entries, self, self._now)

    def _granted(self, entries: int, now: Now) -> Grant | None:
        """What the dispatch rates allow of so many entries and the bytes of a read; None for nothing."""
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
        """Entries that wait to be sent again."""
        raise NotImplementedError

    def _stopped_for(self) -> str:
        """The reason that was noted, as far as it still is one."""
        return self.standstill.reason

    def why(self) -> str:
        """See Dispatcher.why."""
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


def _held(entry: Entry, slot: int) -> Held:
    return Held(entry[3], len(entry[11]), entry[4], entry[5], entry[3], slot)
