"""Acknowledgement without a consumer: skip, clear and expire a subscription's messages.

The time per turn does not depend on the size of the backlog: positions are computed, or found by a walk over the
acknowledged ranges that continues in later turns.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Final, Protocol

from pulsarbox.broker.dispatch.dispatcher import Dispatcher
from pulsarbox.broker.persistence.group_commit import GroupCommit
from pulsarbox.broker.stats.rate_window import RateWindow
from pulsarbox.broker.subscription.consumer import Consumer, HeldEntry, held_of
from pulsarbox.broker.subscription.position_search import find_first_since
from pulsarbox.broker.timers import Timers
from pulsarbox.broker.topic.ledger_reader import LedgerReader
from pulsarbox.clock import Now
from pulsarbox.errors import NotFound, PreconditionFailed
from pulsarbox.protocol.ack_sets import bits_of
from pulsarbox.storage.cursor import ManagedCursor
from pulsarbox.storage.record import Entry, Position
from pulsarbox.storage.transactions import OpenEntries

Done = Callable[[Now], None]
Failed = Callable[[Exception], None]
Found = Callable[[Position | None, Now], None]

RANGES_AT_ONCE: Final = 2000
"""Acknowledged ranges visited in one turn, which takes about 1 ms."""

CHUNKS_AT_ONCE: Final = 25
"""Chunks of acknowledged ranges that mark-delete passes in one turn; about 5 ms if they are full."""

_NO_RANGE: Final = ((1 << 64, 0), (1 << 64, 0))


class UnackedWalk:
    """Search for the ``count``-th unacknowledged entry, in steps; the cursor may move in between."""

    def __init__(self, cursor: ManagedCursor, count: int) -> None:
        self._cursor = cursor
        self._left = count
        self._through = cursor.mark_delete
        """Entries up to this position have been counted."""
        self.found: Position | None = None
        """The entry; None while it is not found, or if there are fewer."""

    def step(self, ranges: int = RANGES_AT_ONCE) -> bool:
        """Visit up to ``ranges`` acknowledged ranges; return whether the walk is finished."""
        ledger, last = self._cursor.ledger, self._cursor.ledger.read_end
        through = self._through = max(self._through, self._cursor.mark_delete)
        runs = self._cursor.ranges.runs_from(*ledger.next(*through))
        first, end = next(runs, _NO_RANGE)
        for _ in range(ranges):
            if end <= through:  # the first range may lie before ``through``
                first, end = next(runs, _NO_RANGE)
            before = min(Position(first[0], first[1] - 1), last)
            same = through.ledger_id == before.ledger_id
            entries = before.entry_id - through.entry_id if same else ledger.entries_between(through, before)
            if entries >= self._left:
                self.found = _advanced(self._cursor, through, self._left)
                return True
            self._left -= max(entries, 0)
            if first > last or end >= last:
                return True
            through = self._through = Position(*end)
            first, end = next(runs, _NO_RANGE)
        return False


def _advanced(cursor: ManagedCursor, after: Position, count: int) -> Position:
    """Return the position of the ``count``-th entry after ``after``, acknowledged or not."""
    ledger = cursor.ledger
    at = after
    while True:
        info = ledger.ledgers.get(at.ledger_id)
        here = max(info.confirmed - 1 - at.entry_id, 0) if info is not None else 0
        if count <= here:
            return Position(at.ledger_id, at.entry_id + count)
        count -= here
        at = Position(ledger.next(at.ledger_id, (info.entries if info is not None else 1 << 62) - 1).ledger_id, -1)


class ClearedSubscription(Protocol):
    """A subscription whose messages are acknowledged without a consumer."""

    consumers: list[Consumer]
    dispatcher: Dispatcher
    mark_moved: int

    def check_clearable(self) -> None:
        """Raise NotFound if it is gone, PreconditionFailed if it is being reset or closed."""

    def moved_on(self, entries: Iterable[Entry], now: Now) -> None:
        """Handle acknowledged entries that no consumer holds, and dispatch."""

    def marked(self, now: Now) -> None:
        """Handle a mark-delete moved without a consumer."""


class SkipAndClear:
    """Acknowledges entries of one subscription without its consumers."""

    def __init__(
        self,
        subscription: ClearedSubscription,
        cursor: ManagedCursor,
        unended: OpenEntries,
        reader: LedgerReader,
        commits: GroupCommit,
        timers: Timers,
    ) -> None:
        """``unended`` are the topic's entries of open transactions."""
        self._subscription = subscription
        self.cursor = self._cursor = cursor
        self._unended = unended
        self._reader = reader
        self._commits = commits
        self._timers = timers
        self.expired = 0
        """Entries expired since the subscription was loaded; a batch counts as one, as in Pulsar."""
        self.last_expired = 0
        """Time of the last expiry (ms since 1970)."""
        self._meter: RateWindow | None = None
        """Meter of ``expired``, created with the first one."""

    def sample(self, now: Now) -> None:
        """See RateWindow.sample."""
        if self._meter is not None:
            self._meter.sample((self.expired,), now)

    def rate_expired(self, now: Now) -> float:
        """Return the rate of expired entries per second."""
        return self._meter.rates((self.expired,), now)[0] if self._meter is not None else 0.0

    def _count(self, entries: int, now: Now) -> None:
        if self._meter is None:
            self._meter = RateWindow(now.monotonic, 1)
        self.expired += max(entries, 0)

    def clear(self, done: Done, now: Now) -> None:
        """Acknowledge all readable entries. Raises PreconditionFailed, NotFound."""
        self.check()
        ledger = self._cursor.ledger
        self._through(ledger.last_confirmed, ledger.confirmed_messages, ledger.confirmed_bytes, done, now)

    def skip(self, count: int, done: Done, failed: Failed, now: Now) -> None:
        """Acknowledge the next ``count`` unacknowledged entries. Raises PreconditionFailed, NotFound."""
        self.check()
        if count <= 0:
            done(now)
            return

        def found(position: Position | None, when: Now) -> None:
            if position is None:
                self._again(self.clear, done, failed, when)
            else:
                self._acknowledge_to(position, 0, done, failed, when)

        self.find(count, found, now)

    def find(self, count: int, found: Found, now: Now) -> None:
        """Pass the ``count``-th unacknowledged entry to ``found``; None if there are fewer."""
        walk = UnackedWalk(self._cursor, count)

        def step(when: Now) -> None:
            if walk.step():
                found(walk.found, when)
            else:
                self._timers.at(when.monotonic, step)

        step(now)

    def expire_to(self, mark: Position, messages: int, size: int, done: Done, now: Now) -> None:
        """Expire everything up to ``mark``, given with its totals. Raises PreconditionFailed, NotFound."""
        self.check()
        self.last_expired = now.wall
        self._expire(mark, messages, size, done, now)

    def evict_to(self, mark: Position, messages: int, size: int, done: Done, now: Now) -> None:
        """Evict everything up to ``mark``, given with its totals. Raises PreconditionFailed, NotFound."""
        self.check()
        self._through(mark, messages, size, done, now)

    def expire_entries(self, entries: Iterable[Entry], now: Now) -> None:
        """Expire these entries, even if they are in flight to consumers."""
        subscription, cursor = self._subscription, self._cursor
        self.last_expired = now.wall
        fresh = [entry for entry in entries if not cursor.is_acked(entry.ledger_id, entry.entry_id)]
        for entry in fresh:
            at, held = (entry.ledger_id, entry.entry_id), held_of(entry)
            for consumer in subscription.consumers:
                released = consumer.release(at)
                consumer.forgotten += released.messages if released is not None else 0
            cursor.acknowledge(*at, held.batch_size, held.size, held.total_messages, held.total_bytes)
        self._count(len(fresh), now)
        subscription.moved_on(fresh, now)
        for consumer in list(subscription.consumers):
            subscription.dispatcher.acknowledged(consumer, now)

    def expire_before(self, publish_time: int, done: Done, failed: Failed, now: Now) -> None:
        """Expire messages published before ``publish_time`` (ms since 1970). Raises PreconditionFailed, NotFound."""
        self.check()
        self.last_expired = now.wall

        def located(mark: Position, messages: int, size: int, when: Now) -> None:
            expire = partial(self._expire, mark, messages, size)
            self._again(expire, done, failed, when)

        def found(position: Position, when: Now) -> None:
            self._reader.locate(position, located, lambda error, _: failed(error), when)

        find_first_since(self._reader, publish_time, found, failed, now)

    def expire_through(self, position: Position, ack_set: list[int], done: Done, failed: Failed, now: Now) -> None:
        """Expire everything up to an entry, except the entry's messages in ``ack_set``.

        Raises PreconditionFailed, NotFound.
        """
        self.check()
        self.last_expired = now.wall
        before = self._cursor.backlog_entries

        def counted(when: Now) -> None:
            self._count(before - self._cursor.backlog_entries, when)
            done(when)

        self._acknowledge_to(position, bits_of(ack_set), counted, failed, now)

    def _expire(self, mark: Position, messages: int, size: int, done: Done, now: Now) -> None:
        before = self._cursor.backlog_entries

        def counted(when: Now) -> None:
            self._count(before - self._cursor.backlog_entries, when)
            done(when)

        self.check()
        self._through(mark, messages, size, counted, now)

    def _acknowledge_to(self, position: Position, unacked: int, done: Done, failed: Failed, now: Now) -> None:
        """Acknowledge everything up to an entry, except the entry's messages with a bit in ``unacked``."""

        def known(held: HeldEntry | None, when: Now) -> None:
            through = self._reader.ledger.behind_dropped(position) if held is None else None
            if through is not None:  # the entry was trimmed; earlier ones may be unacknowledged
                located(*through, when)
            elif held is None:
                done(when)
            else:
                self._again(partial(self._known, position, unacked, held), done, failed, when)

        def located(mark: Position, messages: int, size: int, when: Now) -> None:
            self._again(partial(self._through, mark, messages, size), done, failed, when)

        def unread(error: Exception, when: Now) -> None:
            failed(error)

        if position.entry_id < 0:  # before the first entry of a ledger
            self._reader.locate(Position(position.ledger_id, 0), located, unread, now)
        else:
            self._reader.look_up(position, known, unread, now)

    def _known(self, position: Position, unacked: int, held: HeldEntry, done: Done, now: Now) -> None:
        self.check()
        if unacked and not self._cursor.acknowledge_batch(position, held.batch_size, unacked):
            position = Position(position.ledger_id, position.entry_id - 1)
            held = held._replace(
                total_messages=held.total_messages - held.batch_size, total_bytes=held.total_bytes - held.size
            )
        self._through(position, held.total_messages, held.total_bytes, done, now)

    def _again(self, step: Callable[[Done, Now], None], done: Done, failed: Failed, now: Now) -> None:
        """Run a step in a later turn, and pass its errors to ``failed``, as no caller is left to catch them."""
        try:
            step(done, now)
        except (PreconditionFailed, NotFound) as error:
            failed(error)

    def check(self) -> None:
        """Raise NotFound if the subscription is gone, PreconditionFailed if it is being reset or closed."""
        self._subscription.check_clearable()

    def _through_checked(self, mark: Position, messages: int, size: int, done: Done, now: Now) -> None:
        self.check()
        self._through(mark, messages, size, done, now)

    def _through(self, mark: Position, messages: int, size: int, done: Done, now: Now) -> None:
        """Acknowledge everything up to ``mark``, given with its totals, even entries in flight to consumers.

        Passing many ranges takes several turns; it stops if the subscription is deleted or reset meanwhile. Entries
        from the first open transaction on are not readable yet, and stay.
        """
        subscription, cursor = self._subscription, self._cursor
        readable = self._unended.readable
        if readable is not None and mark > readable[0]:
            mark, messages, size = readable
        part = cursor.ranges.end_of(CHUNKS_AT_ONCE)
        if part is not None and (part.ledger_id, part.last) < mark:
            cursor.acknowledge_through(Position(part.ledger_id, part.last), part.messages_after, part.bytes_after)

            def go_on(when: Now) -> None:
                self._again(partial(self._through_checked, mark, messages, size), done, lambda _: done(when), when)

            self._timers.at(now.monotonic, go_on)
            return
        if cursor.acknowledge_through(mark, messages, size):
            subscription.mark_moved = now.wall
        for consumer in list(subscription.consumers):
            for at in [each for each in consumer.held if each <= cursor.mark_delete]:
                released = consumer.release(at)
                consumer.forgotten += released.messages if released is not None else 0
        self._commits.cursor_changed(cursor, now)
        subscription.marked(now)
        if cursor.durable:
            self._commits.after_commit(done)
        for consumer in list(subscription.consumers):
            subscription.dispatcher.acknowledged(consumer, now)
        if not cursor.durable:
            done(now)
