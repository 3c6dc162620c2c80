"""The compacted view of one topic: its creation, replacement and readers.

The subscription ``__compaction`` retains messages that are not compacted yet, as in Pulsar. It is created by the first
compaction or by a threshold. Deleting it deletes the view.
"""

import logging
from typing import Final, Protocol

from pulsarbox.broker.compaction.compaction_history import CompactionRecord
from pulsarbox.broker.compaction.compaction_run import CompactionRun, CompactionServices
from pulsarbox.broker.persistence.group_commit import GroupCommit
from pulsarbox.broker.persistence.read_queue import Answer
from pulsarbox.broker.persistence.replication import ReplicatedTopic
from pulsarbox.broker.policies.kinds.compaction import COMPACTION_THRESHOLD
from pulsarbox.broker.policies.policies import TopicPolicies
from pulsarbox.broker.topic.maintenance.deadline_index import TopicDeadline
from pulsarbox.broker.topic.system_topics import is_system
from pulsarbox.clock import Now
from pulsarbox.errors import Conflict
from pulsarbox.names import COMPACTION_SUBSCRIPTION
from pulsarbox.storage.catalog import COMPACTING, Catalog, compacted_key, compacting_key
from pulsarbox.storage.compacted_ledger import CompactedView
from pulsarbox.storage.cursor import ManagedCursor
from pulsarbox.storage.recovery import StoredTopic

log = logging.getLogger(__name__)

NEVER: Final = 1 << 63
"""More bytes than any topic has."""


def drop_leftovers(catalog: Catalog, commits: GroupCommit, now: Now) -> None:
    """At the start, drop unfinished compacted ledgers and retired ones that only earlier readers used."""
    for key in list(catalog.keys(COMPACTING)):
        commits.put_row(key, None)
        commits.housekeeping.ledger_dropped(int(key.rpartition("/")[2], 16), now)


class CompactedTopic(ReplicatedTopic, Protocol):
    """The topic, as its compaction changes it."""

    def subscribe(self, name: str, *, earliest: bool, properties: dict[str, str], now: Now) -> object:
        """Create a durable subscription at the earliest or latest message."""

    def compacted(self, now: Now) -> None:
        """Handle a new compacted view: messages that only compaction retained may be dropped."""


class TopicCompaction:
    """The compaction of one loaded topic."""

    def __init__(
        self,
        services: CompactionServices,
        topic: CompactedTopic,
        stored: StoredTopic,
        policies: TopicPolicies,
        deadline: TopicDeadline,
    ) -> None:
        self._services = services
        self._catalog = services.catalog
        self._commits = services.commits
        self._timers = services.timers
        self._compactions = services.compactions
        self._topic = topic
        self._stored = stored
        self._ledger = stored.ledger
        self._policies = policies
        self._deadline = deadline
        self._topic_id = stored.topic_id
        self.view: CompactedView | None = None
        self.run: CompactionRun | None = None
        """The running or queued compaction."""
        self._began = 0.0
        self._looked_at = 0
        self.due_at = NEVER
        """Total bytes of the topic at which to check the policy."""
        self._readers: dict[int, set[object]] = {}
        """Current readers by compacted ledger."""
        self._retired: set[int] = set()
        """Replaced ledgers that still have readers."""
        if self._cursor is not None:
            for key in self._catalog.keys(compacted_key(self._topic_id)):
                row = self._catalog.get(key)
                assert row is not None
                self.view = CompactedView.of(int(key.rpartition("/")[2], 16), row)

    @property
    def _cursor(self) -> ManagedCursor | None:
        """The cursor of the subscription that retains messages not compacted yet."""
        cursors = self._stored.cursors.values()
        return next((cursor for cursor in cursors if cursor.name == COMPACTION_SUBSCRIPTION), None)

    @property
    def record(self) -> CompactionRecord | None:
        """Statistics of the topic since the box started; None if it was not compacted."""
        return self._compactions.records.get(self._stored.name)

    # Compact

    def start(self, now: Now) -> None:
        """Compact the topic up to its current end. Raises Conflict if a compaction is in progress."""
        if self.run is not None:
            raise Conflict("Compaction already in progress")
        self._subscribe(now)
        ledger, view = self._ledger, self.view
        if ledger.read_end > (view.horizon if view is not None else ledger.first_position()):
            self._began = now.monotonic
            self.run = CompactionRun(self._services, self._topic, self._stored, view, self._switch, self._ended)
            self._compactions.enqueue(self.run, now)
        else:
            self._compactions.record(self._stored.name).error = ""  # there is nothing to compact

    def cancel(self, now: Now) -> None:
        """Cancel the compaction; the view is unchanged. Raises Conflict if none is in progress."""
        if self.run is None:
            raise Conflict("Compaction is not running: there is nothing to cancel")
        self.run.cancel("cancelled on request", now)

    def rates(self, now: Now) -> tuple[float, float]:
        """Return bytes per second that the running compaction reads and writes."""
        run, seconds = self.run, now.monotonic - self._began
        return (
            (run.read_bytes / seconds, run.written_bytes / seconds) if run is not None and seconds > 0 else (0.0, 0.0)
        )

    def close(self, now: Now) -> None:
        """Cancel any compaction before the topic is unloaded or deleted."""
        if self.run is not None:
            self.run.cancel("interrupted: the topic was unloaded or deleted, or the box was stopped", now)

    def _subscribe(self, now: Now) -> None:
        if self._cursor is None:
            self._topic.subscribe(COMPACTION_SUBSCRIPTION, earliest=True, properties={}, now=now)

    def _switch(self, view: CompactedView, now: Now) -> None:
        """Retire the old view and acknowledge the compacted messages, in the batch that installs the new view."""
        before, commits = self.view, self._commits
        if before is not None:
            commits.put_row(compacting_key(self._topic_id, before.ledger_id), {})
            commits.put_row(compacted_key(self._topic_id, before.ledger_id), None)
        cursor = self._cursor
        assert cursor is not None, "a compaction needs its subscription"
        cursor.acknowledge_through(view.horizon, view.messages, view.bytes)
        commits.cursor_changed(cursor, now)

    def _ended(self, view: CompactedView | None, error: Exception | None, now: Now) -> None:
        run, self.run = self.run, None
        assert run is not None
        name = self._stored.name
        millis = int((now.monotonic - self._began) * 1000)
        if self._stored.in_use:  # else it was deleted
            self._compactions.record(name).ended(run.removed, millis, error, now)
        self._compactions.ended(run, now)
        if view is None:
            log.warning("compaction of %s failed, its compacted view is unchanged: %s", name, error)
            return
        log.info("compacted %s: %d entries up to %d:%d", name, view.entries, *view.horizon)
        if compacted_key(self._topic_id, view.ledger_id) not in self._catalog:
            return  # deleted while the last batch was written
        before, self.view = self.view, view
        if before is not None:
            self._retire(before.ledger_id, now)
        self._topic.compacted(now)
        self._deadline.want(now.wall)

    def _retire(self, ledger_id: int, now: Now) -> None:
        """Drop a replaced ledger, now or with its last reader."""
        self._retired.add(ledger_id)
        if not self._readers.get(ledger_id):
            self._drop(ledger_id, now)

    def _drop(self, ledger_id: int, now: Now) -> None:
        self._retired.discard(ledger_id)
        for key in (compacted_key(self._topic_id, ledger_id), compacting_key(self._topic_id, ledger_id)):
            if key in self._catalog:
                self._commits.put_row(key, None)
        self._commits.housekeeping.ledger_dropped(ledger_id, now)

    def forget(self, now: Now) -> None:
        """Delete the view, because the subscription or the topic is deleted."""
        if self.run is not None:
            if self.run.is_over:  # its last batch is being written
                self._drop(self.run.ledger_id, now)
            self.run.cancel(f"the subscription {COMPACTION_SUBSCRIPTION} was deleted", now)
        before, self.view = self.view, None
        self.due_at = NEVER
        if before is not None:
            self._retire(before.ledger_id, now)
        if not self._stored.in_use:
            for ledger_id in list(self._retired):
                self._drop(ledger_id, now)

    # Read

    def read(self, view: CompactedView, index: int, answer: Answer) -> None:
        """Read the entry with this number in a pinned view."""
        self._services.reads.ask(view.ledger_id, index, index, 1, answer)

    def pin(self, view: CompactedView, reader: object) -> None:
        """Retain a view for a new reader."""
        self._readers.setdefault(view.ledger_id, set()).add(reader)

    def unpin(self, view: CompactedView, reader: object) -> None:
        """Release a view that a reader has finished."""
        readers = self._readers.get(view.ledger_id, set())
        readers.discard(reader)
        if not readers:
            self._readers.pop(view.ledger_id, None)
            if view.ledger_id in self._retired:
                self._timers.at(0.0, lambda now: self._drop_unread(view.ledger_id, now))

    def _drop_unread(self, ledger_id: int, now: Now) -> None:
        if ledger_id in self._retired and not self._readers.get(ledger_id):
            self._drop(ledger_id, now)

    # Automatic compaction

    def compact_if_due(self, now: Now) -> int:
        """Compact if the policy requires it; return when to check again (ms since 1970; 0: when more is published)."""
        threshold = self._policies.get(COMPACTION_THRESHOLD)
        self.due_at = NEVER
        if threshold <= 0 or is_system(self._stored.name):
            return 0
        self._subscribe(now)
        cursor = self._cursor
        assert cursor is not None
        interval = 1000 * self._services.settings.brokerServiceCompactionMonitorIntervalInSeconds
        again_at = self._looked_at + interval
        if self.run is not None:
            return now.wall + interval
        due_at = cursor.mark_bytes + threshold
        if self._ledger.confirmed_bytes <= due_at:
            self.due_at = due_at
            return 0
        if self._looked_at <= now.wall < again_at:
            return again_at
        self._looked_at = now.wall
        self.start(now)
        return now.wall + interval

    def reached(self, now: Now) -> None:
        """Handle that the topic has grown to ``due_at``."""
        self.due_at = NEVER
        self._deadline.want(now.wall)
