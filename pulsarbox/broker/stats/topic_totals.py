"""Totals over many topics."""

from dataclasses import dataclass, fields
from typing import Final

from pulsarbox.broker.stats.topic_samples import TopicSample

COUNTS: Final = ("topics", "subscriptions", "backlog", "unacked", "size", "letters", "offloaded")
"""Fields that are counts; the others are rates."""


@dataclass(slots=True)
class Totals:
    """Totals over many topics. Rates are per second."""

    topics: int = 0
    subscriptions: int = 0
    backlog: int = 0
    """In messages, as are ``unacked`` and ``letters``."""
    unacked: int = 0
    size: int = 0
    letters: int = 0
    """Unacknowledged messages in dead letter topics."""
    offloaded: int = 0
    """Bytes of ledgers that offloads have copied."""
    publish_rate: float = 0.0
    publish_bytes: float = 0.0
    deliver_rate: float = 0.0
    deliver_bytes: float = 0.0

    def count(self, topic: TopicSample) -> None:
        """Update the counts by what has changed in a topic since it was last counted."""
        counts = topic.counts()
        if counts == topic.counted:
            return
        before = topic.counted or (0,) * len(COUNTS)
        topic.counted = counts
        for name, new, old in zip(COUNTS, counts, before, strict=True):
            setattr(self, name, getattr(self, name) + new - old)

    def uncount(self, topic: TopicSample) -> None:
        """Remove a topic from the counts."""
        counted, topic.counted = topic.counted, None
        for name, count in zip(COUNTS, counted or (0,) * len(COUNTS), strict=True):
            setattr(self, name, getattr(self, name) - count)

    def add_rates(self, topic: TopicSample) -> None:
        """Add the current rates of a topic."""
        self.publish_rate += topic.in_rate
        self.publish_bytes += topic.bytes_in_rate
        self.deliver_rate += topic.out_rate

    def add(self, topic: TopicSample) -> None:
        """Add the counts and rates of a topic, for totals that are computed once."""
        for name, count in zip(COUNTS, topic.counts(), strict=True):
            setattr(self, name, getattr(self, name) + count)
        self.add_rates(topic)

    def plus(self, other: "Totals") -> "Totals":
        """Return the sum of both."""
        return Totals(*(getattr(self, each.name) + getattr(other, each.name) for each in fields(self)))
