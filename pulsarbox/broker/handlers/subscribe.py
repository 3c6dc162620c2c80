"""SUBSCRIBE: which subscription a consumer comes to, and where a new one starts."""

from pulsarbox.broker.cnx import ServerCnx, State
from pulsarbox.broker.consumer import Consumer
from pulsarbox.broker.dispatch.selectors.key_shared_meta import KeySharedMeta, KeySharedMode
from pulsarbox.broker.non_persistent import NonPersistentTopic
from pulsarbox.broker.schemas import is_schema
from pulsarbox.broker.subscription import Subscription
from pulsarbox.broker.subscription_types import check_type_enabled
from pulsarbox.broker.topic import AnySubscription, PersistentTopic
from pulsarbox.clock import Now
from pulsarbox.errors import NamingError, NotAllowed, PulsarBoxError, ServiceNotReady, SubscriptionNotFound
from pulsarbox.names import parse_topic
from pulsarbox.protocol import PulsarApi_pb2 as pulsar_api
from pulsarbox.protocol import replies
from pulsarbox.protocol.PulsarApi_pb2 import CommandSubscribe, MessageIdData
from pulsarbox.storage.record import Position

RESERVED_NAMES = frozenset({"pulsar.dedup", "__compaction"})


def subscribe(cnx: ServerCnx, command: CommandSubscribe, now: Now) -> None:
    """Open a consumer; answered when its subscription is durable."""
    if command.consumer_id in cnx.consumers:
        cnx.outbox.send(replies.success(command.request_id))
        return
    key = ("consumer", command.consumer_id)
    if key in cnx.opening:
        raise ServiceNotReady("Consumer is already present on the connection")
    name = parse_topic(command.topic)
    _check(command)
    topic = cnx.broker.topics.open(name, now, create=command.force_topic_creation)
    if command.HasField("schema") and is_schema(command.schema):
        cnx.broker.schemas.put(name, command.schema, now.wall)
    cnx.opening[key] = command.request_id
    try:
        if isinstance(topic, NonPersistentTopic):
            subscription = topic.subscribe(command.subscription)
            consumer = _consumer(cnx, command, subscription, -1, now)
            subscription.add_consumer(consumer, command.subType, now)
            _opened(cnx, command, consumer, now)
            return
        assert isinstance(topic, PersistentTopic)
        check_type_enabled(cnx.broker.core.settings, name, command.subType)
        existing = topic.subscriptions.get(command.subscription)
        if existing is not None or command.durable:
            _attach(cnx, command, _durable(cnx, command, topic, existing, now), now)
        else:
            _read_from(cnx, command, topic, now)
    except PulsarBoxError:
        cnx.opening.pop(key, None)
        raise


def _check(command: CommandSubscribe) -> None:
    if not command.subscription:
        raise NamingError("Empty subscription name")
    if command.subscription in RESERVED_NAMES:
        raise NamingError(f"Subscription name '{command.subscription}' is reserved")
    if command.read_compacted:
        if command.subType not in (CommandSubscribe.Exclusive, CommandSubscribe.Failover):
            raise NotAllowed("readCompacted only allowed on failover or exclusive subscriptions")


def _durable(
    cnx: ServerCnx, command: CommandSubscribe, topic: PersistentTopic, existing: Subscription | None, now: Now
) -> Subscription:
    if existing is not None:
        if existing.durable != command.durable:
            kind = "a durable" if existing.durable else "a non-durable"
            raise NotAllowed(f"Subscription {command.subscription} exists on {topic.name} as {kind} one")
        return existing
    if not cnx.broker.core.settings.allowAutoSubscriptionCreation:
        raise SubscriptionNotFound(f"Subscription {command.subscription} does not exist, and clients may not create it")
    return topic.subscribe(
        command.subscription,
        earliest=command.initialPosition == CommandSubscribe.Earliest,
        properties={item.key: item.value for item in command.subscription_properties},
        now=now,
    )


def _read_from(cnx: ServerCnx, command: CommandSubscribe, topic: PersistentTopic, now: Now) -> None:
    """A reader: it starts with the entry it names, so that a batch comes whole and the client picks from it."""
    if command.HasField("start_message_id"):
        start = position_of(command.start_message_id)
    else:
        start = Position(-1, -1) if command.initialPosition == CommandSubscribe.Earliest else Position(2**63, 0)

    key = ("consumer", command.consumer_id)

    def located(mark: Position, messages: int, size: int, when: Now) -> None:
        if cnx.opening.get(key) != command.request_id or cnx.state is State.CLOSED:
            return
        try:
            subscription = topic.subscriptions.get(command.subscription)
            if subscription is None:
                subscription = topic.read_from(command.subscription, mark, messages, size)
            _attach(cnx, command, subscription, when)
        except PulsarBoxError as error:
            lost(error)

    def lost(error: Exception) -> None:
        if cnx.opening.get(key) == command.request_id:
            del cnx.opening[key]
        code = error.server_error if isinstance(error, PulsarBoxError) else 0
        cnx.outbox.send(replies.error(command.request_id, code, str(error)))

    topic.locate(start, located, lost, now)


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
        epoch=command.consumer_epoch if command.HasField("consumer_epoch") else None,
        now=now,
    )
    if command.HasField("keySharedMeta"):
        consumer.key_shared = _key_shared(command.keySharedMeta)
    return consumer


def _key_shared(meta: pulsar_api.KeySharedMeta) -> KeySharedMeta:
    ranges = tuple((each.start, each.end) for each in meta.hashRanges)
    return KeySharedMeta(KeySharedMode(meta.keySharedMode), ranges, meta.allowOutOfOrderDelivery)


def _attach(cnx: ServerCnx, command: CommandSubscribe, subscription: Subscription, now: Now) -> None:
    consumer = _consumer(cnx, command, subscription, subscription.topic.name.partition_index, now)
    subscription.add_consumer(consumer, command.subType, now)
    cnx.broker.when_durable(lambda when: _opened(cnx, command, consumer, when), now)


def _opened(cnx: ServerCnx, command: CommandSubscribe, consumer: Consumer, now: Now) -> None:
    key = ("consumer", command.consumer_id)
    expected = cnx.opening.get(key) == command.request_id
    if expected:
        del cnx.opening[key]
    if cnx.state is State.CLOSED or not expected or consumer.closed:
        consumer.closed = True
        consumer.subscription.remove_consumer(consumer, now)
        error = ServiceNotReady("The consumer was closed before it was open")
        cnx.outbox.send(replies.error(command.request_id, error.server_error, str(error)))
        return
    cnx.consumers[command.consumer_id] = consumer
    cnx.outbox.send(replies.success(command.request_id))
