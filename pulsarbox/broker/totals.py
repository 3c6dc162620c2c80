"""Numbers of many topics together."""

from dataclasses import dataclass, fields

from pulsarbox.broker.topic_samples import TopicSample


@dataclass(slots=True)
class Totals:
    """Of many topics together. Rates are a second."""

    topics: int = 0
    subscriptions: int = 0
    producers: int = 0
    consumers: int = 0
    backlog: int = 0
    unacked: int = 0
    size: int = 0
    letters: int = 0
    """Messages in topics for dead letters."""
    publish_rate: float = 0.0
    publish_bytes: float = 0.0
    deliver_rate: float = 0.0
    deliver_bytes: float = 0.0

    def add(self, topic: TopicSample, sign: int = 1) -> None:
        """One topic more; with -1 one less of those that are not in memory, which have no rates."""
        self.topics += sign
        self.subscriptions += sign * len(topic.subscriptions)
        self.backlog += sign * topic.backlog
        self.size += sign * topic.size
        letters = topic.letters
        if letters is not None:
            self.letters += sign * letters.messages
        if topic.topic is None:
            return
        self.producers += topic.producers
        self.publish_rate += topic.in_rate
        self.publish_bytes += topic.bytes_in_rate
        self.deliver_rate += topic.out_rate
        for each in topic.subscriptions.values():
            self.unacked += each.unacked
            if each.subscription is not None:
                self.consumers += len(each.subscription.consumers)

    def plus(self, other: "Totals") -> "Totals":
        """Both together."""
        return Totals(*(getattr(self, each.name) + getattr(other, each.name) for each in fields(self)))
