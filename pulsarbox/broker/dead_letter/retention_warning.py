"""Warning that a dead letter topic drops its messages: it has no subscription, retention or unsubscribed retention.

A dead letter or retry topic is recognized by the name suffix that clients use, or because the box has moved dead
letters there. Source: PIP-124, apache/pulsar#13408.
"""

import logging
from typing import TYPE_CHECKING, Final

from pulsarbox.broker.policies.kinds.dead_letter import DEAD_LETTER_SUFFIX, RETRY_SUFFIX
from pulsarbox.broker.policies.kinds.retention import RETENTION
from pulsarbox.broker.policies.kinds.unsubscribed_retention import OFF, UNSUBSCRIBED_TIME
from pulsarbox.broker.policies.policies import TopicPolicies
from pulsarbox.clock import Now
from pulsarbox.names import COMPACTION_SUBSCRIPTION, TopicName
from pulsarbox.storage.catalog import Row, topic_key
from pulsarbox.storage.recovery import StoredTopic

if TYPE_CHECKING:
    from pulsarbox.broker.topic.topic import PersistentTopic

log = logging.getLogger(__name__)

MARK: Final = "deadLetters"
"""Field of a topic's row: the box has moved dead letters there."""


def for_dead_letters(name: TopicName, row: Row) -> bool:
    """Return whether a topic with this row is a dead letter or retry topic."""
    return name.base.local.endswith((DEAD_LETTER_SUFFIX, RETRY_SUFFIX)) or bool(row.get(MARK))


def marked(topic: "PersistentTopic", now: Now) -> None:
    """Mark a topic to which a dead letter is moved as a dead letter topic."""
    if not topic.for_dead_letters:
        topic.for_dead_letters = True
        key = topic_key(str(topic.name))
        topic.core.commits.put_row(key, (topic.core.catalog.get(key) or {}) | {MARK: True})
    warn(topic)


def is_subscribed(stored: StoredTopic) -> bool:
    """Return whether a topic has a durable subscription. That of compaction does not count; it delivers nothing."""
    return any(cursor.name != COMPACTION_SUBSCRIPTION for cursor in stored.cursors.values())


def drops_dead_letters(topic: "PersistentTopic") -> bool:
    """Return whether a dead letter topic drops its messages, as neither a subscription nor retention keeps them."""
    if not topic.for_dead_letters or is_subscribed(topic.stored):
        return False
    return retains_nothing(topic.policies)


def retains_nothing(policies: TopicPolicies) -> bool:
    """Return whether neither retention nor unsubscribed retention keeps messages without a subscription."""
    retention = policies.get(RETENTION)
    return not (retention.time_ms and retention.size) and policies.get(UNSUBSCRIBED_TIME) == OFF


def warn(topic: "PersistentTopic") -> None:
    """Log once that dead letters will be lost, before they are."""
    if not drops_dead_letters(topic):
        topic.warned_of_loss = False
    elif not topic.warned_of_loss:
        topic.warned_of_loss = True
        log.warning(
            "topic %s is for dead letters and keeps none: it has no subscription, and no retention."
            " `pulsarbox sub create %s NAME --at earliest` keeps what comes, and what is still there",
            topic.name,
            topic.name,
        )
