"""Warning that a dead letter topic drops its messages: it has no subscription, retention or unsubscribed retention.

Source: PIP-124, apache/pulsar#13408.
"""

import logging
from typing import Protocol

from pulsarbox.broker.persistence.group_commit import GroupCommit
from pulsarbox.broker.policies.kinds.retention import RETENTION
from pulsarbox.broker.policies.kinds.unsubscribed_retention import OFF, UNSUBSCRIBED_TIME
from pulsarbox.broker.policies.policies import TopicPolicies
from pulsarbox.names import COMPACTION_SUBSCRIPTION, TopicName
from pulsarbox.storage.catalog import Catalog, topic_key
from pulsarbox.storage.dead_letter_topics import MARK
from pulsarbox.storage.recovery import StoredTopic

log = logging.getLogger(__name__)


class DeadLetterTopic(Protocol):
    """A persistent topic, which may be a dead letter topic."""

    name: TopicName
    stored: StoredTopic
    policies: TopicPolicies
    for_dead_letters: bool
    warned_of_loss: bool
    """Whether the log has already warned that dead letters will be lost."""


def marked(topic: DeadLetterTopic, catalog: Catalog, commits: GroupCommit) -> None:
    """Mark a topic to which a dead letter is moved as a dead letter topic."""
    if not topic.for_dead_letters:
        topic.for_dead_letters = True
        key = topic_key(str(topic.name))
        commits.put_row(key, (catalog.get(key) or {}) | {MARK: True})
    warn(topic)


def is_subscribed(stored: StoredTopic) -> bool:
    """Return whether a topic has a durable subscription. That of compaction does not count; it delivers nothing."""
    return any(cursor.name != COMPACTION_SUBSCRIPTION for cursor in stored.cursors.values())


def drops_dead_letters(topic: DeadLetterTopic) -> bool:
    """Return whether a dead letter topic drops its messages, as neither a subscription nor retention keeps them."""
    if not topic.for_dead_letters or is_subscribed(topic.stored):
        return False
    return retains_nothing(topic.policies)


def retains_nothing(policies: TopicPolicies) -> bool:
    """Return whether neither retention nor unsubscribed retention keeps messages without a subscription."""
    return not policies.get(RETENTION).keeps and policies.get(UNSUBSCRIBED_TIME) == OFF


def warn(topic: DeadLetterTopic) -> None:
    """Log once that dead letters will be lost, before they are."""
    if not drops_dead_letters(topic):
        topic.warned_of_loss = False
    elif not topic.warned_of_loss:
        topic.warned_of_loss = True
        log.warning(
            "dead letter topic %s keeps no messages: it has no subscription and no retention. Run"
            " `pulsarbox sub create %s NAME --at earliest` to keep new messages and those still stored",
            topic.name,
            topic.name,
        )
