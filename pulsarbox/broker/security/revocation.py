"""Whether those who are at a topic may still be there: asked when its policies change, permissions among them.

As in Pulsar a producer or consumer that may not any more is closed: its client is told, comes back, and is refused. A
tenant's admin roles are no policies of a topic: who came by right of them stays until the connection ends.
"""

import logging
from typing import TYPE_CHECKING

from pulsarbox.broker.security.authorization import CONSUME, PRODUCE
from pulsarbox.clock import Now
from pulsarbox.errors import PulsarBoxError

if TYPE_CHECKING:
    from pulsarbox.broker.subscription.consumer import Consumer
    from pulsarbox.broker.subscription.interface import AnySubscription
    from pulsarbox.broker.topic.producer import Producer
    from pulsarbox.broker.topic.topic import Topic

log = logging.getLogger(__name__)


def close_forbidden(topic: "Topic", now: Now) -> None:
    """Close the producers and consumers of a topic that may not be there any more."""
    if topic.core.authorization.enabled:
        _close_producers(topic, now)
        for subscription in list(topic.all_subscriptions()):
            _close_consumers(subscription, now)


def check_producer(producer: "Producer") -> None:
    """Raises PulsarBoxError where a producer may not be at its topic."""
    authorization = producer.topic.core.authorization
    authorization.require_on_topic(producer.cnx.principal, producer.topic.name, (PRODUCE,))


def check_consumer(consumer: "Consumer") -> None:
    """Raises PulsarBoxError where a consumer may not be at its subscription."""
    cnx, subscription = consumer.cnx, consumer.subscription
    authorization = cnx.broker.core.authorization
    authorization.require_on_topic(cnx.principal, subscription.topic_name, (CONSUME,), subscription.name)


def _close_producers(topic: "Topic", now: Now) -> None:
    for claim in topic.producers.claims:  # first: none of them is to have its turn when another goes
        try:
            check_producer(claim.producer)
        except PulsarBoxError as error:
            topic.producers.remove(claim.producer, now, error)
    for producer in topic.producers:
        try:
            check_producer(producer)
        except PulsarBoxError as error:
            log.info("producer %s of %s is closed: %s", producer.name, producer.cnx.address, error)
            producer.disconnect(now)


def _close_consumers(subscription: "AnySubscription", now: Now) -> None:
    closed = []
    for consumer in subscription.consumers:
        try:
            check_consumer(consumer)
        except PulsarBoxError as error:
            log.info("consumer %s of %s is closed: %s", consumer.name, consumer.cnx.address, error)
            closed.append(consumer)
    for consumer in closed:
        consumer.disconnect(now)  # all of them first: none gets what another one held
    for consumer in closed:
        subscription.remove_consumer(consumer, now)
