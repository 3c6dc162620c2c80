"""Broker services that replay jobs use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pulsarbox.broker.dead_letter.router import DeadLetterRouter
    from pulsarbox.broker.persistence.group_commit import GroupCommit
    from pulsarbox.broker.persistence.read_queue import ReadQueue
    from pulsarbox.broker.security.authorization import Authorization
    from pulsarbox.broker.timers import Timers
    from pulsarbox.broker.topic.quarantine import Quarantine
    from pulsarbox.broker.topic.registry import Topics
    from pulsarbox.broker.topic.topic_schemas import Schemas
    from pulsarbox.storage.catalog import Catalog


@dataclass(frozen=True, slots=True, eq=False, kw_only=True, repr=False)
class JobServices:
    """The services that run jobs."""

    catalog: Catalog
    commits: GroupCommit
    timers: Timers
    reads: ReadQueue
    authorization: Authorization
    quarantine: Quarantine
    topics: Topics
    schemas: Schemas
    dead_letters: DeadLetterRouter
    max_message_size: int
    """Bytes."""
