"""Numbers of many topics together."""

from dataclasses import dataclass, fields
from typing import Final

from pulsarbox.broker.stats.topic_samples import TopicSample

COUNTS: Final = ("topics", "subscriptions", "backlog", "unacked", "size", "letters")
"""What a topic adds that is counted; the rest are rates."""


@dataclass(slots=True)
class Totals:
    """Of many topics together. Rates are a second."""

    topics: int = 0
    subscriptions: int = 0
    backlog: int = 0
    """Messages, as ``unacked`` and ``letters``."""
    unacked: int = 0
    size: int = 0
    letters: int = 0
    """In topics for dead letters, and not acknowledged."""
    publish_rate: float = 0.0
    publish_bytes: float = 0.0
    deliver_rate: float = 0.0
    deliver_bytes: float = 0.0

    def count(self, topic: TopicSample) -> None:
        """Bring what the topic adds to the counts up to date, if anything of it is other than it was."""
        counts = topic.counts()
        if counts == topic.counted:
            return
        before = topic.counted or (0,) * len(COUNTS)
        topic.counted = counts
        for name, new, old in zip(COUNTS, counts, before, strict=True):
            setattr(self, name, getattr(self, name) + new - old)

    def uncount(self, topic: TopicSample) -> None:
        """The topic is not among them any more."""
        counted, topic.counted = topic.counted, None
        for name, count in zip(COUNTS, counted or (0,) * len(COUNTS), strict=True):
            setattr(self, name, getattr(self, name) - count)

    def add_rates(self, topic: TopicSample) -> None:
        """What the topic does now."""
        self.publish_rate += topic.in_rate
        self.publish_bytes += topic.bytes_in_rate
        self.deliver_rate += topic.out_rate

    def add(self, topic: TopicSample) -> None:
        """One topic more, of some that are summed up once."""
        for name, count in zip(COUNTS, topic.counts(), strict=True):
            setattr(self, name, getattr(self, name) + count)
        self.add_rates(topic)

    def plus(self, other: "Totals") -> "Totals":
        """Both together."""
        return Totals(*(getattr(self, each.name) + getattr(other, each.name) for each in fields(self)))
