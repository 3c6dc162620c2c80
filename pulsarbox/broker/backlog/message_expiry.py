"""Expiry: messages that are too old are acknowledged, at the instant at which the oldest of them becomes so.

Two policies ask for it: message TTL, and a backlog quota by age that evicts. Both look at the oldest message that a
durable subscription has not acknowledged, and what goes, goes for every subscription.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from pulsarbox.broker.backlog.evict_undelayed import spare
from pulsarbox.broker.backlog.oldest_undelayed import NEVER, Ripe, ripens
from pulsarbox.broker.policies.kinds.backlog_quota import BACKLOG_AGE, Follows, Quota
from pulsarbox.broker.policies.kinds.message_ttl import MESSAGE_TTL, age_begins
from pulsarbox.broker.subscription.first_unacked import expiring, first_unacked
from pulsarbox.broker.subscription.position_search import find_first
from pulsarbox.broker.topic.deadline_index import first_of
from pulsarbox.clock import Now
from pulsarbox.errors import NotFound, PreconditionFailed
from pulsarbox.names import COMPACTION_SUBSCRIPTION
from pulsarbox.storage.record import Entry, Position

if TYPE_CHECKING:
    from pulsarbox.broker.topic.topic import PersistentTopic

PAUSE_MS: Final = 1000
"""After something has expired, how long what expires next gathers: else each message of a stream were a search."""

RETRY_MS: Final = 1000
"""When it is looked again where the store or a subscription that is being reset did not let us."""


class Oldest(NamedTuple):
    """The oldest entry of the backlog of a topic's durable subscriptions."""

    position: Position
    begins: int
    """From when on it gets old (ms since 1970)."""
    subscription: str


class Limits(NamedTuple):
    """How old messages may become, in ms; 0: any age."""

    ttl: int
    evict: int
    """At this age a quota evicts ..."""
    target: int
    """... what is older than this."""
    block: int
    """At this age a quota keeps producers away."""
    spares: bool = False
    """For the quota what is delayed gets old from when it falls due."""


def limits_of(ttl: int, age: Quota, *, enforced: bool) -> Limits:
    """What the policies ask for. Pure."""
    limit = age.limit if enforced and age.limit > 0 else 0
    evicts = age.follows is Follows.EVICTION
    target = age.target if limit and evicts else 0
    return Limits(ttl, limit if evicts else 0, target, 0 if evicts else limit, bool(limit) and age.exclude_delayed)


def cutoff(limits: Limits, begins: int, now_ms: int) -> int | None:
    """What begins to age up to this instant (ms since 1970) goes, the oldest being of ``begins``; None: nothing."""
    cutoffs = []
    if limits.ttl and begins + limits.ttl <= now_ms:
        cutoffs.append(now_ms - limits.ttl)
    if limits.evict and begins + limits.evict <= now_ms:
        cutoffs.append(now_ms - limits.target)
    return max(cutoffs, default=None)


def due_at(limits: Limits, begins: int, now_ms: int, ripe: int | None = None) -> int:
    """When a limit is reached, the oldest being of ``begins``, and for the quota of ``ripe`` where that is another (ms
    since 1970); 0: never. Pure."""
    due = [begins + limits.ttl] if limits.ttl else []
    ripe = begins if ripe is None else ripe
    if limits.evict and ripe < NEVER:
        due.append(ripe + limits.evict)
    if limits.block and now_ms < ripe + limits.block < NEVER:
        due.append(ripe + limits.block)  # once it has passed, only acknowledgements change anything
    return min(due, default=0)


class Expiry:
    """Of one topic in memory."""

    __slots__ = (
        "_again", "_again_at", "_limits", "_looked_up", "_ripe", "_ripens", "_topic", "evictions", "is_known", "oldest",
        "on", "under_way",
    )  # fmt: skip

    def __init__(self, topic: "PersistentTopic") -> None:
        self._topic = topic
        self._ripe: Ripe | None = None
        """Finds the oldest for a quota that leaves out what is delayed; None without one."""
        self._ripens = NEVER
        """From when on that one gets old, as it was found last (ms since 1970)."""
        self._limits = self._find_limits()
        self.on = any(self._limits)
        """Whether anything may become too old."""
        self.oldest: Oldest | None = None
        """As it was found last: what has been acknowledged since may be beyond it."""
        self.evictions = 0
        """Of a quota by age, since the topic came into memory."""
        self.is_known = False
        """Whether it was looked for the oldest at all."""
        self.under_way = False
        self._looked_up = False
        """Somebody who only wants to know it has asked for the oldest."""
        self._again = False
        """Look once more when this is done."""
        self._again_at = 0
        """When there is something to do next, as far as is known (ms since 1970); 0: when something is published."""

    def _find_limits(self) -> Limits:
        policies = self._topic.policies
        enforced = self._topic.core.settings.backlogQuotaCheckEnabled
        limits = limits_of(policies.get(MESSAGE_TTL), policies.get(BACKLOG_AGE), enforced=enforced)
        if limits.spares != (self._ripe is not None):
            self._ripe = Ripe(self._topic) if limits.spares else None
        return limits

    def published(self, entry: Entry) -> None:
        """An entry joins the backlog: if it is all of it, it is the next to become too old."""
        if self.under_way or not self._topic.stored.cursors or (self._again_at and self._ripe is None):
            return
        due = due_at(self._limits, age_begins(entry), 0, None if self._ripe is None else ripens(entry))
        if not self._again_at or 0 < due < self._again_at:  # others may fall due only later
            self._again_at = due
            self._topic.upkeep.deadline.want(due)

    def started_again(self) -> None:
        """A subscription is new, or starts again, maybe at an earlier place."""
        if self._ripe is not None:
            self._ripe.forget()

    def look(self, now: Now) -> int:
        """Let go what is too old; when to look again (ms since 1970; 0: not by the passing of time)."""
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
        self._topic.core.under_way += 1
        self.find_oldest(self._found, now)

    # The oldest

    @property
    def quota_begins(self) -> int:
        """From when on the oldest that counts for the quota gets old (ms since 1970), as far as that is known and still
        so; else 0."""
        if self._ripe is not None:
            return self._ripens if self._ripens < NEVER and self._ripe.is_current else 0
        return self.oldest.begins if self.oldest is not None and self.is_current else 0

    def tell_oldest(self, now: Now) -> Oldest | None:
        """The oldest of the backlog, as far as that is known without waiting; else it is known the next time."""
        first = first_unacked(self._topic.ledger, self._topic.stored.cursors.values())
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
        """Whether what is known to be the oldest still is."""
        first = first_unacked(self._topic.ledger, expiring(self._topic.stored))
        return first is not None and self.oldest is not None and first[0] == self.oldest.position

    @property
    def has_passed(self) -> bool:
        """Whether the oldest for a quota that spares what is delayed is acknowledged: mark-delete may stay then."""
        return self._ripe is not None and not self.under_way and not self._ripe.is_current

    def find_oldest(self, found: Callable[[Oldest | None, Now], None], now: Now) -> None:
        """Find the oldest entry that a durable subscription has not acknowledged; ``found`` gets it, or None."""
        topic = self._topic
        first = first_unacked(topic.ledger, expiring(topic.stored))
        known = self.oldest
        if first is None or (known is not None and known.position == first[0]):
            self.oldest = None if first is None or known is None else known._replace(subscription=first[1])
            found(self.oldest, now)
            return
        position, name = first

        def settle(begins: int, when: Now) -> None:
            self.oldest = Oldest(position, begins, name)
            found(self.oldest, when)

        topic.read_entry(
            position,
            lambda entry, when: settle(age_begins(entry), when),
            lambda _: settle(self._at_the_latest(position), now),
            now,
        )

    def _at_the_latest(self, position: Position) -> int:
        """When an entry that cannot be read was appended, at the latest."""
        info = self._topic.ledger.ledgers.get(position.ledger_id)
        return info.closed if info is not None and info.closed else self._topic.ledger.last_append_time

    # What is too old

    def _found(self, oldest: Oldest | None, now: Now) -> None:
        if oldest is None or not self._topic.stored.in_use:
            self._ripens = NEVER
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
            self._find_end(oldest, until, self._let_go_before, now)
        elif evicts:  # and something is spared
            until = now.wall - limits.target
            self._find_end(oldest, until, partial(self._spare_before, until), now)
        else:
            self._finish(due_at(limits, oldest.begins, now.wall, ripe), now)

    def _find_end(self, oldest: Oldest, until: int, found: Callable[[Position, Now], None], now: Now) -> None:
        """The first entry that begins to age later than ``until``, for ``found``."""
        at = oldest.position
        find_first(
            self._topic,
            Position(at.ledger_id, at.entry_id - 1),
            lambda entry: age_begins(entry) > until,
            found,
            lambda _: self._finish(now.wall + RETRY_MS, now),
            now,
            unread=lambda position: self._at_the_latest(position) > until,
        )

    def _spare_before(self, until: int, position: Position, now: Now) -> None:
        """What comes before an entry goes, but what falls due later than ``until``."""

        def spared(when: Now) -> None:
            self.find_oldest(partial(self._pause, 0), when)

        spare(self._topic, expiring(self._topic.stored), position, until, spared, now)

    def _let_go_before(self, position: Position, now: Now) -> None:
        self._topic.locate(position, self._let_go, lambda _: self._finish(now.wall + RETRY_MS, now), now)

    def _let_go(self, mark: Position, messages: int, size: int, now: Now) -> None:
        subscriptions = [each for each in self._topic.subscriptions.values() if each.name != COMPACTION_SUBSCRIPTION]
        behind = [each for each in subscriptions if each.cursor.mark_delete < mark]
        left, retry = len(behind) + 1, 0

        def done(when: Now) -> None:
            nonlocal left
            left -= 1
            if not left:
                self.find_oldest(partial(self._pause, retry), when)

        for subscription in behind:
            try:
                subscription.clearing.expire_to(mark, messages, size, done, now)
            except (PreconditionFailed, NotFound):  # it is being reset
                retry = now.wall + RETRY_MS
                done(now)
        done(now)

    def _pause(self, retry: int, oldest: Oldest | None, now: Now) -> None:
        if oldest is None:
            self._paused(retry, self._without_backlog(now), now)
        elif self._ripe is None:
            self._paused(retry, due_at(self._limits, oldest.begins, now.wall), now)
        else:
            self._ripe.find(partial(self._pause_ripe, retry, oldest), self._at_the_latest, now)

    def _pause_ripe(self, retry: int, oldest: Oldest, ripe: int, now: Now) -> None:
        self._ripens = ripe
        self._paused(retry, due_at(self._limits, oldest.begins, now.wall, ripe), now)

    def _paused(self, retry: int, due: int, now: Now) -> None:
        self._finish(retry or (max(due, now.wall + PAUSE_MS) if due else 0), now)

    def _without_backlog(self, now: Now) -> int:
        """When to look again where no confirmed entry is left: others may be on their way to the disk."""
        ledger = self._topic.ledger
        return now.wall + RETRY_MS if ledger.total_messages > ledger.confirmed_messages else 0

    def _finish(self, again_at: int, now: Now) -> None:
        self.under_way = False
        self._topic.core.under_way -= 1
        self.is_known = True
        if not self._topic.stored.in_use:
            return
        if self._ripe is not None:  # what is on its way may get old before all that was looked at
            again_at = first_of(again_at, self._without_backlog(now))
        self._again_at = again_at
        self._topic.upkeep.deadline.settled(again_at)
        self._topic.backlog.aged(now)
        if self._again:
            self._start(now)
