"""The shared services of one broker (settings, timers, group commit, reads), passed down explicitly."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from pulsarbox.broker.backlog.unsubscribed_index import UnsubscribedIndex
from pulsarbox.broker.compaction.compaction_history import Compactions
from pulsarbox.broker.compression_policy import AtRest
from pulsarbox.broker.dispatch.read_limits import ReadLimits
from pulsarbox.broker.dispatch.unacked_limits import BrokerUnacked
from pulsarbox.broker.events import Events
from pulsarbox.broker.group_commit import GroupCommit
from pulsarbox.broker.limits.box_limits import BoxLimits
from pulsarbox.broker.long_computation import Computations
from pulsarbox.broker.plugins import Plugins
from pulsarbox.broker.policies.policies import Policies
from pulsarbox.broker.policies.unloaded_topics import Walks
from pulsarbox.broker.read_queue import Reads
from pulsarbox.broker.security.authorization import Authorization
from pulsarbox.broker.stats.cache_hit_rate import CacheUse
from pulsarbox.broker.stats.oldest_message_age import Ages
from pulsarbox.broker.timers import Timers
from pulsarbox.broker.topic.deadline_index import TopicDeadlines
from pulsarbox.broker.topic.quarantine import Quarantine
from pulsarbox.broker.transactions.coordinator import Coordinator
from pulsarbox.broker.transactions.epoch_commit import Epochs
from pulsarbox.clock import BEGINNING, Now
from pulsarbox.config import Settings
from pulsarbox.storage.catalog import Row
from pulsarbox.storage.recovery import Store

if TYPE_CHECKING:
    from pulsarbox.broker.dead_letter.router import DeadLetterOffice
    from pulsarbox.broker.replay.job_registry import Jobs
    from pulsarbox.broker.topic.topic import Topic


class Core:
    """The shared parts of one broker."""

    under_way = 0
    """Number of topics that are expiring or evicting messages right now, read by read."""
    _producer_names = 0

    def __init__(self, settings: Settings, store: Store, started: int = 0, plugins: Plugins | None = None) -> None:
        self.settings = settings
        self.events = Events(store.ids()["boot"] + 1)
        """Operator-facing events."""
        self.plugins = plugins or Plugins()
        self.plugins.events = self.events
        self.bounds = ReadLimits(settings)
        self.started = started
        """When the box started, in milliseconds since 1970."""
        self.store = store
        self.compressed = store.compressed
        """Returns compression-at-rest statistics by topic."""
        self.unpacked = store.unpacked
        """Returns statistics of the cache of decompressed entries."""
        self.catalog = store.catalog
        self.timers = Timers()
        self.computations = Computations(self.timers)
        self.reads = Reads()
        self.commits = GroupCommit(store, settings, self.timers, self.events)
        self.policies = Policies(store.catalog, settings, self.commits.put_row, self.timers)
        self.authorization = Authorization(settings, store.catalog, self.policies)
        self.limits = BoxLimits(settings, store.catalog, self.timers, self.commits.put_row)
        self.ages = Ages()
        self.cache_use = CacheUse(self.commits.tail_cache, self.reads)
        self.quarantine = Quarantine(store.catalog, self.commits, self.events)
        self.deadlines = TopicDeadlines(store.catalog, self.timers)
        self.unsubscribed = UnsubscribedIndex(store.catalog, self.commits, self.timers, settings)
        """Index of messages that no subscription has covered, across all topics."""
        self.walks = Walks(store.catalog, self.commits, self.timers)
        self.policies.for_unloaded = self._policies_changed
        self.at_rest = AtRest(settings, lambda: self.plugins.disabled)
        self._connect_compression()
        self.walks.must_wait = lambda: self.policies.telling
        self.unacked = BrokerUnacked(settings)
        self.compactions = Compactions()
        self.let_go: Callable[[Topic, Now], None] = _nobody
        """Deletes a topic that has been inactive for too long."""
        self.office: DeadLetterOffice
        """Dead letter router; set by the broker once topics exist."""
        self.transactions = Coordinator(self)
        self.epochs = Epochs(self)
        self.jobs: Jobs
        """Job registry; set by the broker once topics exist."""

    def apply(self, settings: Settings, now: Now | None = None) -> None:
        """Apply the dynamic settings. Without ``now``, the broker is not running yet."""
        self.settings = settings
        self.limits.take(settings, now or BEGINNING)
        self.policies.take(settings, now)
        self.unsubscribed.take(settings, now)
        if now is not None:
            self.walks.settings_changed(settings, now)
        self.bounds.take(settings)
        self.plugins.take(settings)
        self.at_rest.take(settings)
        self.commits.tail_cache.limit = settings.managedLedgerCacheSizeMB << 20

    def _connect_compression(self) -> None:
        """Have the housekeeper compress, and request a checkpoint when the choice of codecs changes."""
        self.at_rest.changed = self.commits.housekeeping.ask_checkpoint
        self.at_rest.waited_for = lambda: self.commits.housekeeping.is_ready
        self.commits.housekeeping.at_rest = self.at_rest

    def _policies_changed(self, name: str, before: Row, row: Row, now: Now) -> None:
        self.walks.changed(name, before, row, now)
        self.at_rest.policies_changed(before, row)

    def put_resource_group(self, name: str, row: Row | None, now: Now) -> None:
        """Write a resource group, or delete it with None; attached namespaces are affected at once."""
        self.limits.put_group(name, row, now)
        self.policies.take(self.settings, now)

    def producer_name(self) -> str:
        """Return a producer name that is unique across restarts."""
        self._producer_names += 1
        return f"{self.settings.clusterName}-{self.commits.boot}-{self._producer_names - 1}"


def _nobody(topic: "Topic", now: Now) -> None:
    raise AssertionError("no topic registry is attached")
