"""Rollover and trimming of a topic's ledgers, and the deadline of the next check.

Works on the stored topic alone, so unused topics are maintained without being loaded.
"""

from collections.abc import Callable, Collection
from typing import Final, NamedTuple, Protocol

from pulsarbox.broker.backlog.unsubscribed_messages import NEVER, TopicUnsubscribed, UnsubscribedServices
from pulsarbox.broker.policies.kinds.retention import (
    DISABLED,
    RETENTION,
    UNLIMITED,
    LedgerBounds,
    Retention,
    current_ledger_retention,
    ledger_bounds,
)
from pulsarbox.broker.policies.kinds.unsubscribed_retention import OFF, bounds_of
from pulsarbox.broker.policies.policies import TopicPolicies
from pulsarbox.broker.services import HasEvents, HasSettings
from pulsarbox.broker.topic.maintenance.deadline_index import TopicDeadline, first_of
from pulsarbox.clock import Now, in_words
from pulsarbox.names import COMPACTION_SUBSCRIPTION
from pulsarbox.storage.catalog import ledger_key
from pulsarbox.storage.cursor import ManagedCursor
from pulsarbox.storage.ledger import LedgerInfo, ManagedLedger
from pulsarbox.storage.record import Position
from pulsarbox.storage.recovery import StoredTopic, ledger_row

NOWHERE = Position(2**63, 0)
DELAYED_BYTES: Final = 64 << 20
"""Maximum size of a ledger with delayed messages, which keep it from being trimmed until they are due."""


class Trim(NamedTuple):
    """Ledgers that can be dropped now, and when more may become droppable (ms since 1970; 0: not by time alone)."""

    ledgers: tuple[int, ...]
    again_at: int


def trimmable(
    ledger: ManagedLedger,
    cursors: Collection[ManagedCursor],
    retention: Retention,
    now_ms: int,
    *,
    held: Callable[[int], bool] | None = None,
    retained: Callable[[LedgerInfo], Retention] | None = None,
) -> Trim:
    """Return the closed ledgers that can be dropped, oldest first. Pure.

    ``cursors`` are those of the durable subscriptions. Without any, only retention keeps closed ledgers, as in Pulsar.
    A ledger that a cursor needs does not keep later ones. ``held`` returns whether a ledger has entries of an open
    transaction, which needs it. ``retained`` returns a ledger's retention if that is not the same for all.
    """
    going: list[int] = []
    size = ledger.size
    for info in list(ledger.ledgers.values())[:-1]:
        if info.confirmed < info.entries:
            break
        needed = not all(cursor.is_done_with(info) for cursor in cursors)
        needed = needed or (held is not None and held(info.ledger_id))
        if needed:
            continue
        if retained is not None:
            retention = retained(info)
        too_large = retention.size != UNLIMITED and size - info.size >= retention.size
        too_old = retention.time_ms != UNLIMITED and now_ms - info.closed >= retention.time_ms
        if not too_large and not too_old:
            again_at = info.closed + retention.time_ms if retention.time_ms != UNLIMITED else 0
            return Trim(tuple(going), again_at)
        going.append(info.ledger_id)
        size -= info.size
    return Trim(tuple(going), 0)


class LedgerServices(UnsubscribedServices, HasSettings, HasEvents, Protocol):
    """The services of the broker that roll over and trim ledgers."""


class TopicLedgers:
    """Rolls over and trims the ledgers of one stored topic."""

    # As in ManagedLedger.
    __slots__ = (
        "_bounds", "_commits", "_deadline", "_ledger", "_max_entries", "_old_at", "_policies", "_services", "_stored",
        "_unneeded_due", "growing", "oldest_end", "trim_due", "unsubscribed",
    )  # fmt: skip

    def __init__(
        self, services: LedgerServices, stored: StoredTopic, policies: TopicPolicies, deadline: TopicDeadline
    ) -> None:
        self._services = services
        self._commits = services.commits
        self._stored = stored
        self._ledger = stored.ledger
        self._policies = policies
        self._deadline = deadline
        self.unsubscribed = TopicUnsubscribed(services, stored, policies)
        """The topic's unsubscribed messages."""
        self._max_entries = services.settings.managedLedgerMaxEntriesPerLedger
        self._bounds = self._find_bounds()
        self._old_at = self._ledger.current.created + self._bounds.age if deadline.at else 0
        """When the current ledger is to be closed for its age (ms since 1970); 0 if no deadline is set for it yet."""
        self._unneeded_due = self._ledger.current.entries > 0
        """Only a subscription keeps the current ledger from being dropped, or that has not been checked yet."""
        self.trim_due = len(self._ledger.ledgers) > 1
        """A ledger was closed, and no trim has run since its last entry became durable."""
        self._find_ends()

    def _find_bounds(self) -> LedgerBounds:
        settings = self._services.settings
        size = settings.managedLedgerMaxSizePerLedgerMbytes << 20
        age = settings.managedLedgerMaxLedgerRolloverTimeMinutes * 60_000 or 2**62
        time_ms = self.unsubscribed.time_ms
        if time_ms != OFF:
            return bounds_of(time_ms, self._services.unsubscribed.limit, LedgerBounds(size, age))
        return ledger_bounds(self._policies.get(RETENTION), LedgerBounds(size, age))

    def holds_delayed(self) -> None:
        """Limit the size of the current ledger, which has a delayed message and may have to stay for long."""
        if self._bounds.size > DELAYED_BYTES:
            self._bounds = self._bounds._replace(size=DELAYED_BYTES)

    def for_append(self, now: Now) -> LedgerInfo:
        """Return the ledger for the next entry, a new one if the current one is full or old."""
        info = self._ledger.current
        if info.entries >= self._max_entries or info.size >= self._bounds.size or now.wall >= self._old_at:
            return self._next_for_append(now)
        return info

    def _next_for_append(self, now: Now) -> LedgerInfo:
        info = self._ledger.current
        if not info.entries:  # an empty one only gets older
            self._old_at = now.wall + self._bounds.age
        elif not self._old_at and now.wall < info.created + self._bounds.age:
            self._old_at = info.created + self._bounds.age
        else:
            info = self.roll_over(now)
            self._old_at = now.wall + self._bounds.age
        after = self._unneeded_after()
        self._deadline.want(self._old_at if after < 0 else min(self._old_at, now.wall + after))
        return self._ledger.current

    def _unneeded_after(self) -> int:
        least = self._services.settings.managedLedgerMinLedgerRolloverTimeMinutes * 60_000
        time_ms = self.unsubscribed.time_ms
        if time_ms != OFF and (self._ledger.current.entries == 0 or self.unsubscribed.is_in(self._ledger.current)):
            return current_ledger_retention(Retention(time_ms, UNLIMITED), least)
        return current_ledger_retention(self._policies.get(RETENTION), least)

    def subscribed(self, now: Now) -> None:
        """Handle a new durable subscription.

        From the first one on, Pulsar's rules replace unsubscribed retention: messages that it does not need are
        trimmed after the minimum rollover time.
        """
        if self.unsubscribed.count_at != NEVER:
            self._unneeded_due = self._ledger.current.entries > 0
            self._bounds = self._find_bounds()
            self._find_ends()
            self.unsubscribed.count(now)
            least = self._services.settings.managedLedgerMinLedgerRolloverTimeMinutes * 60_000
            self._deadline.want(now.wall + least)

    def unsubscribed_from(self, now: Now) -> None:
        """Handle the deletion of a durable subscription."""
        self.unsubscribed.unsubscribe(now)
        self._bounds = self._find_bounds()

    def roll_over(self, now: Now) -> LedgerInfo:
        """Close the current ledger and open the next."""
        ledger, commits = self._ledger, self._commits
        before = ledger.current
        info = ledger.open_ledger(commits.new_id(), now.wall)
        for each in (before, info):
            commits.put_row(ledger_key(ledger.topic_id, each.ledger_id), ledger_row(ledger, each))
        self.trim_due = True
        self._unneeded_due = False
        self._find_ends()
        return info

    def _find_ends(self) -> None:
        ledger = self._ledger
        oldest = next(iter(ledger.ledgers.values()))
        can_go = oldest is not ledger.current or self._unneeded_due
        self.oldest_end = Position(oldest.ledger_id, oldest.entries - 1) if can_go else NOWHERE
        """Last entry of the oldest ledger, if droppable: a cursor that reaches it may be the last to need it."""
        self.growing = ledger.current.ledger_id + self._unneeded_due
        """Ledgers with lower ids can be dropped once they are acknowledged."""

    def close(self, age: int, now: Now) -> int | None:
        """Close the current ledger if it has entries and is at least ``age`` ms old; return its id, else None."""
        current = self._ledger.current
        if not current.entries or now.wall < current.created + age:
            return None
        self.roll_over(now)
        self._old_at = 0
        return current.ledger_id

    def may_release_ledger(self, cursor: ManagedCursor, ledger_id: int) -> bool:
        """Return whether a cursor that has just acknowledged an entry may have been the last to need its ledger."""
        info = self._ledger.ledgers.get(ledger_id)
        return info is not None and ledger_id < self.growing and cursor.is_done_with(info)

    def trim(self, now: Now) -> list[int]:
        """Drop the ledgers that neither a subscription nor retention needs; return their ids."""
        if self._unneeded_due:
            self._deadline.want(self._close_unneeded(now))
        going, again_at = self._trim(now)
        self._deadline.want(again_at)
        return going

    def truncate(self, now: Now) -> list[int]:
        """Drop every ledger without a backlog, even the current one, regardless of retention; return their ids."""
        current = self._ledger.current
        if current.entries and current.confirmed == current.entries:
            self.roll_over(now)
        return self._trim(now, DISABLED)[0]

    @property
    def _cursors(self) -> Collection[ManagedCursor]:
        return self._stored.cursors.values()

    def _trim(self, now: Now, retention: Retention | None = None) -> tuple[list[int], int]:
        """Trim without setting the deadline; also return when more may be droppable (ms since 1970; 0: not by time)."""
        ledger = self._ledger
        self.trim_due = not ledger.closed_are_confirmed
        retained: Callable[[LedgerInfo], Retention] | None = None
        if retention is None:
            retention = self._policies.get(RETENTION)
            if self.unsubscribed.time_ms != OFF:
                retained = self._retention_of
        going, again_at = trimmable(ledger, self._cursors, retention, now.wall, held=self._held, retained=retained)
        if going and retained is not None:
            self._report_trimmed(going, f"after {in_words(self.unsubscribed.time_ms)}", "time", now)
        self._drop(going, now)
        return list(going), again_at

    def _retention_of(self, info: LedgerInfo) -> Retention:
        """Return the retention of a ledger while unsubscribed retention applies."""
        return Retention(self.unsubscribed.time_ms, UNLIMITED) if self.unsubscribed.is_in(info) else DISABLED

    @property
    def _held(self) -> Callable[[int], bool] | None:
        return self._stored.open.holds if self._stored.open else None

    def trim_unsubscribed(self, now: Now) -> list[int]:
        """Drop the oldest ledger with unsubscribed messages, regardless of its age; return its id.

        Return an empty list if there is none or it cannot be dropped yet.
        """
        oldest = self.unsubscribed.oldest
        if oldest is None or self.unsubscribed.time_ms == OFF:
            self.unsubscribed.count(now)
            return []
        held = self._held
        needed = any(not cursor.is_done_with(oldest) for cursor in self._cursors)
        if needed or oldest.confirmed < oldest.entries or (held is not None and held(oldest.ledger_id)):
            return []
        if oldest is self._ledger.current:
            self.close(0, now)
        going = [oldest.ledger_id]
        self._report_trimmed(going, "to keep all topics within unsubscribedRetentionSize", "size", now)
        self._drop(going, now)
        return going

    def _report_trimmed(self, going: Collection[int], why: str, reason: str, now: Now) -> None:
        """Report messages whose unsubscribed retention has ended."""
        infos = [info for each in going if self.unsubscribed.is_in(info := self._ledger.ledgers[each])]
        if infos:
            size, count = sum(info.size for info in infos), sum(map(self._ledger.messages_of, infos))
            text = f"{count:,} messages ({size:,} bytes) not covered by any subscription are deleted {why}"
            self._services.events.report(
                "unsubscribed-trimmed", self._stored.name, text, now, messages=count, bytes=size, reason=reason
            )

    def _drop(self, going: Collection[int], now: Now) -> None:
        ledger = self._ledger
        holed: dict[int, LedgerInfo] = {}
        compacted = going and any(cursor.name == COMPACTION_SUBSCRIPTION for cursor in self._stored.cursors.values())
        for ledger_id in going:
            entries = ledger.ledgers[ledger_id].entries
            behind = ledger.drop(ledger_id)
            self._commits.drop_ledger(ledger, ledger_id, now)
            holed.pop(ledger_id, None)
            if behind is not None:
                holed[behind.ledger_id] = behind
                for cursor in self._cursors:
                    if compacted:
                        cursor.keep_in_view(ledger_id, entries)
                    if cursor.forget_ledger(ledger_id) or compacted:
                        self._commits.cursor_changed(cursor, now)
        for info in holed.values():
            self._commits.put_row(ledger_key(ledger.topic_id, info.ledger_id), ledger_row(ledger, info))
        self._find_ends()
        if going:
            self.unsubscribed.count(now)

    def _close_unneeded(self, now: Now) -> int:
        """Close the current ledger if neither retention nor a cursor needs it; return when to check again."""
        ledger, after = self._ledger, self._unneeded_after()
        current = ledger.current
        self._unneeded_due = False
        if after < 0 or not current.entries or current.confirmed < current.entries:
            return 0
        if now.wall < ledger.last_append_time + after:
            return ledger.last_append_time + after
        if all(cursor.is_done_with(current) for cursor in self._cursors):
            self.roll_over(now)
        else:
            self._unneeded_due = True
            self._find_ends()
        return 0

    def maintain(self, now: Now) -> tuple[list[int], int]:
        """Close an old current ledger and trim; return the dropped ids and when to check again (0: never)."""
        self._bounds = self._find_bounds()
        current = self._ledger.current
        again_at = 0
        if current.entries and current.confirmed == current.entries:
            again_at = old_at = current.created + self._bounds.age
            if now.wall >= old_at:
                self.roll_over(now)
                old_at = again_at = 0
            else:
                unneeded_at = self._close_unneeded(now)
                if self._ledger.current is not current:
                    old_at = again_at = 0
                elif unneeded_at:
                    again_at = min(again_at, unneeded_at)
            self._old_at = old_at
        elif current.entries:
            again_at = now.wall + 1000  # unconfirmed entries will be durable in a second
        else:
            self._old_at = 0
        going, trim_at = self._trim(now)
        self.unsubscribed.count(now)
        return going, first_of(again_at, trim_at)
