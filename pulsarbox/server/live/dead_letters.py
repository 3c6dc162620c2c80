"""The live view of dead-letter topics: their contents, their origin, and whether messages are retained."""

from collections.abc import Iterator
from operator import attrgetter
from typing import Final, NamedTuple

from pulsarbox.broker.broker import Broker
from pulsarbox.broker.dead_letter.retention_warning import drops_dead_letters, retains_nothing
from pulsarbox.broker.stats.topic_samples import Letters, TopicSample
from pulsarbox.broker.subscription.subscription import Subscription
from pulsarbox.broker.topic.topic import PersistentTopic
from pulsarbox.clock import Now
from pulsarbox.names import COMPACTION_SUBSCRIPTION, is_retry_topic, origin_of, parse_topic
from pulsarbox.server.live.view import LiveView, ViewColumn, ViewScope, kept

Origin = tuple[str, str]
"""Full name of a topic, and a subscription."""


class LetterTopic(NamedTuple):
    """A dead-letter or retry topic."""

    broker: Broker
    sample: TopicSample
    letters: Letters
    told: Origin | None
    """The origin according to a dead letter policy of the box."""

    @property
    def is_retry(self) -> bool:
        """Whether it is a retry topic."""
        return is_retry_topic(parse_topic(self.sample.name))


def things(broker: Broker, scope: ViewScope, now: Now) -> Iterator[LetterTopic | None]:
    """Yield all of them, loaded or not."""
    told: dict[str, Origin] = {}
    """Origins by dead-letter topic, from the policies of loaded subscriptions."""
    for sample in list(broker.samples.topics.values()):
        yield None
        for each in list(sample.subscriptions.values()):
            subscription = each.subscription
            if isinstance(subscription, Subscription) and subscription.dead_letters.policy is not None:
                told[str(subscription.dead_letters.policy.topic)] = (sample.name, each.name)
    for sample in broker.samples.every():
        letters = sample.letters if scope.holds(sample.namespace) else None
        yield None if letters is None else LetterTopic(broker, sample, letters, told.get(sample.name))


def origin(topic: LetterTopic, now: Now) -> Origin | None:
    """Return the topic and subscription of origin; None if neither a policy nor the name tells."""
    if topic.told is not None:
        return topic.told
    topics = topic.broker.topics
    found = origin_of(parse_topic(topic.sample.name), lambda each: topics.exists(each) or topics.partitions(each) > 0)
    return None if found is None else (str(found[0]), found[1])


def _origin(topic: LetterTopic, now: Now) -> str | None:
    found = origin(topic, now)
    return None if found is None else found[0]


def _origin_subscription(topic: LetterTopic, now: Now) -> str | None:
    found = origin(topic, now)
    return None if found is None else found[1]


def _lost(topic: LetterTopic, now: Now) -> bool:
    """Return whether new messages are dropped because nothing retains them."""
    loaded = topic.sample.topic
    if isinstance(loaded, PersistentTopic):
        return drops_dead_letters(loaded)
    if topic.letters.kept:
        return False
    return retains_nothing(topic.broker.policies.of(parse_topic(topic.sample.name)))


def _kept_by(topic: LetterTopic) -> str | None:
    """Return the subscription that retains new messages; None if there is none, or more than one."""
    names = [
        each.name
        for each in topic.sample.subscriptions.values()
        if each.name != COMPACTION_SUBSCRIPTION and getattr(each.subscription, "durable", True)
    ]
    return names[0] if len(names) == 1 else None


COLUMNS: Final = {
    "topic": kept(attrgetter("sample.name")),
    "kind": kept(lambda topic: "retry" if topic.is_retry else "dead-letter"),
    "origin": ViewColumn(_origin),
    "originSubscription": ViewColumn(_origin_subscription),
    "left": kept(attrgetter("letters.left")),
    "messages": kept(attrgetter("letters.messages")),
    "size": kept(attrgetter("sample.size")),
    "backlog": kept(attrgetter("sample.backlog")),
    "subscriptions": kept(lambda topic: len(topic.sample.subscriptions)),
    "keptBy": kept(_kept_by),
    "lost": ViewColumn(_lost),
    "first": kept(lambda topic: topic.letters.first or None),
    "last": kept(lambda topic: topic.letters.last or None),
    "rate": kept(attrgetter("sample.in_rate")),
    "loaded": kept(lambda topic: topic.sample.topic is not None),
}

DEAD_LETTERS: Final = LiveView(
    "deadletters",
    COLUMNS,
    things,
    sort="messages",
    searched=lambda topic: (topic.sample.name,),
    refresh=lambda topic, now: topic.sample.refresh(now.monotonic),
)
