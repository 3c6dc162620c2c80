"""Time-driven maintenance of one stored topic, and the deadline of its next run.

Maintenance closes and trims ledgers, expires messages, evicts backlogs, and deletes inactive subscriptions and topics.
Each task returns when it must run next. The earliest of these times is the topic's deadline: a catalog row, so it
applies to topics that are not in memory, too.
"""

from collections.abc import Iterable, Sized
from typing import Protocol

from pulsarbox.broker.backlog.message_expiry import MessageExpiry
from pulsarbox.broker.backlog.quota_enforcement import QuotaEnforcement
from pulsarbox.broker.compaction.topic_compaction import TopicCompaction
from pulsarbox.broker.persistence.group_commit import GroupCommit
from pulsarbox.broker.policies.kinds.backlog_quota import BACKLOG_AGE, BACKLOG_SIZE, Follows
from pulsarbox.broker.policies.kinds.compaction import COMPACTION_THRESHOLD, is_worth_compacting
from pulsarbox.broker.policies.kinds.inactive_topic import CAUGHT_UP, INACTIVE_TOPIC, delete_at
from pulsarbox.broker.policies.kinds.message_ttl import MESSAGE_TTL
from pulsarbox.broker.policies.kinds.retention import RETENTION
from pulsarbox.broker.policies.kinds.subscription_expiration import SUBSCRIPTION_EXPIRATION
from pulsarbox.broker.policies.policies import TopicPolicies
from pulsarbox.broker.subscription.first_unacked import first_unacked
from pulsarbox.broker.topic.maintenance.deadline_index import TopicDeadline, first_of
from pulsarbox.broker.topic.maintenance.ledger_lifecycle import TopicLedgers
from pulsarbox.broker.topic.maintenance.subscription_expiration import LOOK_MS, SubscriptionExpiration
from pulsarbox.broker.topic.producer_access import Producers
from pulsarbox.broker.topic.system_topics import is_system
from pulsarbox.clock import Now
from pulsarbox.storage.catalog import Catalog, topic_key
from pulsarbox.storage.recovery import StoredTopic


def needs_memory(stored: StoredTopic, policies: TopicPolicies, *, kept: bool) -> bool:
    """Return whether maintenance of an unloaded topic must load it; otherwise only its ledgers need maintenance.

    ``kept``: it retains unsubscribed messages, so it is not inactive.
    """
    inactive = policies.get(INACTIVE_TOPIC)
    backlog = first_unacked(stored.ledger, stored.cursors.values()) is not None
    used = backlog if inactive.mode == CAUGHT_UP else bool(stored.cursors)
    if inactive.delete and not used and not kept:
        return True
    if stored.cursors and policies.get(SUBSCRIPTION_EXPIRATION) > 0:
        return True
    if policies.get(COMPACTION_THRESHOLD) > 0 and is_worth_compacting(stored, policies.get(COMPACTION_THRESHOLD)):
        return True
    evicts = any(
        quota.limit >= 0 and quota.follows is Follows.EVICTION
        for quota in (policies.get(BACKLOG_SIZE), policies.get(BACKLOG_AGE))
    )
    return backlog and (evicts or policies.get(MESSAGE_TTL) > 0)


class UsedSubscription(Protocol):
    """A subscription, which may be in use."""

    @property
    def consumers(self) -> Sized:
        """Its consumers."""


class MaintainedTopic(Protocol):
    """A loaded topic with the parts that maintenance runs."""

    ledgers: TopicLedgers
    expiry: MessageExpiry
    backlog: QuotaEnforcement
    compaction: TopicCompaction

    @property
    def producers(self) -> Producers:
        """Its producers."""

    @property
    def is_connected(self) -> bool:
        """Whether producers or consumers are connected, or producers wait to be admitted."""

    def all_subscriptions(self) -> Iterable[UsedSubscription]:
        """Return its subscriptions."""

    def maintain_ledgers(self, now: Now) -> int:
        """Close and drop the ledgers that are due; return when to check again (ms since 1970; 0: never)."""

    def delete_unused(self, now: Now) -> None:
        """Delete the topic, which has been inactive for too long."""


class TopicMaintenance:
    """Maintenance of one topic in memory."""

    __slots__ = (
        "_catalog", "_commits", "_deadline", "_ledger", "_policies", "_stored", "_subscriptions", "_topic",
        "_unused_since",
    )  # fmt: skip

    def __init__(
        self,
        topic: MaintainedTopic,
        stored: StoredTopic,
        policies: TopicPolicies,
        deadline: TopicDeadline,
        subscriptions: SubscriptionExpiration,
        catalog: Catalog,
        commits: GroupCommit,
        started: int,
    ) -> None:
        """``started``: when the box started (ms since 1970)."""
        self._topic = topic
        self._stored = stored
        self._ledger = stored.ledger
        self._policies = policies
        self._deadline = deadline
        self._subscriptions = subscriptions
        self._catalog = catalog
        self._commits = commits
        row = catalog.get(topic_key(stored.name)) or {}
        since: int = row.get("unused") or row.get("created") or 0
        self._unused_since = max(since, started)
        """Start of the topic's inactivity, if it is inactive (ms since 1970); not before the start of the box."""

    def run(self, now: Now) -> None:
        """Do the maintenance that is due and set the next deadline; called at a deadline and on policy changes."""
        topic = self._topic
        if not self._stored.in_use:
            return
        again = [self._subscriptions.look(now)]
        if self._is_due(self._delete_at(now), now):  # before trimming: the report counts its messages
            return
        again += [topic.maintain_ledgers(now), topic.compaction.compact_if_due(now)]
        expiry_at = topic.expiry.expire_due(now)
        delete_at = self._delete_at(now)
        if self._is_due(delete_at, now):
            return
        if topic.expiry.under_way:
            self._deadline.set(first_of(*again, delete_at), interim=expiry_at)
        else:
            self._deadline.set(first_of(*again, delete_at, expiry_at))
        topic.backlog.check_quotas(now)

    def _is_due(self, delete_at: int, now: Now) -> bool:
        """Delete the topic if ``delete_at`` has passed; return whether it was due."""
        if not delete_at or now.wall < delete_at:
            return False
        self._topic.delete_unused(now)
        return True

    def schedule(self, now: Now) -> None:
        """Run maintenance at the end of this turn, after a change that may require it."""
        self._deadline.want(now.wall)

    def subscribed(self, now: Now) -> None:
        """Handle a new durable subscription, or one that was reset to an earlier position: it may have a backlog."""
        topic = self._topic
        topic.ledgers.subscribed(now)
        topic.expiry.started_again()
        if topic.expiry.on:
            self.schedule(now)
        topic.backlog.check_quotas(now)

    # Inactive topics

    @property
    def is_used(self) -> bool:
        """Whether the topic is in use, as defined by its inactive topic policies."""
        topic = self._topic
        if not topic.producers.unused or topic.backlog.waiting:
            return True
        if self._policies.get(INACTIVE_TOPIC).mode != CAUGHT_UP:
            return any(True for _ in topic.all_subscriptions())
        if any(subscription.consumers for subscription in topic.all_subscriptions()):
            return True
        return first_unacked(self._ledger, self._stored.cursors.values()) is not None

    def maybe_unused(self, now: Now) -> None:
        """Start the topic's inactivity period if its last user has left."""
        if self._stored.in_use and self._policies.get(INACTIVE_TOPIC).delete and not self.is_used:
            self._unused_since = now.wall
            key = topic_key(self._stored.name)
            row = self._catalog.get(key)
            if row is not None:
                self._commits.put_row(key, row | {"unused": now.wall})
                self._deadline.want(self._delete_at(now))

    def _delete_at(self, now: Now) -> int:
        policy = self._policies.get(INACTIVE_TOPIC)
        if not policy.delete or is_system(self._stored.name):
            return 0
        if self.is_used:
            self._unused_since = 0
            return now.wall + max(policy.after, LOOK_MS) if self._topic.is_connected else 0
        if not self._unused_since:
            self.maybe_unused(now)
        if self._topic.ledgers.unsubscribed.holds:
            return 0  # maintenance runs again when the last unsubscribed messages are due
        empty = not self._ledger.confirmed_entries
        return delete_at(policy, self._policies.get(RETENTION), unused_since=self._unused_since, empty=empty)
