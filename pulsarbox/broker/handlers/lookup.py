"""LOOKUP, PARTITIONED_METADATA, GET_TOPICS_OF_NAMESPACE and the topic list watch."""

from contextlib import suppress
from typing import Final

from pulsarbox.broker.connection.cnx import ServerCnx
from pulsarbox.broker.endpoints import BrokerAddress
from pulsarbox.clock import Now
from pulsarbox.errors import InvalidTopicName, NotAllowed, PreconditionFailed, PulsarBoxError
from pulsarbox.names import parse_namespace, parse_topic
from pulsarbox.protocol import replies
from pulsarbox.protocol.PulsarApi_pb2 import (
    CommandGetTopicsOfNamespace,
    CommandLookupTopic,
    CommandPartitionedTopicMetadata,
    CommandWatchTopicList,
    CommandWatchTopicListClose,
)
from pulsarbox.protocol.topics_hash import topics_hash
from pulsarbox.protocol.topics_pattern import PatternError, TopicsPattern, topics_pattern, without_domain

LOOKED_AT_ONCE: Final = 500
"""Names listed and matched in one turn of the event loop: 2 us each, 6 us with a pattern."""


def lookup(cnx: ServerCnx, command: CommandLookupTopic, now: Now) -> None:
    """Answer that this broker serves the topic, at the address of the client's listener or the one it connected to."""
    broker = cnx.broker
    try:
        name = parse_topic(command.topic)
        place = broker.endpoints.of(command.advertised_listener_name.strip() or cnx.listener)
        broker.tenants.require(name.namespace)
    except PulsarBoxError as error:
        cnx.outbox.send(replies.lookup_failed(command.request_id, cnx.code_of(error), str(error)))
        return
    if broker.endpoints.fixed:
        url, url_tls, through = place.url, place.url_tls, place.through_service_url
    else:
        # The client keeps using the address it has connected to; the URL is for clients that do not support the flag.
        url, url_tls, through = *_reached(cnx, place), True
    cnx.outbox.send(
        replies.lookup_connect(command.request_id, url or None, url_tls or None, proxy_through_service_url=through)
    )


def _reached(cnx: ServerCnx, place: BrokerAddress) -> tuple[str, str]:
    """Return the URLs without and with TLS: the one the client has connected to, and the other port of that host."""
    if not cnx.reached:
        return place.url, place.url_tls
    host = cnx.reached.rpartition(":")[0]
    other = place.url if cnx.secure else place.url_tls
    other = f"{host}:{other.rpartition(':')[2]}" if other else ""
    if cnx.secure:
        return f"pulsar://{other}" if other else "", f"pulsar+ssl://{cnx.reached}"
    return f"pulsar://{cnx.reached}", f"pulsar+ssl://{other}" if other else ""


def partitioned_metadata(cnx: ServerCnx, command: CommandPartitionedTopicMetadata, now: Now) -> None:
    """Return the number of partitions; clients ask before they open a producer or consumer."""
    try:
        name = parse_topic(command.topic)
        partitions = cnx.broker.topics.metadata(name, now, create=command.metadata_auto_creation_enabled)
    except PulsarBoxError as error:
        cnx.outbox.send(replies.partition_metadata_failed(command.request_id, cnx.code_of(error), str(error)))
        return
    reply = replies.partition_metadata(command.request_id, partitions)
    cnx.broker.when_durable(lambda when: cnx.outbox.send(reply), now)


def get_topics_of_namespace(cnx: ServerCnx, command: CommandGetTopicsOfNamespace, now: Now) -> None:
    """List the topics of a namespace, filtered by the client's pattern if the broker evaluates it.

    An unknown namespace has no topics.
    """
    mode = CommandGetTopicsOfNamespace.Mode.Name(command.mode)
    _check_namespace(command.namespace)
    settings = cnx.broker.settings
    pages = cnx.broker.topics.users_pages(command.namespace, mode)
    pattern: TopicsPattern | None = None
    text = command.topics_pattern
    if text and settings.enableBrokerSideSubscriptionPatternEvaluation:
        if len(text) <= settings.subscriptionPatternMaxLength:
            with suppress(PatternError):  # the client filters by invalid and long patterns itself
                pattern = topics_pattern(text)
    names: list[str] = []

    def turn(now: Now) -> None:
        """Match one share of the topics; answer after the last."""
        looked = 0
        for page in pages:
            names.extend(page if pattern is None else pattern.of(page))
            looked += len(page)
            if looked >= LOOKED_AT_ONCE:
                cnx.broker.timers.at(now.monotonic, turn)
                return
        digest = topics_hash(names)
        changed = not command.topics_hash or command.topics_hash != digest
        cnx.outbox.send(
            replies.get_topics_of_namespace_response(
                command.request_id, names if changed else (), digest, filtered=pattern is not None, changed=changed
            )
        )

    turn(now)


def watch_topic_list(cnx: ServerCnx, command: CommandWatchTopicList, now: Now) -> None:
    """Answer with the persistent topics of a namespace, and notify the client of later changes.

    A client that has the current list receives its hash only. Clients poll instead after NotAllowed, which this raises
    if watching is disabled or the pattern is not accepted.
    """
    settings = cnx.broker.settings
    _check_namespace(command.namespace)
    if not (settings.enableBrokerTopicListWatcher and settings.enableBrokerSideSubscriptionPatternEvaluation):
        raise NotAllowed("Unable to create topic list watcher: Evaluating subscription patterns is disabled.")
    try:
        text = without_domain(command.topics_pattern)
        if len(text) > settings.subscriptionPatternMaxLength:
            most = settings.subscriptionPatternMaxLength
            raise NotAllowed(f"Unable to create topic list watcher: Pattern longer than maximum: {most}")
        pattern = topics_pattern(text)
    except PatternError as error:
        raise NotAllowed(f"Unable to create topic list watcher: invalid RE2 pattern: {error}") from None
    found = cnx.broker.topics.lists.watch(cnx, command.watcher_id, command.namespace, pattern)
    names = () if command.topics_hash == found.digest else found.names
    reply = replies.watch_topic_list_success(command.request_id, command.watcher_id, names, found.digest)
    cnx.outbox.send(reply)


def _check_namespace(name: str) -> None:
    """Raise InvalidTopicName for an invalid namespace, for which a Pulsar broker closes the connection."""
    try:
        parse_namespace(name)
    except PreconditionFailed as error:
        raise InvalidTopicName(str(error)) from None


def watch_topic_list_close(cnx: ServerCnx, command: CommandWatchTopicListClose, now: Now) -> None:
    """Stop watching; an unknown watcher is ignored."""
    cnx.broker.topics.lists.leave(cnx, command.watcher_id)
    cnx.outbox.send(replies.success(command.request_id))
