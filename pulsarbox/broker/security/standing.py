"""Whether those who are at a topic may still be there: asked when its policies change, permissions among them.

As in Pulsar a producer or consumer that may not any more is closed: its client is told, comes back, and is refused. A
tenant's admin roles are no policies of a topic: who came by right of them stays until the connection ends.
"""

import logging
from typing import TYPE_CHECKING

from pulsarbox.broker.security.authorization import CONSUME, PRODUCE
from pulsarbox.broker.security.principal import Principal
from pulsarbox.clock import Now
from pulsarbox.errors import PulsarBoxError

if TYPE_CHECKING:
    from pulsarbox.broker.any_subscription import AnySubscription
    from pulsarbox.broker.topic import Topic

log = logging.getLogger(__name__)


def close_forbidden(topic: "Topic", now: Now) -> None:
    """Close the producers and consumers of a topic that may not be there any more."""
    if topic.core.authorization.enabled:
        _close_producers(topic, now)
        for subscription in list(topic.all_subscriptions()):
            _close_consumers(topic, subscription, now)


def _close_producers(topic: "Topic", now: Now) -> None:
    for claim in topic.producers.claims:  # first: none of them is to have its turn when another goes
        error = _why_not(topic, claim.producer.cnx.principal, PRODUCE)
        if error is not None:
            topic.producers.remove(claim.producer, now)
            claim.refused(error, now)
    for producer in topic.producers:
        error = _why_not(topic, producer.cnx.principal, PRODUCE)
        if error is not None:
            log.info("producer %s of %s on %s is closed: %s", producer.name, producer.cnx.address, topic.name, error)
            producer.disconnect(now)


def _close_consumers(topic: "Topic", subscription: "AnySubscription", now: Now) -> None:
    closed = []
    for consumer in subscription.consumers:
        error = _why_not(topic, consumer.cnx.principal, CONSUME, subscription.name)
        if error is not None:
            log.info("consumer %s of %s on %s is closed: %s", consumer.name, consumer.cnx.address, topic.name, error)
            closed.append(consumer)
    for consumer in closed:
        consumer.disconnect(now)  # all of them first: none gets what another one held
    for consumer in closed:
        subscription.remove_consumer(consumer, now)


def _why_not(topic: "Topic", principal: Principal | None, action: str, subscription: str = "") -> PulsarBoxError | None:
    try:
        topic.core.authorization.require_on_topic(principal, topic.name, (action,), subscription)
    except PulsarBoxError as error:
        return error
    return None
