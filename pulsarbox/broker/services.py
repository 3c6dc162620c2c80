"""Ports to single services of the broker.

A part of a topic or of a subscription names the services that it uses by combining these ports. ``core.Core`` has all
of them.
"""

from typing import Protocol

from pulsarbox.broker.dispatch.read_limits import ReadLimits
from pulsarbox.broker.events import Events
from pulsarbox.broker.persistence.group_commit import GroupCommit
from pulsarbox.broker.persistence.read_queue import ReadQueue
from pulsarbox.broker.timers import Timers
from pulsarbox.broker.topic.quarantine import Quarantine
from pulsarbox.config import Settings
from pulsarbox.storage.catalog import Catalog


class HasSettings(Protocol):
    """Has the settings in effect, which may be replaced by others: read a dynamic one when it is used."""

    @property
    def settings(self) -> Settings:
        """The settings in effect."""


class HasCatalog(Protocol):
    """Has the catalog."""

    @property
    def catalog(self) -> Catalog:
        """The rows of the metadata."""


class HasCommits(Protocol):
    """Has the group commit."""

    @property
    def commits(self) -> GroupCommit:
        """Makes changes durable."""


class HasTimers(Protocol):
    """Has the timers."""

    @property
    def timers(self) -> Timers:
        """Calls back at a time."""


class HasReads(Protocol):
    """Has the read queue."""

    @property
    def reads(self) -> ReadQueue:
        """Reads entries that are not in memory."""


class HasReadLimits(Protocol):
    """Has the read limits."""

    @property
    def bounds(self) -> ReadLimits:
        """Limits of the reads of all dispatchers."""


class HasEvents(Protocol):
    """Has the events."""

    @property
    def events(self) -> Events:
        """Reports to operators."""


class HasQuarantine(Protocol):
    """Has the quarantine."""

    @property
    def quarantine(self) -> Quarantine:
        """Sets damaged entries aside."""
