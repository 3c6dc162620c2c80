"""Why topics are deleted, and the report of it: an event and a line of the log, with what was in the topic."""

import logging
from enum import Enum
from typing import Any

from pulsarbox.broker.events import WARNING, Events
from pulsarbox.broker.topic.system_topics import is_system
from pulsarbox.broker.topic.topic import PersistentTopic, Topic
from pulsarbox.clock import Now

log = logging.getLogger(__name__)


class Deletion(Enum):
    """Why a topic is deleted, in words. Events have the names in small letters."""

    REQUEST = "deleted on request"
    INACTIVE = "deleted as inactive: unused for as long as its inactive topic policies say"
    NAMESPACE = "deleted with its namespace"


def report_deleted(topic: Topic, why: Deletion, events: Events, now: Now) -> None:
    """Report that a topic is about to be deleted; of a persistent one also the messages and bytes in it."""
    name, text = str(topic.name), why.value
    about: dict[str, Any] = {"reason": why.name.lower()}
    if isinstance(topic, PersistentTopic):
        messages, size = topic.stored.visible_messages(), topic.ledger.size
        about |= {"messages": messages, "bytes": size}
        if messages and why is Deletion.INACTIVE:
            about["severity"] = WARNING
        text += f"; it held {messages:,} messages ({size:,} bytes)"
    if not is_system(name):
        log.info("topic %s is %s", name, text)
        events.tell("topic-deleted", name, text, now, **about)
