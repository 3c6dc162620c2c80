"""The life of a topic's ledgers: when the one that grows is closed, when closed ones are trimmed, when to look again.

It works on the stored topic alone, so that topics which nobody uses are kept in order without being loaded.
"""

from typing import NamedTuple

from pulsarbox.broker.core import Core
from pulsarbox.broker.policies.policies import TopicPolicies
from pulsarbox.broker.policies.retention import DISABLED, RETENTION, UNLIMITED, Retention
from pulsarbox.clock import Now
from pulsarbox.storage.catalog import deadline_key, ledger_key, topic_key
from pulsarbox.storage.ledger import LedgerInfo, ManagedLedger
from pulsarbox.storage.record import Position
from pulsarbox.storage.recovery import StoredTopic, ledger_row

NOWHERE = Position(2**63, 0)


class Trim(NamedTuple):
    """What can go now, and when more may (ms since 1970; 0: not by the passing of time)."""

    ledgers: tuple[int, ...]
    again_at: int


def trimmable(ledger: ManagedLedger, slowest: Position | None, retention: Retention, now_ms: int) -> Trim:
    """The closed ledgers that nobody needs, oldest first. Pure.

    ``slowest`` is the mark-delete of the durable subscription that is furthest behind, None where there is none: then
    only retention holds the closed ledgers, as in Pulsar.
    """
    going: list[int] = []
    size = ledger.size
    for info in list(ledger.ledgers.values())[:-1]:
        if info.confirmed < info.entries:
            break
        if slowest is not None and slowest < (info.ledger_id, info.entries - 1):
            break
        too_large = retention.size != UNLIMITED and size - info.size >= retention.size
        too_old = retention.time_ms != UNLIMITED and now_ms - info.closed >= retention.time_ms
        if not too_large and not too_old:
            again_at = info.closed + retention.time_ms if retention.time_ms != UNLIMITED else 0
            return Trim(tuple(going), again_at)
        going.append(info.ledger_id)
        size -= info.size
    return Trim(tuple(going), 0)


class TopicLedgers:
    """Rolls over and trims the ledgers of one stored topic, and keeps its deadline."""

    # As in ManagedLedger.
    __slots__ = (
        "_core", "_ledger", "_max_age", "_max_entries", "_max_size", "_old_at", "_policies", "_stored", "deadline",
        "oldest_end", "trim_due",
    )  # fmt: skip

    def __init__(self, core: Core, stored: StoredTopic, policies: TopicPolicies) -> None:
        self._core = core
        self._stored = stored
        self._ledger = stored.ledger
        self._policies = policies
        settings = core.settings
        self._max_entries = settings.managedLedgerMaxEntriesPerLedger
        self._max_size = settings.managedLedgerMaxSizePerLedgerMbytes << 20
        self._max_age = settings.managedLedgerMaxLedgerRolloverTimeMinutes * 60_000 or 2**62
        row = core.catalog.get(topic_key(stored.name)) or {}
        self.deadline: int = row.get("deadline", 0)
        self._old_at = self._ledger.current.created + self._max_age if self.deadline else 0
        """When the ledger that grows is to be closed for its age (ms since 1970); 0 where no deadline says so yet."""
        self.trim_due = len(self._ledger.ledgers) > 1 and not self.deadline
        """A ledger was closed, and it was not looked at since whether one can go."""
        self.oldest_end = self._oldest_end()
        """The end of the oldest ledger, if it is closed: a cursor that comes to it may be the last that held it."""

    def for_append(self, now: Now) -> LedgerInfo:
        """The ledger that takes the next entry: a new one where the last is full or old."""
        info = self._ledger.current
        if info.entries >= self._max_entries or info.size >= self._max_size or now.wall >= self._old_at:
            return self._next_for_append(now)
        return info

    def _next_for_append(self, now: Now) -> LedgerInfo:
        info = self._ledger.current
        if not info.entries:  # an empty one only gets older
            self._old_at = now.wall + self._max_age
        elif not self._old_at and now.wall < info.created + self._max_age:
            self._old_at = info.created + self._max_age
        else:
            info = self.roll_over(now)
            self._old_at = now.wall + self._max_age
        if not self.deadline or self._old_at < self.deadline:
            self._set_deadline(self._old_at)
        return self._ledger.current

    def roll_over(self, now: Now) -> LedgerInfo:
        """Close the ledger that grows and open the next."""
        ledger, commits = self._ledger, self._core.commits
        before = ledger.current
        info = ledger.open_ledger(commits.new_id(), now.wall)
        for each in (before, info):
            commits.put_row(ledger_key(ledger.topic_id, each.ledger_id), ledger_row(ledger, each))
        self.trim_due = True
        self.oldest_end = self._oldest_end()
        return info

    def _oldest_end(self) -> Position:
        oldest = next(iter(self._ledger.ledgers.values()))
        return NOWHERE if oldest is self._ledger.current else Position(oldest.ledger_id, oldest.entries - 1)

    def trim(self, now: Now) -> list[int]:
        """Drop the ledgers that nobody needs any more; gives their ids."""
        going, again_at = self._trim(now)
        if again_at and (not self.deadline or again_at < self.deadline):
            self._set_deadline(again_at)
        return going

    def truncate(self, now: Now) -> list[int]:
        """Drop every ledger that nobody needs, whatever retention says, the one that grows too; gives their ids."""
        current = self._ledger.current
        if current.entries and current.confirmed == current.entries:
            self.roll_over(now)
        return self._trim(now, DISABLED)[0]

    def _trim(self, now: Now, retention: Retention | None = None) -> tuple[list[int], int]:
        """The same without the deadline: also gives when more may go (ms since 1970; 0: not by the passing of time)."""
        self.trim_due = False
        ledger = self._ledger
        slowest = min((cursor.mark_delete for cursor in self._stored.cursors.values()), default=None)
        if retention is None:
            retention = self._policies.get(RETENTION)
        going, again_at = trimmable(ledger, slowest, retention, now.wall)
        for ledger_id in going:
            ledger.drop(ledger_id)
            self._core.commits.drop_ledger(ledger, ledger_id, now)
        self.oldest_end = self._oldest_end()
        return list(going), again_at

    def fall_due(self, now: Now) -> list[int]:
        """The deadline has come: close what is old, drop what can go, and say when to look again."""
        current = self._ledger.current
        again_at = 0
        if current.entries and current.confirmed == current.entries:
            old_at = current.created + self._max_age
            if now.wall >= old_at:
                self.roll_over(now)
                self._old_at = 0
            else:
                self._old_at = again_at = old_at
        elif current.entries:
            again_at = now.wall + 1000  # entries are on their way to the disk: in a second they are there
        else:
            self._old_at = 0
        going, trim_at = self._trim(now)
        self._set_deadline(min((at for at in (again_at, trim_at) if at), default=0))
        return going

    def forget_deadline(self) -> None:
        """The topic is deleted."""
        if self.deadline:
            self._core.commits.put_row(deadline_key(self.deadline, self._stored.topic_id), None)
            self.deadline = 0

    def _set_deadline(self, wall: int) -> None:
        commits, topic_id = self._core.commits, self._stored.topic_id
        if self.deadline:
            commits.put_row(deadline_key(self.deadline, topic_id), None)
        row = self._core.catalog.get(topic_key(self._stored.name)) or {}
        row.pop("deadline", None)
        if wall:
            commits.put_row(deadline_key(wall, topic_id), {"topic": self._stored.name})
            row["deadline"] = wall
        commits.put_row(topic_key(self._stored.name), row)
        self.deadline = wall
        if wall:
            self._core.deadlines.set(wall)
