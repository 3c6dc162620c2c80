"""The services that topics, subscriptions and dispatchers share, as one record. ``composition`` builds it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pulsarbox.broker.backlog.backlog_removals import BacklogRemovals
    from pulsarbox.broker.backlog.unsubscribed_index import UnsubscribedIndex
    from pulsarbox.broker.callbacks import Callbacks
    from pulsarbox.broker.compaction.compaction_history import Compactions
    from pulsarbox.broker.current_settings import CurrentSettings
    from pulsarbox.broker.dead_letter.message import Origin
    from pulsarbox.broker.dispatch.read_limits import ReadLimits
    from pulsarbox.broker.dispatch.unacked_limits import BrokerUnacked
    from pulsarbox.broker.events import Events
    from pulsarbox.broker.limits.box_limits import BoxLimits
    from pulsarbox.broker.persistence.group_commit import GroupCommit
    from pulsarbox.broker.persistence.read_queue import ReadQueue
    from pulsarbox.broker.plugins import Plugins
    from pulsarbox.broker.policies.kinds.dead_letter import DeadLetterPolicy
    from pulsarbox.broker.policies.policies import Policies
    from pulsarbox.broker.replay.job_claims import JobClaims
    from pulsarbox.broker.security.authorization import Authorization
    from pulsarbox.broker.stats.oldest_message_age import OldestMessageAges
    from pulsarbox.broker.timers import Timers
    from pulsarbox.broker.topic.maintenance.deadline_index import TopicDeadlines
    from pulsarbox.broker.topic.quarantine import Quarantine
    from pulsarbox.broker.transactions.transaction_table import TransactionTable
    from pulsarbox.clock import Now
    from pulsarbox.config import Settings
    from pulsarbox.names import TopicName
    from pulsarbox.storage.catalog import Catalog
    from pulsarbox.storage.record import Entry
    from pulsarbox.storage.recovery import Store


class UnusedTopic(Protocol):
    """A topic that has been inactive for too long."""

    name: TopicName


@dataclass(frozen=True, slots=True, eq=False, kw_only=True, repr=False)
class Core:
    """Services that all topics of a broker share. Services that depend on the topics are fields of ``Broker``."""

    current_settings: CurrentSettings
    started: int
    """When the box started, in milliseconds since 1970."""
    store: Store
    catalog: Catalog
    timers: Timers
    reads: ReadQueue
    commits: GroupCommit
    events: Events
    policies: Policies
    limits: BoxLimits
    bounds: ReadLimits
    unacked: BrokerUnacked
    plugins: Plugins
    authorization: Authorization
    transactions: TransactionTable
    quarantine: Quarantine
    compactions: Compactions
    ages: OldestMessageAges
    """Ages of the oldest unacknowledged messages."""
    deadlines: TopicDeadlines
    unsubscribed: UnsubscribedIndex
    """Index of messages that no subscription has covered, across all topics."""
    removals: BacklogRemovals
    """Expiry and eviction in progress."""
    job_claims: JobClaims
    """Subscriptions that running jobs use alone."""
    inactive: Callbacks[UnusedTopic, Now]
    """Called with each topic that has been inactive for too long; the registry deletes it."""
    dead_letters: Callbacks[Entry, int | None, TopicName, Origin, DeadLetterPolicy, Now]
    """Called with each dead letter, see ``DeadLetterRouter.post``. Raises PulsarBoxError if it is rejected."""

    @property
    def settings(self) -> Settings:
        """The settings in effect."""
        return self.current_settings.current
