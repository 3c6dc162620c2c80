"""SUBSCRIBE: creation of subscriptions, their start position, and attachment of consumers."""

import logging
from functools import partial

from pulsarbox.broker.connection.cnx import ServerCnx
from pulsarbox.broker.connection.opening import Opening
from pulsarbox.broker.connection.pending_opening import closed_early
from pulsarbox.broker.dispatch.selectors.key_shared_meta import KeySharedMeta, KeySharedMode
from pulsarbox.broker.plugins import needed_by
from pulsarbox.broker.policies.kinds.auto_creation import AUTO_SUBSCRIPTIONS
from pulsarbox.broker.policies.kinds.subscription_types import check_type_enabled
from pulsarbox.broker.security.revocation import check_consumer
from pulsarbox.broker.subscription.consumer import AnySubscription, Consumer
from pulsarbox.broker.subscription.subscription import ONE_ACTIVE, Reset, Subscription
from pulsarbox.broker.topic.non_persistent import NonPersistentTopic
from pulsarbox.broker.topic.topic import PersistentTopic, Topic
from pulsarbox.broker.topic.topic_schemas import is_schema
from pulsarbox.clock import Now
from pulsarbox.errors import NamingError, NotAllowed, PulsarBoxError, ServiceNotReady, SubscriptionNotFound
from pulsarbox.names import TopicName, parse_topic
from pulsarbox.protocol import PulsarApi_pb2 as pulsar_api
from pulsarbox.protocol import replies
from pulsarbox.protocol.metadata import key_values
from pulsarbox.protocol.PulsarApi_pb2 import CommandSubscribe, MessageIdData, Schema
from pulsarbox.storage.record import Position

log = logging.getLogger(__name__)

DEDUPLICATION_NAME = "pulsar.dedup"
REPLICATION_PREFIX = "pulsar.repl"
"""Names of Pulsar's internal cursors."""
LATEST = Position(2**63 - 1, 2**63 - 1)
EARLIEST = Position(-1, -1)
TOPIC_GONE = "The topic was unloaded while the start position of the reader was looked up, try again"


def subscribe(cnx: ServerCnx, command: CommandSubscribe, now: Now) -> None:
    """Open a consumer; answered once its subscription is durable."""
    if command.consumer_id in cnx.consumers:
        cnx.outbox.send(replies.success(command.request_id))
        return
    opening = Opening(cnx, ("consumer", command.consumer_id), command.request_id)
    opening.step(partial(_begin, opening, command), now)


def _begin(opening: Opening, command: CommandSubscribe, now: Now) -> None:
    name = parse_topic(command.topic)
    _check(command, name)
    topic = opening.cnx.broker.topics.open(name, now, create=command.force_topic_creation)
    if _waits_for_plugins(opening, command, topic):
        return
    topic.admission.check_consumer()
    if command.HasField("schema") and is_schema(command.schema):
        _open_with_schema(opening, command, name, now)
    else:
        _open(opening, command, name, now)


def _waits_for_plugins(opening: Opening, command: CommandSubscribe, topic: Topic) -> bool:
    """Return whether the consumer waits for plugins of its subscription to be loaded; other clients do not wait."""
    properties = key_values(command.subscription_properties)
    present = topic.subscriptions.get(command.subscription) if isinstance(topic, PersistentTopic) else None
    if present is not None:
        properties = present.properties
    broker = opening.cnx.broker
    loaded = partial(opening.step, partial(_begin, opening, command))
    return broker.plugins.want(needed_by(command.subType, properties, broker.settings), loaded)


def _open_with_schema(opening: Opening, command: CommandSubscribe, name: TopicName, now: Now) -> None:
    """Open the consumer after comparing its schema with those of the topic, which may take several turns."""
    broker = opening.cnx.broker

    def is_idle() -> bool:
        return _is_idle(broker.topics.open(name, now, create=command.force_topic_creation))

    def met(found: PulsarBoxError | None, when: Now) -> None:
        if found is not None:
            opening.fail(found, when)
        else:
            opening.step(partial(_open, opening, command, name), when)

    schemas = broker.schemas
    schemas.run(opening.cnx, command.schema, schemas.meeting(name, command.schema, now.wall, is_idle), met, now)


def _open(opening: Opening, command: CommandSubscribe, name: TopicName, now: Now) -> None:
    """Open a consumer whose plugins are loaded and whose schema is compatible."""
    cnx = opening.cnx
    topic = cnx.broker.topics.open(name, now, create=command.force_topic_creation)
    if isinstance(topic, NonPersistentTopic):
        present = topic.subscriptions.get(command.subscription)
        if present is not None:
            topic.admission.check_consumer_of(present, command.subType)
        subscription = topic.subscribe(command.subscription)
        opening.undo = subscription.forget_if_empty
        consumer = _consumer(cnx, command, subscription, -1, now)
        check_consumer(cnx.broker.authorization, consumer)  # a permission may have been revoked meanwhile
        subscription.add_consumer(consumer, command.subType, now)
        _opened(opening, consumer, now)
        return
    assert isinstance(topic, PersistentTopic)
    check_type_enabled(topic.policies, cnx.broker.settings, command.subType)
    host = cnx.address.rpartition(":")[0]
    topic.limits.check_subscribe((host, command.consumer_name, command.consumer_id), now)
    existing = topic.subscriptions.get(command.subscription)
    if existing is not None or command.durable:
        _join(opening, command, topic, _durable(cnx, command, topic, existing, now), now)
    else:
        _read_from(opening, command, topic, now)


def _is_idle(topic: Topic) -> bool:
    """Return whether the topic is empty, and without producers and consumers that require a schema."""
    if topic.producers or (isinstance(topic, PersistentTopic) and topic.ledger.size):
        return False
    subscriptions = topic.all_subscriptions()
    return all(consumer.takes_any_schema for each in subscriptions for consumer in each.consumers)


def _check(command: CommandSubscribe, name: TopicName) -> None:
    if not command.subscription.strip():
        raise NamingError("Empty subscription name")
    if command.subscription == DEDUPLICATION_NAME or command.subscription.startswith(REPLICATION_PREFIX):
        raise NamingError("Subscription with reserved subscription name attempted")
    if command.read_compacted:
        if command.subType not in (CommandSubscribe.Exclusive, CommandSubscribe.Failover):
            raise NotAllowed("readCompacted only allowed on failover or exclusive subscriptions")
        if not name.persistent:
            raise NotAllowed("readCompacted only valid on persistent topics")


def _durable(
    cnx: ServerCnx, command: CommandSubscribe, topic: PersistentTopic, existing: Subscription | None, now: Now
) -> Subscription:
    if existing is not None:
        if existing.durable != command.durable:
            kind = "Durable" if existing.durable else "NonDurable"
            raise NotAllowed(f"{kind} subscription with the same name already exists.")
        if command.replicate_subscription_state:
            existing.set_replicated(True, now)
        return existing
    if not topic.policies.get(AUTO_SUBSCRIPTIONS):
        raise SubscriptionNotFound(f"Subscription {command.subscription} does not exist, and clients may not create it")
    topic.admission.check_subscription(len(topic.subscriptions))
    earliest = command.initialPosition == CommandSubscribe.Earliest
    properties = key_values(command.subscription_properties)
    made = topic.subscribe(command.subscription, earliest=earliest, properties=properties, now=now)
    made.set_replicated(command.replicate_subscription_state, now)
    if command.read_compacted and earliest:
        made.compacted_reading().start_at(EARLIEST, made.cursor.mark_delete)
        made.compacted_reading().schedule_write(now)
    return made


def _read_from(opening: Opening, command: CommandSubscribe, topic: PersistentTopic, now: Now) -> None:
    """Open a reader at the entry it names; the client skips messages before its start within a batch."""

    start = _start(command, topic.ledger.end)

    def located(mark: Position, messages: int, size: int, when: Now) -> None:
        opening.step(partial(_read_behind, opening, command, topic, start, (mark, messages, size)), when)

    topic.reader.locate(start, located, opening.fail, now)


def _read_behind(
    opening: Opening,
    command: CommandSubscribe,
    topic: PersistentTopic,
    start: Position,
    behind: tuple[Position, int, int],
    now: Now,
) -> None:
    """Open a reader after a mark-delete position, given with its totals of messages and bytes."""
    if opening.cnx.broker.topics.open(topic.name, now, create=False) is not topic:
        raise ServiceNotReady(TOPIC_GONE)
    subscription = topic.subscriptions.get(command.subscription)
    if subscription is None:
        topic.admission.check_subscription(len(topic.subscriptions))
        subscription = topic.read_from(command.subscription, *behind)
        if command.read_compacted:
            subscription.compacted_reading().start_at(start, behind[0])
    _join(opening, command, topic, subscription, now)


def _start(command: CommandSubscribe, last: Position) -> Position:
    """Return the start position of a reader: its initial position, if the one it names is after the last entry.

    As in Pulsar, where the mark-delete of the non-durable cursor, one entry earlier, may be the last entry.
    """
    start = position_of(command.start_message_id) if command.HasField("start_message_id") else LATEST
    if Position(start.ledger_id, start.entry_id - 1) <= last:
        return start
    return EARLIEST if command.initialPosition == CommandSubscribe.Earliest else LATEST


def position_of(message_id: MessageIdData) -> Position:
    """Return the entry of a message ID; -1 is before every entry, 2**63 - 1 is after."""
    return Position(_signed(message_id.ledgerId), _signed(message_id.entryId))


def _signed(word: int) -> int:
    """Return an unsigned 64-bit field as the signed number that Java reads."""
    return word - 2**64 if word >> 63 else word


def _consumer(
    cnx: ServerCnx, command: CommandSubscribe, subscription: AnySubscription, partition: int, now: Now
) -> Consumer:
    consumer = Consumer(
        cnx,
        command.consumer_id,
        command.consumer_name,
        subscription,
        partition=partition,
        priority_level=command.priority_level,
        epoch=command.consumer_epoch if command.HasField("consumer_epoch") and command.subType in ONE_ACTIVE else None,
        now=now,
    )
    consumer.metadata = key_values(command.metadata)
    consumer.takes_any_schema = command.schema.type == Schema.AutoConsume
    consumer.read_compacted = command.read_compacted
    if command.HasField("keySharedMeta"):
        consumer.key_shared = _key_shared(command.keySharedMeta)
    return consumer


def _key_shared(meta: pulsar_api.KeySharedMeta) -> KeySharedMeta:
    ranges = tuple((each.start, each.end) for each in meta.hashRanges)
    return KeySharedMeta(KeySharedMode(meta.keySharedMode), ranges, meta.allowOutOfOrderDelivery)


def _join(
    opening: Opening, command: CommandSubscribe, topic: PersistentTopic, subscription: Subscription, now: Now
) -> None:
    """Attach to a subscription, after resetting it by time if the command requests it."""
    opening.undo = partial(_leave, subscription)
    attach = partial(opening.step, partial(_attach, opening, command, topic, subscription))
    seconds = command.start_message_rollback_duration_sec
    if not seconds:
        attach(now)
        return

    def as_it_is(error: Exception) -> None:
        if opening.pending:
            log.warning("subscription %s of %s was not rewound: %s", subscription.name, subscription.topic_name, error)
            attach(now)  # as in Pulsar

    if command.read_compacted:
        subscription.compacted_reading()
    reset = Reset()

    def undo(when: Now) -> None:
        subscription.cancel(reset)
        _leave(subscription, when)

    opening.undo = undo
    subscription.seek_to_time(now.wall - 1000 * seconds, attach, as_it_is, now, reset)


def _attach(
    opening: Opening, command: CommandSubscribe, topic: PersistentTopic, subscription: Subscription, now: Now
) -> None:
    if not subscription.is_current:
        raise ServiceNotReady(f"Subscription {subscription.name} was deleted, try again")
    opening.undo = partial(_leave, subscription)
    consumer = _consumer(opening.cnx, command, subscription, topic.name.partition_index, now)
    # A permission may have been revoked during the lookup of the start position.
    check_consumer(opening.cnx.broker.authorization, consumer)
    topic.admission.check_consumer()
    topic.admission.check_consumer_of(subscription, command.subType)
    subscription.add_consumer(consumer, command.subType, now)
    opening.undo = partial(_detach, consumer)
    opening.cnx.broker.when_durable(partial(opening.step, partial(_opened, opening, consumer)), now)


def _detach(consumer: Consumer, now: Now) -> None:
    consumer.closed = True
    consumer.subscription.remove_consumer(consumer, now)


def _leave(subscription: Subscription, now: Now) -> None:
    """Delete a subscription that is not durable if no consumer uses it."""
    if not subscription.durable and not subscription.consumers and not subscription.fenced:
        subscription.remove(now)


def _opened(opening: Opening, consumer: Consumer, now: Now) -> None:
    if consumer.closed:  # by the broker
        raise closed_early("consumer")
    opening.succeeded()
    opening.cnx.consumers[consumer.consumer_id] = consumer
    consumer.outbox.send(replies.success(opening.request_id))
