"""Detection of topics that would lose published messages, and a subscription that retains them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pulsarbox.client.admin import Admin, AdminRefused, path_of, quoted
from pulsarbox.errors import ConsumerBusy, PulsarBoxError
from pulsarbox.names import COMPACTION_SUBSCRIPTION, TopicName, parse_topic
from pulsarbox.protocol.policies.policy_values import retains
from pulsarbox.protocol.PulsarApi_pb2 import BaseCommand, CommandCloseConsumer, CommandSubscribe

if TYPE_CHECKING:
    from pulsarbox.client.client import Client

ANSWER_SECONDS: Final = 3.0
"""Time that a load waits for the Admin API before starting without an answer."""


def is_kept(admin: Admin, topic: TopicName) -> bool | None:
    """Return whether messages published now are retained, by a subscription, a retention policy or a rule of the box.

    None if the broker does not tell, or if the topic is not persistent. The topic need not exist.
    """
    if not topic.persistent:
        return None
    try:
        found = _of_box(admin, topic)
        return _of_pulsar(admin, topic) if found is None else found
    except PulsarBoxError:
        return None


def _of_box(admin: Admin, topic: TopicName) -> bool | None:
    """Return a box's answer; None from Apache Pulsar, or if the namespace does not exist."""
    try:
        return bool(admin.own(f"/kept{path_of(topic)}")["keptBy"] != "nothing")
    except AdminRefused as error:
        if error.status != 404:
            raise
        return None


def _of_pulsar(admin: Admin, topic: TopicName) -> bool:
    try:
        if set(admin.subscriptions(topic)) - {COMPACTION_SUBSCRIPTION}:
            return True
        retention = admin.ask("GET", f"{path_of(topic)}/retention", applied="true")
    except AdminRefused as error:
        if error.status != 404:
            raise
        retention = admin.ask("GET", f"/namespaces/{quoted(*topic.namespace.split('/'))}/retention")
    return retains(retention or {})


def loss_warning(topic: str, option: str) -> str:
    """Return the warning for a topic that keeps nothing; ``option`` is the option that creates a subscription."""
    return (
        f"topic {topic} has no subscription and no retention: the broker does not keep new messages;"
        f" {option} creates a subscription before the first message"
    )


def keep(client: Client, topic: str, subscription: str) -> None:
    """Create a durable subscription on a topic, or on each of its partitions, so that messages are retained.

    A new subscription starts at the earliest message; an existing one is left unchanged. Raises the broker's error.
    """
    name = parse_topic(topic)
    count = client.partitions(str(name), create=True)
    for part in [str(name.partition(number)) for number in range(count)] or [str(name)]:
        _subscribe(client, part, subscription)


def _subscribe(client: Client, topic: str, subscription: str) -> None:
    """Subscribe without requesting messages, and close the consumer."""
    connection = client.broker_of(topic)
    consumer_id, request_id = next(client.numbers), next(client.numbers)
    subscribe = CommandSubscribe(
        topic=topic,
        subscription=subscription,
        subType=CommandSubscribe.Shared,
        consumer_id=consumer_id,
        request_id=request_id,
        durable=True,
        initialPosition=CommandSubscribe.Earliest,
    )
    try:
        client.ask(connection, BaseCommand(type=BaseCommand.SUBSCRIBE, subscribe=subscribe), request_id)
    except ConsumerBusy:
        return  # the subscription exists, with consumers of another type
    request_id = next(client.numbers)
    closing = CommandCloseConsumer(consumer_id=consumer_id, request_id=request_id)
    client.ask(connection, BaseCommand(type=BaseCommand.CLOSE_CONSUMER, close_consumer=closing), request_id)
