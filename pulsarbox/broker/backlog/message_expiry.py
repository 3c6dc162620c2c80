"""Message expiry: messages are acknowledged for all subscriptions as soon as the oldest one exceeds its age limit.

Two policies set a limit: message TTL, and a backlog quota by age that evicts. Both apply to the oldest message that a
durable subscription has not acknowledged.
"""

from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple, Protocol

from pulsarbox.broker.backlog.backlog_removals import BacklogRemovals
from pulsarbox.broker.backlog.evict_undelayed import acknowledge_undelayed
from pulsarbox.broker.backlog.oldest_undelayed import NEVER_DUE, OldestUndelayed, ripens
from pulsarbox.broker.callbacks import Callbacks
from pulsarbox.broker.policies.kinds.backlog_quota import BACKLOG_AGE, Follows, Quota
from pulsarbox.broker.policies.kinds.message_ttl import MESSAGE_TTL, age_begins
from pulsarbox.broker.policies.policies import TopicPolicies
from pulsarbox.broker.services import HasSettings, HasTimers
from pulsarbox.broker.subscription.first_unacked import expiring, first_unacked
from pulsarbox.broker.subscription.position_search import find_first
from pulsarbox.broker.subscription.skip_and_clear import SkipAndClear
from pulsarbox.broker.topic.ledger_reader import LedgerReader
from pulsarbox.broker.topic.maintenance.deadline_index import TopicDeadline, first_of
from pulsarbox.clock import Now
from pulsarbox.errors import NotFound, PreconditionFailed
from pulsarbox.names import COMPACTION_SUBSCRIPTION
from pulsarbox.storage.record import Entry, Position
from pulsarbox.storage.recovery import StoredTopic

PAUSE_MS: Final = 1000
"""Minimum interval between expiries, so that a steady stream does not cause a search per message."""

RETRY_MS: Final = 1000
"""Retry interval after a failed read, or while a subscription is being reset."""


class Oldest(NamedTuple):
    """The oldest unacknowledged entry over a topic's durable subscriptions."""

    position: Position
    begins: int
    """When its age begins (ms since 1970)."""
    subscription: str


class ExpiryLimits(NamedTuple):
    """Age limits of messages in ms; 0: none."""

    ttl: int
    evict: int
    """Age at which the quota evicts ..."""
    target: int
    """... messages older than this."""
    block: int
    """Age at which the quota blocks producers."""
    spares: bool = False
    """Whether, for the quota, the age of a delayed message begins when it is due."""


def limits_of(ttl: int, age: Quota, *, enforced: bool) -> ExpiryLimits:
    """Return the limits set by the policies. Pure."""
    limit = age.limit if enforced and age.limit > 0 else 0
    evicts = age.follows is Follows.EVICTION
    target = age.target if limit and evicts else 0
    return ExpiryLimits(
        ttl, limit if evicts else 0, target, 0 if evicts else limit, bool(limit) and age.exclude_delayed
    )


def cutoff(limits: ExpiryLimits, begins: int, now_ms: int) -> int | None:
    """Return the time (ms since 1970) up to which messages are to expire, given when the age of the oldest begins."""
    cutoffs = []
    if limits.ttl and begins + limits.ttl <= now_ms:
        cutoffs.append(now_ms - limits.ttl)
    if limits.evict and begins + limits.evict <= now_ms:
        cutoffs.append(now_ms - limits.target)
    return max(cutoffs, default=None)


def due_at(limits: ExpiryLimits, begins: int, now_ms: int, ripe: int | None = None) -> int:
    """Return when the next limit is reached (ms since 1970); 0: never. Pure.

    ``begins``: when the age of the oldest message begins; ``ripe``: the same for the quota, if different.
    """
    due = [begins + limits.ttl] if limits.ttl else []
    ripe = begins if ripe is None else ripe
    if limits.evict and ripe < NEVER_DUE:
        due.append(ripe + limits.evict)
    if limits.block and now_ms < ripe + limits.block < NEVER_DUE:
        due.append(ripe + limits.block)  # after that, only acknowledgements change the state
    return min(due, default=0)


class ExpiryServices(HasSettings, HasTimers, Protocol):
    """The services of the broker that expiry uses."""

    @property
    def removals(self) -> BacklogRemovals:
        """Expiry and eviction in progress."""


class MessageExpiry:
    """Message expiry of one topic in memory.

    ``clearings`` returns those of the topic's subscriptions.
    """

    __slots__ = (
        "_again", "_again_at", "_clearings", "_deadline", "_ledger", "_limits", "_looked_up", "_policies", "_reader",
        "_ripe", "_ripens", "_services", "_stored", "aged", "evictions", "is_known", "oldest", "on", "under_way",
    )  # fmt: skip

    def __init__(
        self,
        services: ExpiryServices,
        stored: StoredTopic,
        policies: TopicPolicies,
        reader: LedgerReader,
        deadline: TopicDeadline,
        clearings: Callable[[], list[SkipAndClear]],
    ) -> None:
        self._services = services
        self._stored = stored
        self._ledger = stored.ledger
        self._policies = policies
        self._reader = reader
        self._deadline = deadline
        self._clearings = clearings
        self.aged: Callbacks[Now] = Callbacks()
        """Called when the age of the oldest message is known."""
        self._ripe: OldestUndelayed | None = None
        """Finds the oldest message for a quota that excludes delayed ones; None without such a quota."""
        self._ripens = NEVER_DUE
        """When the age of that message begins, as last found (ms since 1970)."""
        self._limits = self._find_limits()
        self.on = any(self._limits)
        """Whether any age limit is set."""
        self.oldest: Oldest | None = None
        """The oldest entry as last found; it may be acknowledged by now."""
        self.evictions = 0
        """Evictions by the age quota since the topic was loaded."""
        self.is_known = False
        """Whether a search for the oldest entry has finished since the topic was loaded."""
        self.under_way = False
        self._looked_up = False
        """Whether a search started by ``request_oldest`` is in progress."""
        self._again = False
        """Whether to run again when the current run is done."""
        self._again_at = 0
        """When the next run is due (ms since 1970); 0: once an entry is published."""

    def _find_limits(self) -> ExpiryLimits:
        policies = self._policies
        enforced = self._services.settings.backlogQuotaCheckEnabled
        limits = limits_of(policies.get(MESSAGE_TTL), policies.get(BACKLOG_AGE), enforced=enforced)
        if limits.spares != (self._ripe is not None):
            self._ripe = OldestUndelayed(self._stored, self._reader, self._services.timers) if limits.spares else None
        return limits

    def published(self, entry: Entry) -> None:
        """Schedule the expiry of a published entry if it may be the next to expire."""
        if self.under_way or not self._stored.cursors or (self._again_at and self._ripe is None):
            return
        due = due_at(self._limits, age_begins(entry), 0, None if self._ripe is None else ripens(entry))
        if not self._again_at or 0 < due < self._again_at:  # delayed entries may reach the limit later
            self._again_at = due
            self._deadline.want(due)

    def started_again(self) -> None:
        """Forget search results after a subscription was created or reset, possibly to an earlier position."""
        if self._ripe is not None:
            self._ripe.forget()

    def expire_due(self, now: Now) -> int:
        """Expire messages that are too old; return when to run again (ms since 1970; 0: not by time alone)."""
        self._limits = self._find_limits()
        self.on = any(self._limits)
        if self.under_way:
            self._again = True
        else:
            self._start(now)
        return now.wall + RETRY_MS if self.under_way else self._again_at

    def _start(self, now: Now) -> None:
        self._again = False
        self._again_at = 0
        if not self.on:
            self.oldest = None
            self.is_known = True
            return
        self.under_way = True
        self._services.removals.began()
        self.find_oldest(self._found, now)

    # The oldest

    @property
    def quota_begins(self) -> int:
        """When the age of the oldest message for the quota begins (ms since 1970); 0 if unknown or out of date."""
        if self._ripe is not None:
            return self._ripens if self._ripens < NEVER_DUE and self._ripe.is_current else 0
        return self.oldest.begins if self.oldest is not None and self.is_current else 0

    def request_oldest(self, now: Now) -> Oldest | None:
        """Return the oldest entry of the backlog if known without a read; otherwise start the read and return None."""
        first = first_unacked(self._ledger, self._stored.cursors.values())
        if first is None:
            return None
        if self.oldest is not None and first[0] == self.oldest.position:
            return self.oldest
        if self.under_way or self._looked_up:
            return None
        self._looked_up = True
        self.find_oldest(self._known, now)
        return self.oldest if self.is_current else None

    def _known(self, oldest: Oldest | None, now: Now) -> None:
        self._looked_up = False

    @property
    def is_current(self) -> bool:
        """Whether ``oldest`` is still the oldest entry."""
        first = first_unacked(self._ledger, expiring(self._stored))
        return first is not None and self.oldest is not None and first[0] == self.oldest.position

    @property
    def has_passed(self) -> bool:
        """Whether the oldest message for a quota that excludes delayed ones is acknowledged, even past mark-delete."""
        return self._ripe is not None and not self.under_way and not self._ripe.is_current

    def find_oldest(self, found: Callable[[Oldest | None, Now], None], now: Now) -> None:
        """Find the oldest entry that a durable subscription has not acknowledged; ``found`` gets it, or None."""
        first = first_unacked(self._ledger, expiring(self._stored))
        known = self.oldest
        if first is None or (known is not None and known.position == first[0]):
            self.oldest = None if first is None or known is None else known._replace(subscription=first[1])
            found(self.oldest, now)
            return
        position, name = first

        def settle(begins: int, when: Now) -> None:
            self.oldest = Oldest(position, begins, name)
            found(self.oldest, when)

        self._reader.read_entry(
            position,
            lambda entry, when: settle(age_begins(entry), when),
            lambda error, when: settle(self._at_the_latest(position), when),
            now,
        )

    def _at_the_latest(self, position: Position) -> int:
        """Return the latest possible append time of an entry that cannot be read."""
        info = self._ledger.ledgers.get(position.ledger_id)
        return info.closed if info is not None and info.closed else self._ledger.last_append_time

    # Expiry

    def _found(self, oldest: Oldest | None, now: Now) -> None:
        if oldest is None or not self._stored.in_use:
            self._ripens = NEVER_DUE
            self._finish(self._without_backlog(now), now)
        elif self._ripe is None:
            self._judge(oldest, oldest.begins, now)
        else:
            self._ripe.find(partial(self._judge, oldest), self._at_the_latest, now)

    def _judge(self, oldest: Oldest, ripe: int, now: Now) -> None:
        self._ripens, limits = ripe, self._limits
        evicts = limits.evict and ripe + limits.evict <= now.wall
        self.evictions += bool(evicts)
        until = cutoff(limits._replace(evict=0) if limits.spares else limits, oldest.begins, now.wall)
        if until is not None:
            self._find_end(oldest, until, self._expire_before, now)
        elif evicts:  # delayed messages are spared
            until = now.wall - limits.target
            self._find_end(oldest, until, partial(self._expire_undelayed_before, until), now)
        else:
            self._finish(due_at(limits, oldest.begins, now.wall, ripe), now)

    def _find_end(self, oldest: Oldest, until: int, found: Callable[[Position, Now], None], now: Now) -> None:
        """Pass the first entry whose age begins later than ``until`` to ``found``."""
        at = oldest.position
        find_first(
            self._reader,
            Position(at.ledger_id, at.entry_id - 1),
            lambda entry: age_begins(entry) > until,
            found,
            lambda _: self._finish(now.wall + RETRY_MS, now),
            now,
            unread=lambda position: self._at_the_latest(position) > until,
        )

    def _expire_undelayed_before(self, until: int, position: Position, now: Now) -> None:
        """Expire the entries before ``position``, except those due later than ``until``."""

        def spared(when: Now) -> None:
            self.find_oldest(partial(self._pause, 0), when)

        acknowledge_undelayed(
            [each for each in self._expiring() if each.cursor.durable],
            self._stored.delays,
            self._reader,
            self._services.timers,
            end=position,
            due=until,
            done=spared,
            now=now,
        )

    def _expire_before(self, position: Position, now: Now) -> None:
        self._reader.locate(
            position, self._expire_through, lambda error, when: self._finish(when.wall + RETRY_MS, when), now
        )

    def _expire_through(self, mark: Position, messages: int, size: int, now: Now) -> None:
        behind = [each for each in self._expiring() if each.cursor.mark_delete < mark]
        left, retry = len(behind) + 1, 0

        def done(when: Now) -> None:
            nonlocal left
            left -= 1
            if not left:
                self.find_oldest(partial(self._pause, retry), when)

        for clearing in behind:
            try:
                clearing.expire_to(mark, messages, size, done, now)
            except (PreconditionFailed, NotFound):  # being reset or deleted
                retry = now.wall + RETRY_MS
                done(now)
        done(now)

    def _expiring(self) -> list[SkipAndClear]:
        return [each for each in self._clearings() if each.cursor.name != COMPACTION_SUBSCRIPTION]

    def _pause(self, retry: int, oldest: Oldest | None, now: Now) -> None:
        if oldest is None:
            self._paused(retry, self._without_backlog(now), now)
        elif self._ripe is None:
            self._paused(retry, due_at(self._limits, oldest.begins, now.wall), now)
        else:
            self._ripe.find(partial(self._pause_search, retry, oldest), self._at_the_latest, now)

    def _pause_search(self, retry: int, oldest: Oldest, ripe: int, now: Now) -> None:
        self._ripens = ripe
        self._paused(retry, due_at(self._limits, oldest.begins, now.wall, ripe), now)

    def _paused(self, retry: int, due: int, now: Now) -> None:
        self._finish(retry or (max(due, now.wall + PAUSE_MS) if due else 0), now)

    def _without_backlog(self, now: Now) -> int:
        """Return when to run again without a backlog: soon if entries are unconfirmed, else 0."""
        ledger = self._ledger
        return now.wall + RETRY_MS if ledger.total_messages > ledger.confirmed_messages else 0

    def _finish(self, again_at: int, now: Now) -> None:
        self.under_way = False
        self._services.removals.ended()
        self.is_known = True
        if not self._stored.in_use:
            return
        if self._ripe is not None:  # an unconfirmed entry may reach the limit first
            again_at = first_of(again_at, self._without_backlog(now))
        self._again_at = again_at
        self._deadline.settled(again_at)
        self.aged(now)
        if self._again:
            self._start(now)
