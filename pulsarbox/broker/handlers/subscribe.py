"""SUBSCRIBE: which subscription a consumer comes to, and where a new one starts."""

import logging

from pulsarbox.broker.cnx import ServerCnx, State
from pulsarbox.broker.dispatch.selectors.key_shared_meta import KeySharedMeta, KeySharedMode
from pulsarbox.broker.plugins import needed_by
from pulsarbox.broker.policies.kinds.auto_creation import AUTO_SUBSCRIPTIONS
from pulsarbox.broker.policies.kinds.subscription_types import check_type_enabled
from pulsarbox.broker.security.revocation import check_consumer
from pulsarbox.broker.subscription.consumer import Consumer
from pulsarbox.broker.subscription.interface import AnySubscription
from pulsarbox.broker.subscription.subscription import ONE_ACTIVE, Subscription
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
"""Names under which Pulsar keeps cursors of its own."""
LATEST = Position(2**63 - 1, 2**63 - 1)
EARLIEST = Position(-1, -1)
CLOSED_BEFORE = "The consumer was closed before it was open"


def subscribe(cnx: ServerCnx, command: CommandSubscribe, now: Now) -> None:
    """Open a consumer; answered when its subscription is durable."""
    if command.consumer_id in cnx.consumers:
        cnx.outbox.send(replies.success(command.request_id))
        return
    key = _key(command)
    if key in cnx.opening:
        raise ServiceNotReady("Consumer is already present on the connection")
    name = parse_topic(command.topic)
    _check(command, name)
    topic = cnx.broker.topics.open(name, now, create=command.force_topic_creation)
    if _waits_for_plugins(cnx, command, topic, now):
        return
    topic.admission.check_consumer()
    if command.HasField("schema") and is_schema(command.schema):
        _meet_schema(cnx, command, name, now)
    else:
        _open(cnx, command, name, now)


def _open(cnx: ServerCnx, command: CommandSubscribe, name: TopicName, now: Now) -> None:
    """Open a consumer whose plugins are loaded and whose schema fits the topic's."""
    topic = cnx.broker.topics.open(name, now, create=command.force_topic_creation)
    key = _key(command)
    cnx.opening[key] = command.request_id
    try:
        if isinstance(topic, NonPersistentTopic):
            present = topic.subscriptions.get(command.subscription)
            if present is not None:
                topic.admission.check_consumer_of(present, command.subType)
            subscription = topic.subscribe(command.subscription)
            consumer = _consumer(cnx, command, subscription, -1, now)
            check_consumer(consumer)  # a permission may have gone while a plugin was loaded
            subscription.add_consumer(consumer, command.subType, now)
            _opened(cnx, command, consumer, now)
            return
        assert isinstance(topic, PersistentTopic)
        check_type_enabled(topic.policies, cnx.broker.core.settings, command.subType)
        host = cnx.address.rpartition(":")[0]
        topic.limits.check_subscribe((host, command.consumer_name, command.consumer_id), now)
        existing = topic.subscriptions.get(command.subscription)
        if existing is not None or command.durable:
            _join(cnx, command, _durable(cnx, command, topic, existing, now), now)
        else:
            _read_from(cnx, command, topic, now)
    except PulsarBoxError:
        cnx.opening.pop(key, None)
        raise


def _waits_for_plugins(cnx: ServerCnx, command: CommandSubscribe, topic: Topic, now: Now) -> bool:
    """Whether the consumer waits until the plugins are loaded that its subscription names; nobody else does."""
    properties = key_values(command.subscription_properties)
    present = topic.subscriptions.get(command.subscription) if isinstance(topic, PersistentTopic) else None
    if present is not None:
        properties = present.properties
    core, key = cnx.broker.core, _key(command)

    def loaded(when: Now) -> None:
        if not _is_wanted(cnx, command):
            return
        del cnx.opening[key]
        try:
            subscribe(cnx, command, when)
        except PulsarBoxError as error:
            _give_up(cnx, command, error)

    if not core.plugins.want(needed_by(command.subType, properties, core.settings), loaded):
        return False
    cnx.opening[key] = command.request_id
    return True


def _meet_schema(cnx: ServerCnx, command: CommandSubscribe, name: TopicName, now: Now) -> None:
    """Open the consumer once its schema has been compared with those of the topic, which may take several turns."""
    schemas, key = cnx.broker.schemas, _key(command)

    def is_idle() -> bool:
        return _is_idle(cnx.broker.topics.open(name, now, create=command.force_topic_creation))

    def met(found: PulsarBoxError | None, when: Now) -> None:
        if not _is_wanted(cnx, command):
            return
        del cnx.opening[key]
        try:
            if found is not None:
                raise found
            _open(cnx, command, name, when)
        except PulsarBoxError as error:
            cnx.outbox.send(replies.error(command.request_id, cnx.code_of(error), str(error)))

    cnx.opening[key] = command.request_id
    try:
        schemas.run(cnx, command.schema, schemas.meeting(name, command.schema, now.wall, is_idle), met, now)
    except PulsarBoxError:
        del cnx.opening[key]
        raise


def _is_idle(topic: Topic) -> bool:
    """Whether nobody uses a topic whose messages have a form already, and nothing is stored there."""
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
        return existing
    if not topic.policies.get(AUTO_SUBSCRIPTIONS):
        raise SubscriptionNotFound(f"Subscription {command.subscription} does not exist, and clients may not create it")
    topic.admission.check_subscription(len(topic.subscriptions))
    earliest = command.initialPosition == CommandSubscribe.Earliest
    properties = key_values(command.subscription_properties)
    made = topic.subscribe(command.subscription, earliest=earliest, properties=properties, now=now)
    if command.read_compacted and earliest:
        made.compacted_reading().start_at(EARLIEST, made.cursor.mark_delete)
        made.compacted_reading().keep(now)
    return made


def _read_from(cnx: ServerCnx, command: CommandSubscribe, topic: PersistentTopic, now: Now) -> None:
    """A reader: it starts with the entry it names, so that a batch comes whole and the client picks from it."""

    start = _start(command, topic.ledger.end)

    def located(mark: Position, messages: int, size: int, when: Now) -> None:
        if not _is_wanted(cnx, command):
            return
        try:
            subscription = topic.subscriptions.get(command.subscription)
            if subscription is None:
                topic.admission.check_subscription(len(topic.subscriptions))
                subscription = topic.read_from(command.subscription, mark, messages, size)
                if command.read_compacted:
                    subscription.compacted_reading().start_at(start, mark)
            _join(cnx, command, subscription, when)
        except PulsarBoxError as error:
            lost(error)

    def lost(error: Exception) -> None:
        _give_up(cnx, command, error)

    topic.locate(start, located, lost, now)


def _start(command: CommandSubscribe, last: Position) -> Position:
    """Where a reader starts; behind the last entry there is nothing to be found, and it goes to its initial position.

    As Pulsar's cursor that is not durable: its mark-delete would be the position before, and may be the last entry.
    """
    start = position_of(command.start_message_id) if command.HasField("start_message_id") else LATEST
    if Position(start.ledger_id, start.entry_id - 1) <= last:
        return start
    return EARLIEST if command.initialPosition == CommandSubscribe.Earliest else LATEST


def position_of(message_id: MessageIdData) -> Position:
    """The entry of a message id; one with -1 is before everything, one with 2**63 - 1 behind it."""
    return Position(_signed(message_id.ledgerId), _signed(message_id.entryId))


def _signed(word: int) -> int:
    """The protocol's unsigned 64 bits as Java reads them."""
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


def _join(cnx: ServerCnx, command: CommandSubscribe, subscription: Subscription, now: Now) -> None:
    """Come to a subscription; first it is set back by time where the consumer wants that."""
    seconds = command.start_message_rollback_duration_sec
    if not seconds:
        _attach(cnx, command, subscription, now)
        return

    def set_back(when: Now) -> None:
        if not _is_wanted(cnx, command):
            _leave(subscription, when)
            return
        try:
            _attach(cnx, command, subscription, when)
        except PulsarBoxError as error:
            _give_up(cnx, command, error)

    def as_it_is(error: Exception) -> None:
        log.warning("subscription %s of %s is not set back: %s", subscription.name, subscription.topic.name, error)
        set_back(now)  # as Pulsar does

    if command.read_compacted:
        subscription.compacted_reading()
    subscription.seek_to_time(now.wall - 1000 * seconds, set_back, as_it_is, now)


def _attach(cnx: ServerCnx, command: CommandSubscribe, subscription: Subscription, now: Now) -> None:
    consumer = _consumer(cnx, command, subscription, subscription.topic.name.partition_index, now)
    try:
        check_consumer(consumer)  # a permission may have gone while it was found where to begin
        subscription.topic.admission.check_consumer()
        subscription.topic.admission.check_consumer_of(subscription, command.subType)
        subscription.add_consumer(consumer, command.subType, now)
    except PulsarBoxError:
        _leave(subscription, now)
        raise
    cnx.broker.when_durable(lambda when: _opened(cnx, command, consumer, when), now)


def _leave(subscription: Subscription, now: Now) -> None:
    """The consumer does not come after all. A subscription that is not durable goes with its last one."""
    if not subscription.durable and not subscription.consumers and not subscription.fenced:
        subscription.topic.remove_subscription(subscription, now)


def _is_wanted(cnx: ServerCnx, command: CommandSubscribe) -> bool:
    """Whether the client still waits for the consumer. If it has closed the consumer, answer the SUBSCRIBE here."""
    if cnx.state is State.CLOSED:
        return False
    if cnx.opening.get(_key(command)) == command.request_id:
        return True
    _refuse_closed(cnx, command)
    return False


def _refuse_closed(cnx: ServerCnx, command: CommandSubscribe) -> None:
    error = ServiceNotReady(CLOSED_BEFORE)
    cnx.outbox.send(replies.error(command.request_id, error.server_error, str(error)))


def _give_up(cnx: ServerCnx, command: CommandSubscribe, error: Exception) -> None:
    """The consumer cannot be opened: tell the client why."""
    if cnx.opening.get(_key(command)) == command.request_id:
        del cnx.opening[_key(command)]
    code = cnx.code_of(error) if isinstance(error, PulsarBoxError) else 0
    cnx.outbox.send(replies.error(command.request_id, code, str(error)))


def _key(command: CommandSubscribe) -> tuple[str, int]:
    """Under which the connection knows that a consumer is being opened."""
    return "consumer", command.consumer_id


def _opened(cnx: ServerCnx, command: CommandSubscribe, consumer: Consumer, now: Now) -> None:
    key = _key(command)
    expected = cnx.opening.get(key) == command.request_id
    if expected:
        del cnx.opening[key]
    if cnx.state is State.CLOSED or not expected or consumer.closed:
        consumer.closed = True
        consumer.subscription.remove_consumer(consumer, now)
        _refuse_closed(cnx, command)
        return
    cnx.consumers[command.consumer_id] = consumer
    cnx.outbox.send(replies.success(command.request_id))
