"""Grouping of dead letters by cause: reads a topic's newest entries in steps and counts them by fingerprint.

Groups are computed per request and not stored. The work is bounded by the number of entries, the memory by the number
of groups.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from pulsarbox.broker.replay.entry_messages import Schemas, open_entry
from pulsarbox.broker.replay.message_filter import Wanted
from pulsarbox.broker.transactions.visibility import visible_runs
from pulsarbox.clock import Now
from pulsarbox.errors import EntryDamaged
from pulsarbox.protocol.dead_letters.fingerprint import Fingerprint, fingerprint
from pulsarbox.storage.format import EntryFlag
from pulsarbox.storage.record import Entry, Position

if TYPE_CHECKING:
    from pulsarbox.broker.replay.job_services import JobServices
    from pulsarbox.broker.topic.topic import PersistentTopic

LIMIT: Final = 10_000
LIMIT_MAX: Final = 1_000_000
"""Default and maximum number of entries examined."""
GROUPS_MAX: Final = 1000
"""Maximum number of groups; further ones are counted as one."""
READ_ENTRIES: Final = 200
READ_BYTES: Final = 1 << 20


@dataclass
class FailureGroup:
    """Messages with the same fingerprint."""

    of: Fingerprint
    count: int
    first: int
    """When the first one became a dead letter (ms since 1970)."""
    last: int
    sample: str
    """Message id of the newest one: ``ledger:entry:partition:index``."""
    topic: str
    """Topic or partition of the newest one."""

    def merge(self, other: "FailureGroup") -> None:
        """Add the messages of another group."""
        self.count += other.count
        self.first = min(self.first, other.first)
        if other.last >= self.last:
            self.last, self.sample, self.topic = other.last, other.sample, other.topic

    def as_json(self) -> dict[str, Any]:
        """Return the group for the Admin API."""
        digest, reason, origin, subscription, shape = self.of
        told = {"fingerprint": digest, "reason": reason, "origin": origin, "subscription": subscription, "shape": shape}
        when = {"count": self.count, "first": self.first, "last": self.last}
        return told | when | {"sample": self.sample, "sampleTopic": self.topic}


Groups = dict[str, FailureGroup]


def grouped(
    source: str, schemas: Schemas, most: int, wanted: Wanted | None, unacked: Mapping[int, int], entries: list[Entry]
) -> Groups:
    """Return the groups of some entries. ``unacked``: by entry id, the bits of the messages to count; -1 for all."""
    found: Groups = {}
    for entry in entries:
        bits = unacked.get(entry.entry_id, 0)
        if not bits or entry.flags & EntryFlag.MARKER:
            continue
        opened = open_entry(entry, source, schemas, most)
        for message in opened.messages:
            if message.index >= 0 and not bits >> message.index & 1:
                continue
            if wanted is not None and not wanted(message):
                continue
            mark = fingerprint(message)
            count = 1 if message.index >= 0 or bits < 0 else bits.bit_count()
            if message.index < 0 and bits < 0:
                count = entry.num_messages
            one = FailureGroup(mark, count, entry.publish_time, entry.publish_time, message.message_id, source)
            merge(found, {mark.digest: one})
    return found


def merge(into: Groups, more: Groups) -> None:
    """Merge groups into others; above GROUPS_MAX, new ones are merged into one group."""
    for group in more.values():
        is_new = group.of.digest not in into and len(into) >= GROUPS_MAX
        each = replace(group, of=_OTHERS) if is_new else group
        known = into.setdefault(each.of.digest, each)
        if known is not each:
            known.merge(each)


_OTHERS: Final = Fingerprint("", "others (too many groups)", "", "", "")


class Grouping:
    """One grouping of the newest entries of some topics."""

    def __init__(
        self,
        topics: Iterable["PersistentTopic"],
        services: "JobServices",
        subscription: str,
        limit: int,
        wanted: Wanted | None,
        done: Callable[["Grouping", Now], None],
    ) -> None:
        """``subscription``: group only its unacknowledged messages; empty for all stored ones. ``limit``: entries."""
        self._topics = list(topics)
        self._services = services
        self._subscription = subscription
        self._each = max(1, limit // max(1, len(self._topics)))
        self._wanted = wanted
        self._done = done
        self._end = Position(-1, -1)
        self.groups: Groups = {}
        self.entries = 0
        """Entries examined."""
        self.of = sum(topic.ledger.confirmed_entries for topic in self._topics)
        """Entries stored in all topics."""

    def begin(self, now: Now) -> None:
        """Start with the first topic."""
        self._next(now)

    def _next(self, now: Now) -> None:
        if not self._topics:
            self._done(self, now)
            return
        ledger = self._topics[0].ledger
        self._end = ledger.read_end
        left, start = self._each, ledger.next(-1, -1)
        for info in reversed(ledger.ledgers.values()):
            if info.confirmed >= left:
                start = Position(info.ledger_id, info.confirmed - left)
                break
            left -= info.confirmed
        self._read(start, now)

    def _read(self, at: Position, now: Now) -> None:
        topic = self._topics[0]
        ledger = topic.ledger
        at = ledger.clamp(*at)
        info = ledger.ledgers.get(at.ledger_id)
        if at > self._end or info is None or not topic.stored.in_use:
            self._topics.pop(0)
            self._next(now)
            return
        last = min(at.entry_id + READ_ENTRIES, info.confirmed) - 1
        if at.ledger_id == self._end.ledger_id:
            last = min(last, self._end.entry_id)
        schemas = self._services.schemas.by_version(topic.name)
        most = self._services.max_message_size
        unacked = self._unacked(topic, at, last)
        work = partial(_fingerprint_entry, partial(grouped, str(topic.name), schemas, most, self._wanted, unacked))
        self._services.reads.ask_for_work(at.ledger_id, at.entry_id, last, READ_BYTES, partial(self._answer, at), work)

    def _unacked(self, topic: "PersistentTopic", at: Position, last: int) -> dict[int, int]:
        subscription = topic.subscriptions.get(self._subscription)
        found = range(at.entry_id, last + 1)
        if subscription is None:
            counts = dict.fromkeys(found, 0)
            for first, end in (
                ()
                if self._subscription
                else visible_runs(topic.stored, self._services.catalog, at.ledger_id, at.entry_id, last + 1)
            ):
                counts.update(dict.fromkeys(range(first, end), -1))
            return counts
        cursor = subscription.cursor
        open_ones = [entry_id for entry_id in found if not cursor.is_acked(at.ledger_id, entry_id)]
        partly = {entry_id: cursor.batch_acks.get((at.ledger_id, entry_id)) for entry_id in open_ones}
        return {entry_id: -1 if each is None else each[1] for entry_id, each in partly.items()}

    def _answer(self, at: Position, found: tuple[int, Groups] | None, error: Exception | None, now: Now) -> None:
        if found is not None:
            last, groups = found
            self.entries += last + 1 - at.entry_id
            merge(self.groups, groups)
        else:
            last = error.last if isinstance(error, EntryDamaged) else (1 << 62)  # trimmed: continue in the next ledger
        self._read(self._topics[0].ledger.next(at.ledger_id, last), now)


def _fingerprint_entry(look: Callable[[list[Entry]], Groups], entries: list[Entry]) -> tuple[int, Groups]:
    return entries[-1].entry_id, look(entries)
