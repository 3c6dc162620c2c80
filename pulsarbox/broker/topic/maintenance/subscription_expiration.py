"""Expiration of a topic's inactive subscriptions: since when each has no consumers, and when it is deleted."""

from collections.abc import Callable, Iterable, Sized
from typing import Final, Protocol

from pulsarbox.broker.persistence.group_commit import GroupCommit
from pulsarbox.broker.policies.kinds.subscription_expiration import SUBSCRIPTION_EXPIRATION
from pulsarbox.broker.policies.policies import TopicPolicies
from pulsarbox.broker.topic.maintenance.deadline_index import TopicDeadline, first_of
from pulsarbox.clock import Now
from pulsarbox.names import COMPACTION_SUBSCRIPTION
from pulsarbox.storage.catalog import Catalog, cursor_key
from pulsarbox.storage.cursor import ManagedCursor

LOOK_MS: Final = 3_600_000
"""How often to check whether a used topic or subscription is still in use. Only a crash ends use without an event."""


class ExpiringSubscription(Protocol):
    """A subscription that may become inactive."""

    cursor: ManagedCursor
    fenced: bool
    unused_since: int
    """Since when it has no consumers (ms since 1970); 0 while it has."""
    replicated: bool
    """Whether it never expires, as in Pulsar: its consumers may be at another cluster."""

    @property
    def consumers(self) -> Sized:
        """Its consumers."""

    def close(self, now: Now) -> None:
        """Disconnect all consumers."""

    def remove(self, now: Now) -> None:
        """Delete the subscription."""


class SubscriptionExpiration:
    """Inactivity of the durable subscriptions of one topic in memory."""

    __slots__ = ("_catalog", "_commits", "_deadline", "_policies", "_subscriptions")

    def __init__(
        self,
        catalog: Catalog,
        commits: GroupCommit,
        policies: TopicPolicies,
        deadline: TopicDeadline,
        subscriptions: Callable[[], Iterable[ExpiringSubscription]],
    ) -> None:
        self._catalog = catalog
        self._commits = commits
        self._policies = policies
        self._deadline = deadline
        self._subscriptions = subscriptions

    def consumer_connected(self, subscription: ExpiringSubscription, now: Now) -> None:
        """End the inactivity of a durable subscription, which has a consumer again."""
        subscription.unused_since = 0
        self._note(subscription)
        expiration = self._policies.get(SUBSCRIPTION_EXPIRATION)
        if expiration:
            self._deadline.want(now.wall + max(expiration, LOOK_MS))

    def consumers_left(self, subscription: ExpiringSubscription, now: Now) -> None:
        """Start the inactivity of a durable subscription, whose last consumer has left."""
        subscription.unused_since = now.wall
        expiration = self._policies.get(SUBSCRIPTION_EXPIRATION)
        if expiration:
            self._note(subscription)
            self._deadline.want(now.wall + expiration)

    def expires_again(self, subscription: ExpiringSubscription, now: Now) -> None:
        """Schedule the expiration of a subscription that is no longer replicated."""
        expiration = self._policies.get(SUBSCRIPTION_EXPIRATION)
        if expiration and subscription.cursor.durable:
            self._deadline.want(max(subscription.unused_since + expiration, now.wall))

    def note_unused(self) -> None:
        """Store since when each subscription has been inactive, before the topic is unloaded."""
        for subscription in self._subscriptions():
            if subscription.cursor.durable and subscription.unused_since:
                self._note(subscription)

    def _note(self, subscription: ExpiringSubscription) -> None:
        cursor = subscription.cursor
        key = cursor_key(cursor.ledger.topic_id, cursor.cursor_id)
        row = self._catalog.get(key)
        if row is not None and row.get("unused", 0) != subscription.unused_since:
            row.pop("unused", None)
            unused = {"unused": subscription.unused_since} if subscription.unused_since else {}
            self._commits.put_row(key, row | unused)

    def look(self, now: Now) -> int:
        """Delete the subscriptions that are due; return when to check again (ms since 1970; 0: never)."""
        expiration = self._policies.get(SUBSCRIPTION_EXPIRATION)
        again = []
        for subscription in list(self._subscriptions()) if expiration else []:
            at = subscription.unused_since + expiration
            if not subscription.cursor.durable or subscription.cursor.name == COMPACTION_SUBSCRIPTION:
                continue
            if subscription.replicated:
                continue
            if subscription.consumers or subscription.fenced:
                again.append(now.wall + max(expiration, LOOK_MS))
            elif now.wall >= at:
                subscription.close(now)
                subscription.remove(now)
            else:
                again.append(at)
        return first_of(*again)
