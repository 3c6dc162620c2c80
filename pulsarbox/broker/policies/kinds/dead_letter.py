"""Dead letter policy of a subscription, enforced by the broker: an extension, as Pulsar leaves it to clients.

Its JSON form has the field names of the clients' DeadLetterPolicy:
https://pulsar.apache.org/docs/4.2.x/concepts-messaging/#dead-letter-topic.
"""

from typing import Any, Final, NamedTuple, Self

from pulsarbox.errors import InvalidTopicName, Unprocessable
from pulsarbox.names import DEAD_LETTER_SUFFIX, TopicName, parse_topic
from pulsarbox.storage.catalog import Row

DEFAULT_SUBSCRIPTION: Final = "dead-letters"
"""Default initial subscription of a dead letter topic, which makes the topic retain its messages."""

ROW: Final = "deadLetter"
"""Field of a subscription's row with its policy."""

COUNT_MAX: Final = 1_000_000

_KEYS: Final = ("maxRedeliverCount", "deadLetterTopic", "initialSubscriptionName")


class DeadLetterPolicy(NamedTuple):
    """When a message becomes a dead letter, and the topic it is moved to."""

    max_redeliveries: int
    """Maximum number of redeliveries; 0: a message is sent once."""
    topic: TopicName
    initial_subscription: str
    """Subscription to create on a dead letter topic that has none; empty for none."""

    @classmethod
    def read(cls, value: Any, topic: TopicName, subscription: str) -> Self:
        """Parse the JSON form for a subscription of a topic. Raises Unprocessable."""
        if not isinstance(value, dict):
            raise Unprocessable('A dead letter policy must be a JSON object such as {"maxRedeliverCount": 3}')
        unknown = [name for name in value if name not in _KEYS]
        if unknown:
            raise Unprocessable(f"Unknown field {unknown[0]!r} of a dead letter policy; fields: {', '.join(_KEYS)}")
        count = value.get("maxRedeliverCount")
        if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= COUNT_MAX:
            raise Unprocessable(f"maxRedeliverCount must be a whole number from 0 to {COUNT_MAX}, not {count!r}")
        initial = value.get("initialSubscriptionName")
        initial = DEFAULT_SUBSCRIPTION if initial is None else initial
        if not isinstance(initial, str) or (initial and not initial.strip()):
            raise Unprocessable("initialSubscriptionName must be the name of a subscription, or empty for none")
        return cls(count, _target(value.get("deadLetterTopic"), topic, subscription), initial)

    @classmethod
    def of_row(cls, row: Row) -> Self:
        """Return the policy from its stored form."""
        return cls(row["maxRedeliverCount"], parse_topic(row["deadLetterTopic"]), row["initialSubscriptionName"])

    def as_json(self) -> Row:
        """Return the JSON form, for the Admin API and for the row."""
        return dict(zip(_KEYS, (self.max_redeliveries, str(self.topic), self.initial_subscription), strict=True))


def _target(text: object, topic: TopicName, subscription: str) -> TopicName:
    if text is None or text == "":
        text = f"{topic.base}-{subscription}{DEAD_LETTER_SUFFIX}"
    if not isinstance(text, str):
        raise Unprocessable(f"deadLetterTopic must be the name of a topic, not {text!r}")
    try:
        target = parse_topic(text)
    except InvalidTopicName as error:
        raise Unprocessable(f"deadLetterTopic: {error}") from None
    if not target.persistent:
        raise Unprocessable(f"deadLetterTopic must be a persistent topic: {target} stores no messages")
    if target.base == topic.base:
        raise Unprocessable(f"deadLetterTopic must not be {target}, the topic of the subscription")
    return target
