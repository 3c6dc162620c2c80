"""Revocation: disconnects clients that a change of policies or permissions has made unauthorized.

As in Pulsar, the broker closes the producer or consumer; its client reconnects and is refused. A tenant's admin roles
are not policies of a topic: clients authorized by one stay until they disconnect.
"""

import logging
from typing import TYPE_CHECKING

from pulsarbox.broker.security.authorization import CONSUME, PRODUCE
from pulsarbox.clock import Now
from pulsarbox.errors import PulsarBoxError

if TYPE_CHECKING:
    from pulsarbox.broker.subscription.consumer import Consumer
    from pulsarbox.broker.subscription.interface import AnySubscription
    from pulsarbox.broker.topic.producer import AttachedProducer
    from pulsarbox.broker.topic.topic import Topic

log = logging.getLogger(__name__)


def close_forbidden(topic: "Topic", now: Now) -> None:
    """Close the producers and consumers of a topic that are no longer authorized."""
    if topic.core.authorization.enabled:
        _close_producers(topic, now)
        for subscription in list(topic.all_subscriptions()):
            _close_consumers(subscription, now)


def check_producer(producer: "AttachedProducer") -> None:
    """Raise PulsarBoxError if a producer is not authorized on its topic."""
    authorization = producer.topic.core.authorization
    authorization.require_on_topic(producer.cnx.principal, producer.topic.name, (PRODUCE,))


def check_consumer(consumer: "Consumer") -> None:
    """Raise PulsarBoxError if a consumer is not authorized on its subscription."""
    cnx, subscription = consumer.cnx, consumer.subscription
    authorization = cnx.broker.core.authorization
    authorization.require_on_topic(cnx.principal, subscription.topic_name, (CONSUME,), subscription.name)


def _close_producers(topic: "Topic", now: Now) -> None:
    for claim in topic.producers.claims:  # waiting ones first, so that none takes over
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
        consumer.disconnect(now)  # all before any removal, so that none receives entries another one held
    for consumer in closed:
        subscription.remove_consumer(consumer, now)
