"""Time-driven maintenance of one stored topic, and the deadline of its next run.

Maintenance closes and trims ledgers, expires messages, evicts backlogs, and deletes inactive subscriptions and topics.
Each task returns when it must run next. The earliest of these times is the topic's deadline: a catalog row, so it
applies to topics that are not in memory, too.
"""

from typing import TYPE_CHECKING, Final

from pulsarbox.broker.policies.kinds.backlog_quota import BACKLOG_AGE, BACKLOG_SIZE, Follows
from pulsarbox.broker.policies.kinds.compaction import COMPACTION_THRESHOLD, is_worth_compacting
from pulsarbox.broker.policies.kinds.inactive_topic import CAUGHT_UP, INACTIVE_TOPIC, delete_at
from pulsarbox.broker.policies.kinds.message_ttl import MESSAGE_TTL
from pulsarbox.broker.policies.kinds.retention import RETENTION
from pulsarbox.broker.policies.kinds.subscription_expiration import SUBSCRIPTION_EXPIRATION
from pulsarbox.broker.policies.policies import TopicPolicies
from pulsarbox.broker.subscription.first_unacked import first_unacked
from pulsarbox.broker.topic.deadline_index import TopicDeadline, first_of
from pulsarbox.broker.topic.system_topics import is_system
from pulsarbox.clock import Now
from pulsarbox.names import COMPACTION_SUBSCRIPTION
from pulsarbox.storage.catalog import cursor_key, topic_key
from pulsarbox.storage.recovery import StoredTopic

if TYPE_CHECKING:
    from pulsarbox.broker.subscription.subscription import Subscription
    from pulsarbox.broker.topic.topic import PersistentTopic

LOOK_MS: Final = 3_600_000
"""How often to check whether a used topic or subscription is still in use. Only a crash ends use without an event."""


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


class Upkeep:
    """Maintenance of one topic in memory."""

    __slots__ = ("_topic", "_unused_since", "deadline")

    def __init__(self, topic: "PersistentTopic") -> None:
        self._topic = topic
        self.deadline = TopicDeadline(topic.core, topic.stored)
        row = topic.core.catalog.get(topic_key(str(topic.name))) or {}
        since: int = row.get("unused") or row.get("created") or 0
        self._unused_since = max(since, topic.core.started)
        """Start of the topic's inactivity, if it is inactive (ms since 1970); not before the start of the box."""

    def begin(self, now: Now) -> None:
        """Start maintenance after the topic was loaded."""
        self._topic.traffic.begin(now)
        self.deadline.want(self._topic.compaction.look(now))

    def look(self, now: Now) -> None:
        """Do the maintenance that is due and set the next deadline; called at a deadline and on policy changes."""
        topic = self._topic
        if not topic.stored.in_use:
            return
        again = [self._expire_subscriptions(now)]
        if self._is_due(self._delete_at(now), now):  # before trimming: the report counts its messages
            return
        again += [topic.look_after_ledgers(now), topic.compaction.look(now)]
        expiry_at = topic.expiry.look(now)
        delete_at = self._delete_at(now)
        if self._is_due(delete_at, now):
            return
        if topic.expiry.under_way:
            self.deadline.set(first_of(*again, delete_at), interim=expiry_at)
        else:
            self.deadline.set(first_of(*again, delete_at, expiry_at))
        topic.backlog.look(now)

    def _is_due(self, delete_at: int, now: Now) -> bool:
        """Delete the topic if ``delete_at`` has passed; return whether it was due."""
        if not delete_at or now.wall < delete_at:
            return False
        self._topic.core.let_go(self._topic, now)
        return True

    def soon(self, now: Now) -> None:
        """Run maintenance at the end of this turn, after a change that may require it."""
        self.deadline.want(now.wall)

    def subscribed(self, now: Now) -> None:
        """Handle a new durable subscription, or one that was reset to an earlier position: it may have a backlog."""
        self._topic.ledgers.subscribed(now)
        self._topic.expiry.started_again()
        if self._topic.expiry.on:
            self.soon(now)
        self._topic.backlog.look(now)

    # Inactive topics

    @property
    def is_used(self) -> bool:
        """Whether the topic is in use, as defined by its inactive topic policies."""
        topic = self._topic
        if not topic.producers.unused or topic.backlog.waiting:
            return True
        if topic.policies.get(INACTIVE_TOPIC).mode != CAUGHT_UP:
            return bool(topic.subscriptions)
        if any(subscription.consumers for subscription in topic.subscriptions.values()):
            return True
        return first_unacked(topic.ledger, topic.stored.cursors.values()) is not None

    def maybe_unused(self, now: Now) -> None:
        """Start the topic's inactivity period if its last user has left."""
        topic = self._topic
        if topic.stored.in_use and topic.policies.get(INACTIVE_TOPIC).delete and not self.is_used:
            self._unused_since = now.wall
            key = topic_key(str(topic.name))
            row = topic.core.catalog.get(key)
            if row is not None:
                topic.core.commits.put_row(key, row | {"unused": now.wall})
                self.deadline.want(self._delete_at(now))

    def _delete_at(self, now: Now) -> int:
        topic = self._topic
        policy = topic.policies.get(INACTIVE_TOPIC)
        if not policy.delete or is_system(str(topic.name)):
            return 0
        if self.is_used:
            self._unused_since = 0
            return now.wall + max(policy.after, LOOK_MS) if topic.is_connected else 0
        if not self._unused_since:
            self.maybe_unused(now)
        if topic.ledgers.unsubscribed.holds:
            return 0  # maintenance runs again when the last unsubscribed messages are due
        empty = not topic.ledger.confirmed_entries
        return delete_at(policy, topic.policies.get(RETENTION), unused_since=self._unused_since, empty=empty)

    # Inactive subscriptions

    def consumer_came(self, subscription: "Subscription", now: Now) -> None:
        """End the inactivity of a durable subscription, which has a consumer again."""
        subscription.unused_since = 0
        self._note(subscription)
        expiration = self._topic.policies.get(SUBSCRIPTION_EXPIRATION)
        if expiration:
            self.deadline.want(now.wall + max(expiration, LOOK_MS))

    def consumers_left(self, subscription: "Subscription", now: Now) -> None:
        """Start the inactivity of a durable subscription, whose last consumer has left."""
        subscription.unused_since = now.wall
        expiration = self._topic.policies.get(SUBSCRIPTION_EXPIRATION)
        if expiration:
            self._note(subscription)
            self.deadline.want(now.wall + expiration)

    def note_unused(self) -> None:
        """Store since when each subscription has been inactive, before the topic is unloaded."""
        for subscription in self._topic.subscriptions.values():
            if subscription.durable and subscription.unused_since:
                self._note(subscription)

    def _note(self, subscription: "Subscription") -> None:
        core, cursor = self._topic.core, subscription.cursor
        key = cursor_key(cursor.ledger.topic_id, cursor.cursor_id)
        row = core.catalog.get(key)
        if row is not None and row.get("unused", 0) != subscription.unused_since:
            row.pop("unused", None)
            core.commits.put_row(
                key, row | ({"unused": subscription.unused_since} if subscription.unused_since else {})
            )

    def _expire_subscriptions(self, now: Now) -> int:
        topic = self._topic
        expiration = topic.policies.get(SUBSCRIPTION_EXPIRATION)
        again = []
        for subscription in list(topic.subscriptions.values()) if expiration else []:
            at = subscription.unused_since + expiration
            if not subscription.durable or subscription.name == COMPACTION_SUBSCRIPTION:
                continue
            if subscription.consumers or subscription.fenced:
                again.append(now.wall + max(expiration, LOOK_MS))
            elif now.wall >= at:
                subscription.close(now)
                topic.remove_subscription(subscription, now)
            else:
                again.append(at)
        return first_of(*again)
