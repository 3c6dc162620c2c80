"""The rules of storage: state after a start, deleted ledgers, and data in memory and on disk."""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING

from pulsarbox.storage.catalog import Catalog, deadline_key, topic_key
from pulsarbox.storage.cursor import ManagedCursor
from pulsarbox.storage.engine import Recovery
from pulsarbox.storage.ledger import LedgerInfo, ManagedLedger
from pulsarbox.storage.record import Position
from pulsarbox.storage.recovery import Store, StoredTopic
from tests.simulation.model.letters import TOPIC_SUFFIX
from tests.simulation.model.tables import is_seen
from tests.simulation.model.views import SubView, TopicView
from tests.simulation.rules.checker import Checker
from tests.simulation.rules.delayed_checkers import rows_of

if TYPE_CHECKING:
    from tests.simulation.model.model import Model


def shadow_of(live: Store, recovery: Recovery) -> Store:
    """Return a store over the current rows, to load topics there that the broker has not loaded."""
    shadow = Store(recovery._replace(batches=iter(())))
    shadow.catalog = live.catalog
    return shadow


class Recovered(Checker):
    """A recovery would at any time, while no write is pending, produce the state of the broker."""

    rule = "recovered"

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self._turns = 0

    def turn(self) -> None:
        """See Checker."""
        self._turns += 1
        if self._turns % 40 == 0:
            self.compare()

    def compare(self) -> None:
        """Recover from the same disk beside the broker, and compare."""
        box = self.model.box
        commits = box.broker.commits
        waiting = commits.open.batch or commits.open.cursors or commits.open.callbacks
        if commits.in_flight is not None or waiting or box.disk.reads_under_way:
            return  # an acknowledgement of many entries may be applied in part
        live, recovery = box.broker.store, box.disk.peek()
        recovered, shadow = Store(recovery), shadow_of(live, recovery)
        for key in {*live.catalog.keys(""), *recovered.catalog.keys("")}:
            if key.partition("/")[0] not in ("acks", "ledger", "sequence", "delays", "delayed", "open"):
                ours, theirs = live.catalog.get(key), recovered.catalog.get(key)
                self.check(ours == theirs, "rows differ:", key, theirs, "should be", ours)
        keys = [list(store.catalog.keys("ledger/")) for store in (live, recovered)]
        self.check(keys[0] == keys[1], "ledgers in the catalog differ")
        for name in [key.partition("/")[2] for key in live.catalog.keys("topic/")]:
            row = live.catalog.get(topic_key(name)) or {}
            ours_or_none, theirs_or_none = live.topics.get(row["id"]) or shadow.topic(name), recovered.topic(name)
            assert ours_or_none is not None and theirs_or_none is not None
            self._compare_topic(ours_or_none, theirs_or_none)

    def _compare_topic(self, ours: StoredTopic, theirs: StoredTopic) -> None:
        found, right = _ledger_state(theirs.ledger), _ledger_state(ours.ledger)
        self.check(found == right, "ledgers differ:", ours.name, found, "should be", right)
        self.check(ours.cursors.keys() == theirs.cursors.keys(), "cursors differ:", ours.name)
        for cursor_id, cursor in ours.cursors.items():
            found, right = _cursor_state(theirs.cursors[cursor_id]), _cursor_state(cursor)
            self.check(found == right, "cursors differ:", ours.name, cursor.name, found, "should be", right)
        delays, ours_delays = rows_of(theirs.delays), rows_of(ours.delays)
        self.check(delays.items() <= ours_delays.items(), "delays differ:", ours.name, delays, ours_delays)
        theirs_highest, ours_highest = _highest(theirs), _highest(ours)
        same = theirs_highest == ours_highest
        open_here, open_there = ({txn: each.runs(txn) for txn in each} for each in (ours.open, theirs.open))
        self.check(open_there == open_here, "open entries differ:", ours.name, open_there, "should be", open_here)
        limits = ours.ledger.read_limit, theirs.ledger.read_limit
        self.check(limits[0] == limits[1], "read limits differ:", ours.name, limits)
        self.check(same, "sequence ids differ:", ours.name, theirs_highest, "should be", ours_highest)

    def finished(self) -> None:
        """See Checker."""
        self.compare()

    def abandoned(self) -> None:
        """See Checker."""
        self.compare()


def _cursor_state(cursor: ManagedCursor) -> list[object]:
    marks = (cursor.mark_delete, cursor.mark_messages, cursor.mark_bytes)
    backlogs = (cursor.backlog_messages, cursor.backlog_entries, cursor.backlog_bytes)
    state = [marks, backlogs, set(cursor.ranges), dict(cursor.batch_acks), dict(cursor.redeliveries)]
    return [*state, set(cursor.in_view)]


def _highest(stored: StoredTopic) -> dict[str, int]:
    """Return the highest sequence IDs. The last activity is omitted: the log has no record of a producer's leaving."""
    return {name: last.highest for name, last in stored.sequences.persisted.items()}


def _ledger_state(ledger: ManagedLedger) -> list[object]:
    fields = "ledger_id", "created", "closed", "messages_before", "bytes_before", "entries", "confirmed", "size", "hole"
    state: list[object] = [tuple(getattr(info, name) for name in fields) for info in ledger.ledgers.values()]
    totals = ("total_messages", "total_bytes", "last_confirmed", "confirmed_messages", "confirmed_bytes", "last_batch")
    return state + [f"{name}={getattr(ledger, name)}" for name in totals]


def _is_settled(info: LedgerInfo) -> bool:
    return info.confirmed == info.entries


class Trimmed(Checker):
    """A ledger is trimmed only when it is closed and acknowledged by all durable subscriptions, and then it is."""

    rule = "trimmed"

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self._turns = 0

    def turn(self) -> None:
        """See Checker."""
        self._turns += 1
        if self._turns % 20 == 0 and self.model.box.broker.commits.in_flight is None:
            for topic in self.model.topics.values():
                core = self.model.box.topic(topic.name)
                if core is not None and not core.ledgers.trim_due:  # otherwise trimmed with the next entries
                    self._check_needed(topic, core.stored)

    def _check_needed(self, topic: TopicView, stored: StoredTopic) -> None:
        """Check that a durable subscription has unacknowledged entries in each closed ledger."""
        if self.model.book is not None:
            return  # or retained, which the rules of policies judge
        if topic.name.endswith(TOPIC_SUFFIX):
            return  # a subscription unknown to the model retains the ledgers
        durable = [sub for sub in topic.subs.values() if sub.durable]
        if not durable and self.model.box.settings.unsubscribedRetentionTimeInMinutes:
            return  # retained for another reason, which has its own rule
        if any(sub.seeks or sub.unsure for sub in durable):
            return
        settled = takewhile(_is_settled, list(stored.ledger.ledgers.values())[:-1])
        unseen = [cursor for cursor in stored.cursors.values() if not is_seen(cursor)]
        held = {position.ledger_id for sub in durable for position in sub.left}
        closed = [i.ledger_id for i in settled if i.entries and all(cursor.is_done_with(i) for cursor in unseen)]
        unneeded = [each for each in closed if each not in held and not stored.open.holds(each)]
        self.check(not unneeded, "nobody needs them, they stay:", topic.name, unneeded, sorted(held))

    def trimmed(self, topic: TopicView, ledger_id: int, positions: list[Position]) -> None:
        """See Checker."""
        newest = max(topic.ledgers, default=0)
        core = self.model.box.topic(topic.name) if self.model.box.running else None
        if core is not None:
            newest = max(newest, core.ledger.current.ledger_id)
            self.check(newest > ledger_id, "the ledger that grows is trimmed:", topic.name, ledger_id, newest)
        for sub in topic.subs.values():
            deleted = core is not None and sub.name not in core.subscriptions  # deleted by the frame being processed
            unsure = sub.seeks or sub.unsure or self.model.pledges.unsettled
            if sub.durable and not deleted and not unsure:
                left = [position for position in positions if position in sub.left]
                self.check(not left, "trimmed before it is acknowledged:", topic.name, sub.name, left[:3])

    def stored(self, topic: TopicView, position: Position) -> None:
        """See Checker."""
        self.check(position.ledger_id not in topic.trimmed, "an entry comes into a trimmed ledger:", position)

    def recovered_topic(self, topic: TopicView, ledgers: set[int]) -> None:
        """See Checker."""
        back = topic.gone & ledgers
        self.check(not back, "trimmed ledgers are back:", topic.name, sorted(back))
        lost = [ledger_id for ledger_id in topic.ledgers if ledger_id not in ledgers]
        self.check(not lost, "a crash trims ledgers:", topic.name, lost)

    def finished(self) -> None:
        """See Checker."""
        for topic in self.model.topics.values():
            stored = shadow_of(self.model.box.broker.store, self.model.box.disk.peek()).topic(topic.name)
            assert stored is not None
            self._check_needed(topic, stored)


class Reloaded(Checker):
    """A reloaded topic has the state it had when it was unloaded."""

    rule = "reloaded"

    def reloaded(self, sub: SubView) -> None:
        """See Checker."""
        if sub.seeks or sub.unsure or self.model.pledges.unsettled:
            return
        cursor = sub.cursor
        for position, bits in sub.left.items():
            partly = cursor.batch_acks.get(position)
            entry = sub.topic.entries[position]
            left = 0 if cursor.is_acked(*position) else partly[1] if partly is not None else entry.all_bits
            self.check(left == bits, "other messages are acknowledged:", sub.name, position, bin(left), bin(bits))
        found = (cursor.backlog_messages, cursor.backlog_entries, cursor.backlog_bytes)
        right = (sub.messages, len(sub.left), sub.bytes)
        self.check(found == right, "another backlog:", sub.topic.name, sub.name, found, "should be", right)
        if sub.exact_counts:
            counts = {position: count for position, count in sub.counts.items() if count}
            found_counts = dict(cursor.redeliveries)
            self.check(found_counts == counts, "other redelivery counts:", sub.name, found_counts, counts)


class Orphans(Checker):
    """No row refers to a deleted object, and every ledger, cursor and topic has its owner."""

    rule = "orphans"

    def finished(self) -> None:
        """See Checker."""
        self._check(self.model.box.broker.store.catalog)
        self._check(Store(self.model.box.disk.peek()).catalog)

    def abandoned(self) -> None:
        """See Checker."""
        self.finished()

    def _check(self, catalog: Catalog) -> None:
        topics: dict[int, str] = {}
        for key in catalog.keys("topic/"):
            row = catalog.get(key) or {}
            topics[row["id"]] = key.partition("/")[2]
            wall = row.get("deadline")
            there = not wall or deadline_key(wall, row["id"]) in catalog
            self.check(there, "a topic without its deadline:", key, row)
        owned = dict(topics)
        cursors: set[int] = set()
        for kind in ("ledger", "cursor"):
            for key in catalog.keys(f"{kind}/"):
                topic_id, number = (int(part, 16) for part in key.split("/")[1:])
                self.check(topic_id in topics, "a row of no topic:", key)
                owned[number] = topics[topic_id]
                if kind == "cursor":
                    cursors.add(number)
        for key in catalog.keys("acks/"):
            self.check(int(key.split("/")[1], 16) in cursors, "acknowledgements of no cursor:", key)
        owners = {
            int(key.split("/")[1], 16): catalog.owner(int(key.split("/")[1], 16)) for key in catalog.keys("owner/")
        }
        self.check(owners == owned, "owners:", owners.items() ^ owned.items())
        self._check_transactions(catalog, topics)
        for key in catalog.keys("deadline/"):
            wall, topic_id = (int(part, 16) for part in key.split("/")[1:])
            row = catalog.get(topic_key(topics.get(topic_id, ""))) or {}
            self.check(row.get("deadline") == wall, "a deadline of nothing:", key, row)

    def _check_transactions(self, catalog: Catalog, topics: dict[int, str]) -> None:
        ledgers = {key.partition("/")[2] for key in catalog.keys("ledger/")}
        for key in catalog.keys("aborted/"):
            _, topic_id, ledger_id, _ = key.split("/")
            self.check(f"{topic_id}/{ledger_id}" in ledgers, "aborted entries of no ledger:", key)
        for key in catalog.keys("open/"):
            _, topic_id, txn_id = key.split("/", 2)
            row = catalog.get(f"txn/{txn_id}") or {}
            self.check(int(topic_id, 16) in topics and row.get("state") == "OPEN", "open entries of nothing:", key)
        for key in catalog.keys("pending/"):
            row = catalog.get("txn/" + "/".join(key.split("/")[1:3])) or {}
            self.check(row.get("state") == "OPEN", "acknowledgements in no open transaction:", key)


class GivenBack(Checker):
    """The disk space of trimmed ledgers is reclaimed in the end."""

    rule = "given-back"

    def abandoned(self) -> None:
        """See Checker."""
        disk = self.model.box.disk
        for topic in self.model.topics.values():
            held = [ledger_id for ledger_id in topic.trimmed if disk.store.holds(disk.engine, ledger_id)]
            self.check(not held, "trimmed ledgers still take disk:", topic.name, held)
        views = {int(key.rpartition("/")[2], 16) for key in self.model.box.broker.catalog.keys("compacted/")}
        held = [each for each in self.model.tables.compacted - views if disk.store.holds(disk.engine, each)]
        self.check(not held, "views that are no more still take disk:", held)


class Unloaded(Checker):
    """Unused topics are unloaded."""

    rule = "unloaded"

    def abandoned(self) -> None:
        """See Checker."""
        broker = self.model.box.broker
        if not self.model.box.settings.brokerUnloadIdleTopicsAfterSeconds:
            return
        loaded = [str(topic.name) for topic in broker.topics]
        self.check(not loaded, "topics stay in memory:", loaded)
        held = [stored.name for stored in broker.store.topics.values() if stored.in_use]
        self.check(not held, "stored topics stay in memory:", held)
        tail = [span[0].topic_id for span in broker.commits.tail_cache._spans]
        self.check(broker.commits.tail_cache.limit > 1 or len(tail) <= 1, "the tail cache holds", tail)
