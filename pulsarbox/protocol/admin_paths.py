"""Paths of the Admin API."""

from urllib.parse import quote

from pulsarbox.names import TopicName


def quoted(*parts: str) -> str:
    """Return names as a URL path."""
    return "/".join(quote(part, safe="") for part in parts)


def path_of(topic: TopicName, *more: str) -> str:
    """Return the path of a topic, or of a resource below it."""
    return "/" + quoted(topic.domain, topic.tenant, topic.namespace_local, topic.local, *more)


def subscription_segment(name: str, *more: str) -> str:
    """Return the path segment of a subscription, and a resource below it. Brokers decode the name twice."""
    return quoted(quoted(name), *more)


def path_of_subscription(topic: TopicName, name: str, *more: str) -> str:
    """Return the path of a topic's subscription, or of a resource below it."""
    return f"{path_of(topic)}/subscription/{subscription_segment(name, *more)}"
