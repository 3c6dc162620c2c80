"""LOOKUP, PARTITIONED_METADATA, GET_TOPICS_OF_NAMESPACE and the topic list watch."""

import re

from pulsarbox.broker.cnx import ServerCnx
from pulsarbox.broker.endpoints import Place
from pulsarbox.clock import Now
from pulsarbox.errors import NotSupported, PulsarBoxError
from pulsarbox.names import TopicName, parse_topic
from pulsarbox.protocol import replies
from pulsarbox.protocol.PulsarApi_pb2 import (
    CommandGetTopicsOfNamespace,
    CommandLookupTopic,
    CommandPartitionedTopicMetadata,
    CommandWatchTopicList,
    CommandWatchTopicListClose,
)
from pulsarbox.protocol.topics_hash import topics_hash

MAX_PATTERN_LENGTH = 50
"""Longer patterns are left to the client, as Pulsar does (subscriptionPatternMaxLength)."""
PATTERN_IS_PLAIN = re.compile(r"[\w\s:/~,%=@.*\-\[\]^$|?+]*", re.ASCII)


def lookup(cnx: ServerCnx, command: CommandLookupTopic, now: Now) -> None:
    """Where a topic is: always here, at the address of the client's listener or the one it came by."""
    broker = cnx.broker
    try:
        name = parse_topic(command.topic)
        place = broker.endpoints.of(command.advertised_listener_name.strip() or cnx.listener)
        broker.tenants.require(name.namespace)
    except PulsarBoxError as error:
        cnx.outbox.send(replies.lookup_failed(command.request_id, error.server_error, str(error)))
        return
    if broker.endpoints.fixed:
        url, url_tls, through = place.url, place.url_tls, place.through_service_url
    else:
        # The client stays with the address that has worked; the URL is for those that do not know this flag.
        url, url_tls, through = *_reached(cnx, place), True
    cnx.outbox.send(
        replies.lookup_connect(command.request_id, url or None, url_tls or None, proxy_through_service_url=through)
    )


def _reached(cnx: ServerCnx, place: Place) -> tuple[str, str]:
    """The URLs by which the client has come, without and with TLS: its own, and the other port of the same host."""
    if not cnx.reached:
        return place.url, place.url_tls
    host = cnx.reached.rpartition(":")[0]
    other = place.url if cnx.secure else place.url_tls
    other = f"{host}:{other.rpartition(':')[2]}" if other else ""
    if cnx.secure:
        return f"pulsar://{other}" if other else "", f"pulsar+ssl://{cnx.reached}"
    return f"pulsar://{cnx.reached}", f"pulsar+ssl://{other}" if other else ""


def partitioned_metadata(cnx: ServerCnx, command: CommandPartitionedTopicMetadata, now: Now) -> None:
    """How many partitions a topic has; asked before every producer and consumer."""
    try:
        name = parse_topic(command.topic)
        partitions = cnx.broker.topics.metadata(name, now, create=command.metadata_auto_creation_enabled)
    except PulsarBoxError as error:
        cnx.outbox.send(replies.partition_metadata_failed(command.request_id, error.server_error, str(error)))
        return
    reply = replies.partition_metadata(command.request_id, partitions)
    cnx.broker.when_durable(lambda when: cnx.outbox.send(reply), now)


def get_topics_of_namespace(cnx: ServerCnx, command: CommandGetTopicsOfNamespace, now: Now) -> None:
    """The topics of a namespace, filtered by pattern where the client brings a short and plain one."""
    mode = CommandGetTopicsOfNamespace.Mode.Name(command.mode)
    names = cnx.broker.topics.names(command.namespace, mode)
    pattern = _compiled(command.topics_pattern)
    if pattern is not None:
        names = [name for name in names if pattern.fullmatch(_without_domain(parse_topic(name)))]
    digest = topics_hash(names)
    changed = not command.topics_hash or command.topics_hash != digest
    cnx.outbox.send(
        replies.get_topics_of_namespace_response(
            command.request_id, names if changed else (), digest, filtered=pattern is not None, changed=changed
        )
    )


def _compiled(pattern: str) -> re.Pattern[str] | None:
    """The pattern, None where it is left to the client: it is long, or it is more than names and wildcards."""
    if not pattern or len(pattern) > MAX_PATTERN_LENGTH or not PATTERN_IS_PLAIN.fullmatch(pattern):
        return None
    if pattern.count("*") + pattern.count("+") > 2:
        return None  # nested repetition takes for ever in a backtracking matcher
    try:
        return re.compile(pattern.partition("://")[2] or pattern)
    except re.error:
        return None


def _without_domain(name: TopicName) -> str:
    return f"{name.tenant}/{name.namespace_local}/{name.base.local}"


def watch_topic_list(cnx: ServerCnx, command: CommandWatchTopicList, now: Now) -> None:
    """Not offered in CONNECTED, so that clients poll instead."""
    raise NotSupported("Topic list watches are not supported by this version; clients poll instead")


def watch_topic_list_close(cnx: ServerCnx, command: CommandWatchTopicListClose, now: Now) -> None:
    """There is no watch to close."""
    cnx.outbox.send(replies.success(command.request_id))
