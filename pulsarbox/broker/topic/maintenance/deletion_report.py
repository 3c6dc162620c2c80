"""Reasons for topic deletion, and its report as an event and a log line with the deleted messages and bytes."""

import logging
from enum import Enum
from typing import Any

from pulsarbox.broker.events import WARNING, Events
from pulsarbox.broker.topic.system_topics import is_system
from pulsarbox.broker.topic.topic import PersistentTopic, Topic
from pulsarbox.clock import Now

log = logging.getLogger(__name__)


class Deletion(Enum):
    """Reason for a deletion: the value is a text, events have the lower-case name."""

    REQUEST = "deleted on request"
    INACTIVE = "deleted as inactive: unused for the time set by its inactive topic policies"
    NAMESPACE = "deleted with its namespace"


def report_deleted(topic: Topic, why: Deletion, events: Events, now: Now) -> None:
    """Report the deletion of a topic before it happens; for a persistent one with its messages and bytes."""
    name, text = str(topic.name), why.value
    about: dict[str, Any] = {"reason": why.name.lower()}
    if isinstance(topic, PersistentTopic):
        messages, size = topic.stored.visible_messages(), topic.ledger.size
        about |= {"messages": messages, "bytes": size}
        if messages and why is Deletion.INACTIVE:
            about["severity"] = WARNING
        text += f"; it held {messages:,} messages ({size:,} bytes)"
    if not is_system(name):
        log.info("topic %s %s", name, text)
        events.report("topic-deleted", name, text, now, **about)
