"""Whether dead letters are kept: without a subscription, retention or unsubscribed retention their topic drops them.

A topic is for dead letters, or for messages to be tried again, where it is called so by clients, or where a dead letter
policy of the box has sent something there. Source: PIP-124, apache/pulsar#13408.
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
"""In a topic's row: the box has sent dead letters there."""


def for_dead_letters(name: TopicName, row: Row) -> bool:
    """Whether a topic, which has this row, is for dead letters."""
    return name.base.local.endswith((DEAD_LETTER_SUFFIX, RETRY_SUFFIX)) or bool(row.get(MARK))


def marked(topic: "PersistentTopic", now: Now) -> None:
    """A dead letter goes to the topic: it is one for them from now on."""
    if not topic.for_dead_letters:
        topic.for_dead_letters = True
        key = topic_key(str(topic.name))
        topic.core.commits.put_row(key, (topic.core.catalog.get(key) or {}) | {MARK: True})
    warn(topic)


def is_subscribed(stored: StoredTopic) -> bool:
    """Whether a topic has a durable subscription. The cursor of compaction is none: it does not deliver anything."""
    return any(cursor.name != COMPACTION_SUBSCRIPTION for cursor in stored.cursors.values())


def drops_dead_letters(topic: "PersistentTopic") -> bool:
    """Whether the topic is for dead letters, and nothing keeps what it is given."""
    if not topic.for_dead_letters or is_subscribed(topic.stored):
        return False
    return retains_nothing(topic.policies)


def retains_nothing(policies: TopicPolicies) -> bool:
    """Whether a topic without subscriptions drops its messages: no retention holds, and no unsubscribed retention."""
    retention = policies.get(RETENTION)
    return not (retention.time_ms and retention.size) and policies.get(UNSUBSCRIBED_TIME) == OFF


def warn(topic: "PersistentTopic") -> None:
    """Say in the log, once, that dead letters will be lost; before they are."""
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
