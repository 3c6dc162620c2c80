"""Lookup of the topic or subscription in a request's path, with Pulsar's errors."""

from pulsarbox.broker.subscription.subscription import Subscription
from pulsarbox.broker.topic.system_topics import is_system
from pulsarbox.broker.topic.topic import PersistentTopic, Topic
from pulsarbox.clock import Now
from pulsarbox.errors import BadRequest, NotAllowed, NotFound
from pulsarbox.names import TopicName
from pulsarbox.server.http.framework.request import HttpRequest


def require_namespace(call: HttpRequest, name: TopicName) -> None:
    """Raise NotFound if the namespace of a topic is missing."""
    if not call.tenants.has_namespace(name.namespace):
        raise NotFound("Namespace not found")


def check_is_users(name: TopicName) -> None:
    """Raise BadRequest for the name of a system topic."""
    if is_system(str(name)):
        raise BadRequest("Cannot create topic in system topic format!")


def topic_of(call: HttpRequest) -> Topic:
    """Return the topic, which must not be partitioned but may be a partition. Raises NotFound."""
    return find_topic(call, call.topic(), call.now)


def find_topic(call: HttpRequest, name: TopicName, now: Now) -> Topic:
    """Return the topic of that name. Raises NotFound."""
    require_namespace(call, name)
    topic = call.topics.find(name, now)
    if topic is None:
        if name.base != name and name.partition_index >= call.topics.partitions(name.base):
            raise NotFound("Topic partitions were not yet created")
        raise NotFound(f"Topic {name} not found")
    return topic


def stored_topic(call: HttpRequest, what: str, domain: str = "") -> PersistentTopic:
    """Return a topic that must be persistent. Raises NotFound; NotAllowed if it does not support ``what``.

    ``domain`` is required if the path does not contain it.
    """
    name = call.topic(domain)
    require_namespace(call, name)
    if call.topics.partitions(name):
        raise NotAllowed(f"{what} on a partitioned topic is not allowed")
    return persistent(find_topic(call, name, call.now), what)


def persistent(topic: Topic, what: str) -> PersistentTopic:
    """Return the topic. Raises NotAllowed if it is not persistent."""
    if not isinstance(topic, PersistentTopic):
        raise NotAllowed(f"{what} on a non-persistent topic is not allowed")
    return topic


def subscription_of(topic: PersistentTopic, name: str) -> Subscription:
    """Return the subscription of that name. Raises NotFound."""
    found = topic.subscriptions.get(name)
    if found is None:
        raise NotFound(f"Subscription {name} not found for topic {topic.name}")
    return found


def parts_of(call: HttpRequest, domain: str = "") -> list[TopicName]:
    """Return the partitions of the topic, or the topic if it is not partitioned. Raises NotFound for its namespace.

    ``domain`` is required if the path does not contain it.
    """
    name = call.topic(domain)
    require_namespace(call, name)
    count = call.topics.partitions(name)
    return [name.partition(i) for i in range(count)] if count else [name]
