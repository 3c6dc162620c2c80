"""The compacted view of one topic: its creation, replacement and readers.

The subscription ``__compaction`` retains messages that are not compacted yet, as in Pulsar. It is created by the first
compaction or by a threshold. Deleting it deletes the view.
"""

import logging
from typing import TYPE_CHECKING, Final

from pulsarbox.broker.compaction.compaction_run import CompactionRun
from pulsarbox.broker.policies.kinds.compaction import COMPACTION_THRESHOLD
from pulsarbox.broker.topic.system_topics import is_system
from pulsarbox.clock import Now
from pulsarbox.errors import Conflict
from pulsarbox.names import COMPACTION_SUBSCRIPTION
from pulsarbox.storage.catalog import COMPACTING, compacted_key, compacting_key
from pulsarbox.storage.compacted_ledger import CompactedView

if TYPE_CHECKING:
    from pulsarbox.broker.core import Core
    from pulsarbox.broker.subscription.subscription import Subscription
    from pulsarbox.broker.topic.topic import PersistentTopic

log = logging.getLogger(__name__)

NEVER: Final = 1 << 63
"""More bytes than any topic has."""


def drop_leftovers(core: "Core", now: Now) -> None:
    """At the start, drop unfinished compacted ledgers and retired ones that only earlier readers used."""
    for key in list(core.catalog.keys(COMPACTING)):
        core.commits.put_row(key, None)
        core.commits.housekeeping.ledger_dropped(int(key.rpartition("/")[2], 16), now)


class TopicCompaction:
    """The compaction of one loaded topic."""

    def __init__(self, topic: "PersistentTopic") -> None:
        self._topic = topic
        self._core = topic.core
        self._topic_id = topic.ledger.topic_id
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
        if any(cursor.name == COMPACTION_SUBSCRIPTION for cursor in topic.stored.cursors.values()):
            for key in self._core.catalog.keys(compacted_key(self._topic_id)):
                row = self._core.catalog.get(key)
                assert row is not None
                self.view = CompactedView.of(int(key.rpartition("/")[2], 16), row)

    @property
    def subscription(self) -> "Subscription | None":
        """The subscription that retains messages not compacted yet."""
        return self._topic.subscriptions.get(COMPACTION_SUBSCRIPTION)

    # Compact

    def start(self, now: Now) -> None:
        """Compact the topic up to its current end. Raises Conflict if a compaction is in progress."""
        if self.run is not None:
            raise Conflict("Compaction already in progress")
        self._subscribe(now)
        ledger, view = self._topic.ledger, self.view
        if ledger.read_end > (view.horizon if view is not None else ledger.first_position()):
            self._began = now.monotonic
            self.run = CompactionRun(self._topic, view, self._switch, self._ended)
            self._core.compactions.enqueue(self.run, now)
        else:
            self._core.compactions.record(str(self._topic.name)).error = ""  # there is nothing to compact

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
        if self.subscription is None:
            self._topic.subscribe(COMPACTION_SUBSCRIPTION, earliest=True, properties={}, now=now)

    def _switch(self, view: CompactedView, now: Now) -> None:
        """Retire the old view and acknowledge the compacted messages, in the batch that installs the new view."""
        before, commits = self.view, self._core.commits
        if before is not None:
            commits.put_row(compacting_key(self._topic_id, before.ledger_id), {})
            commits.put_row(compacted_key(self._topic_id, before.ledger_id), None)
        subscription = self.subscription
        assert subscription is not None, "a compaction needs its subscription"
        subscription.cursor.acknowledge_through(view.horizon, view.messages, view.bytes)
        commits.cursor_changed(subscription.cursor, now)

    def _ended(self, view: CompactedView | None, error: Exception | None, now: Now) -> None:
        run, self.run = self.run, None
        assert run is not None
        name = str(self._topic.name)
        millis = int((now.monotonic - self._began) * 1000)
        if self._topic.stored.in_use:  # else it was deleted
            self._core.compactions.record(name).ended(run.removed, millis, error, now)
        self._core.compactions.ended(run, now)
        if view is None:
            log.warning("compaction of %s failed, its compacted view is unchanged: %s", name, error)
            return
        log.info("compacted %s: %d entries up to %d:%d", name, view.entries, *view.horizon)
        topic = self._topic
        if compacted_key(self._topic_id, view.ledger_id) not in self._core.catalog:
            return  # deleted while the last batch was written
        before, self.view = self.view, view
        if before is not None:
            self._retire(before.ledger_id, now)
        topic.trim(now)
        if topic.backlog.blocked is not None:
            topic.backlog.moved(now)
        topic.upkeep.soon(now)

    def _retire(self, ledger_id: int, now: Now) -> None:
        """Drop a replaced ledger, now or with its last reader."""
        self._retired.add(ledger_id)
        if not self._readers.get(ledger_id):
            self._drop(ledger_id, now)

    def _drop(self, ledger_id: int, now: Now) -> None:
        self._retired.discard(ledger_id)
        for key in (compacted_key(self._topic_id, ledger_id), compacting_key(self._topic_id, ledger_id)):
            if key in self._core.catalog:
                self._core.commits.put_row(key, None)
        self._core.commits.housekeeping.ledger_dropped(ledger_id, now)

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
        if not self._topic.stored.in_use:
            for ledger_id in list(self._retired):
                self._drop(ledger_id, now)

    # Read

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
                self._core.timers.at(0.0, lambda now: self._drop_unread(view.ledger_id, now))

    def _drop_unread(self, ledger_id: int, now: Now) -> None:
        if ledger_id in self._retired and not self._readers.get(ledger_id):
            self._drop(ledger_id, now)

    # Automatic compaction

    def look(self, now: Now) -> int:
        """Compact if the policy requires it; return when to check again (ms since 1970; 0: when more is published)."""
        threshold = self._topic.policies.get(COMPACTION_THRESHOLD)
        self.due_at = NEVER
        if threshold <= 0 or is_system(str(self._topic.name)):
            return 0
        self._subscribe(now)
        subscription = self.subscription
        assert subscription is not None
        interval = 1000 * self._core.settings.brokerServiceCompactionMonitorIntervalInSeconds
        again_at = self._looked_at + interval
        if self.run is not None:
            return now.wall + interval
        due_at = subscription.cursor.mark_bytes + threshold
        if self._topic.ledger.confirmed_bytes <= due_at:
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
        self._topic.upkeep.soon(now)
