"""Revocation: disconnects clients that a change of policies or permissions has made unauthorized.

As in Pulsar, the broker closes the producer or consumer; its client reconnects and is refused. A tenant's admin roles
are not policies of a topic: clients authorized by one stay until they disconnect.
"""

import logging
from collections.abc import Iterable

from pulsarbox.broker.security.authorization import CONSUME, PRODUCE, Authorization
from pulsarbox.broker.subscription.consumer import AnySubscription, Consumer
from pulsarbox.broker.topic.producer import AttachedProducer
from pulsarbox.broker.topic.producer_access import Producers
from pulsarbox.clock import Now
from pulsarbox.errors import PulsarBoxError

log = logging.getLogger(__name__)


def close_forbidden(
    authorization: Authorization, producers: Producers, subscriptions: Iterable[AnySubscription], now: Now
) -> None:
    """Close the producers and consumers of a topic that are no longer authorized."""
    if authorization.enabled:
        _close_producers(authorization, producers, now)
        for subscription in list(subscriptions):
            _close_consumers(authorization, subscription, now)


def check_producer(authorization: Authorization, producer: AttachedProducer) -> None:
    """Raise PulsarBoxError if a producer is not authorized on its topic."""
    authorization.require_on_topic(producer.cnx.principal, producer.topic.name, (PRODUCE,))


def check_consumer(authorization: Authorization, consumer: Consumer) -> None:
    """Raise PulsarBoxError if a consumer is not authorized on its subscription."""
    cnx, subscription = consumer.cnx, consumer.subscription
    authorization.require_on_topic(cnx.principal, subscription.topic_name, (CONSUME,), subscription.name)


def _close_producers(authorization: Authorization, producers: Producers, now: Now) -> None:
    for claim in producers.claims:  # waiting ones first, so that none takes over
        try:
            check_producer(authorization, claim.producer)
        except PulsarBoxError as error:
            producers.remove(claim.producer, now, error)
    for producer in producers:
        try:
            check_producer(authorization, producer)
        except PulsarBoxError as error:
            log.info("producer %s of %s is closed: %s", producer.name, producer.cnx.address, error)
            producer.disconnect(now)


def _close_consumers(authorization: Authorization, subscription: AnySubscription, now: Now) -> None:
    closed = []
    for consumer in subscription.consumers:
        try:
            check_consumer(authorization, consumer)
        except PulsarBoxError as error:
            log.info("consumer %s of %s is closed: %s", consumer.name, consumer.cnx.address, error)
            closed.append(consumer)
    for consumer in closed:
        consumer.disconnect(now)  # all before any removal, so that none receives entries another one held
    for consumer in closed:
        subscription.remove_consumer(consumer, now)
