"""SUBSCRIBE and everything a consumer says afterwards."""

from pulsarbox.broker.cnx import ServerCnx, State
from pulsarbox.broker.consumer import Consumer
from pulsarbox.broker.dispatch.selectors.key_shared_meta import KeySharedMeta, KeySharedMode
from pulsarbox.broker.non_persistent import NonPersistentTopic
from pulsarbox.broker.schemas import is_schema
from pulsarbox.broker.subscription import TYPE_NAMES, Subscription
from pulsarbox.broker.subscription_types import check_type_enabled
from pulsarbox.broker.topic import AnySubscription, PersistentTopic
from pulsarbox.clock import Now
from pulsarbox.errors import (
    MetadataError,
    NamingError,
    NotAllowed,
    PersistenceError,
    PulsarBoxError,
    ServiceNotReady,
    SubscriptionNotFound,
)
from pulsarbox.names import parse_topic
from pulsarbox.protocol import PulsarApi_pb2 as pulsar_api
from pulsarbox.protocol import replies
from pulsarbox.protocol.PulsarApi_pb2 import (
    CommandAck,
    CommandCloseConsumer,
    CommandConsumerStats,
    CommandFlow,
    CommandGetLastMessageId,
    CommandRedeliverUnacknowledgedMessages,
    CommandSeek,
    CommandSubscribe,
    CommandUnsubscribe,
)
from pulsarbox.storage.record import Position

RESERVED_NAMES = frozenset({"pulsar.dedup", "__compaction"})
MAX_UINT64 = 2**64 - 1


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
        start = Position(_signed(command.start_message_id.ledgerId), _signed(command.start_message_id.entryId))
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


def _signed(word: int) -> int:
    """The protocol's unsigned 64 bits as Java reads them: -1 is before everything, 2**63 - 1 behind it."""
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


def flow(cnx: ServerCnx, command: CommandFlow, now: Now) -> None:
    """The consumer can take more messages. One that is gone meanwhile does not matter."""
    consumer = cnx.consumers.get(command.consumer_id)
    if consumer is not None:
        consumer.subscription.flow(consumer, command.messagePermits, now)


def ack(cnx: ServerCnx, command: CommandAck, now: Now) -> None:
    """Acknowledge; answered, where the client wants that, when it is durable."""
    wants_answer = command.HasField("request_id")
    consumer = cnx.consumers.get(command.consumer_id)
    refusal: PulsarBoxError | None = None
    if consumer is None:
        refusal = MetadataError("Consumer not found")
    elif command.HasField("txnid_most_bits") or command.HasField("txnid_least_bits"):
        refusal = NotAllowed("Transactions are not enabled.")
    if consumer is None or refusal is not None:
        if wants_answer and refusal is not None:
            code, text = refusal.server_error, str(refusal)
            cnx.outbox.send(replies.ack_response(command.consumer_id, command.request_id, code, text))
        return
    done = failed = None
    if wants_answer:
        consumer_id, request_id = command.consumer_id, command.request_id
        reply = replies.ack_response(consumer_id, request_id)

        def done(when: Now) -> None:
            cnx.outbox.send(reply)

        def failed(error: Exception) -> None:
            code = PersistenceError.server_error
            cnx.outbox.send(replies.ack_response(consumer_id, request_id, code, f"Not acknowledged: {error}"))

    subscription = consumer.subscription
    if isinstance(subscription, Subscription):
        subscription.acknowledge(consumer, command, now, done, failed)
    elif done is not None:
        done(now)


def redeliver(cnx: ServerCnx, command: CommandRedeliverUnacknowledgedMessages, now: Now) -> None:
    """Send again what the consumer holds."""
    consumer = cnx.consumers.get(command.consumer_id)
    if consumer is None or not isinstance(consumer.subscription, Subscription):
        return
    if command.HasField("consumer_epoch"):
        consumer.epoch = command.consumer_epoch
    positions = [(each.ledgerId, each.entryId) for each in command.message_ids] or None
    consumer.subscription.redeliver(consumer, positions, now)


def _open_consumer(cnx: ServerCnx, consumer_id: int) -> Consumer:
    consumer = cnx.consumers.get(consumer_id)
    if consumer is None:
        raise MetadataError("Consumer not found")
    return consumer


def unsubscribe(cnx: ServerCnx, command: CommandUnsubscribe, now: Now) -> None:
    """Delete the subscription; answered when that is durable."""
    consumer = _open_consumer(cnx, command.consumer_id)
    consumer.subscription.unsubscribe(consumer, command.force, now)
    reply = replies.success(command.request_id)
    cnx.broker.when_durable(lambda when: cnx.outbox.send(reply), now)


def seek(cnx: ServerCnx, command: CommandSeek, now: Now) -> None:
    """Start again elsewhere: the consumers are closed and come back."""
    if not command.HasField("message_id") and not command.HasField("message_publish_time"):
        raise MetadataError("Message id and message publish time were not present")
    subscription = _open_consumer(cnx, command.consumer_id).subscription
    if not isinstance(subscription, Subscription):
        raise NotAllowed("Seek operation is not supported on a non-persistent topic")
    request_id = command.request_id

    def done(when: Now) -> None:
        cnx.outbox.send(replies.success(request_id))

    def failed(error: Exception) -> None:
        cnx.outbox.send(replies.error(request_id, 0, f"Error when resetting subscription: {error}"))

    if command.HasField("message_id"):
        target = Position(_signed(command.message_id.ledgerId), _signed(command.message_id.entryId))
        subscription.seek(target, list(command.message_id.ack_set), done, failed, now)
    else:
        subscription.seek_to_time(command.message_publish_time, done, failed, now)


def close_consumer(cnx: ServerCnx, command: CommandCloseConsumer, now: Now) -> None:
    """Close a consumer. An unknown one is closed already."""
    cnx.opening.pop(("consumer", command.consumer_id), None)
    consumer = cnx.consumers.pop(command.consumer_id, None)
    if consumer is not None:
        consumer.closed = True
        consumer.subscription.remove_consumer(consumer, now)
    cnx.outbox.send(replies.success(command.request_id))


def get_last_message_id(cnx: ServerCnx, command: CommandGetLastMessageId, now: Now) -> None:
    """The last message of the topic that anybody can see, and the subscription's mark-delete."""
    subscription = _open_consumer(cnx, command.consumer_id).subscription
    if not isinstance(subscription, Subscription):
        raise NotAllowed("A non-persistent topic keeps no messages: it has no last one")
    ledger, partition = subscription.topic.ledger, subscription.topic.name.partition_index
    last, mark = ledger.last_confirmed, subscription.cursor.mark_delete
    if last.entry_id < 0:
        last_id = replies.message_id(MAX_UINT64, MAX_UINT64, partition)
    else:
        last_id = replies.message_id(last.ledger_id, last.entry_id, partition, max(ledger.last_batch, 0) - 1)
    mark_id = replies.message_id(mark.ledger_id, mark.entry_id & MAX_UINT64) if mark.ledger_id >= 0 else None
    cnx.outbox.send(replies.get_last_message_id_response(command.request_id, last_id, mark_id))


def consumer_stats(cnx: ServerCnx, command: CommandConsumerStats, now: Now) -> None:
    """What the broker knows of a consumer."""
    consumer = cnx.consumers.get(command.consumer_id)
    if consumer is None:
        code, text = MetadataError.server_error, "Consumer not found"
        cnx.outbox.send(replies.consumer_stats_failed(command.request_id, code, text))
        return
    subscription = consumer.subscription
    backlog = subscription.cursor.backlog_entries if isinstance(subscription, Subscription) else 0
    stats = replies.ConsumerStatsFields(
        msg_rate_out=0.0,
        msg_throughput_out=0.0,
        msg_rate_redeliver=0.0,
        consumer_name=consumer.name,
        available_permits=max(consumer.permits, 0),
        unacked_messages=consumer.unacked,
        blocked_on_unacked_messages=consumer.blocked,
        address=cnx.address,
        connected_since=str(consumer.connected_since),
        type=TYPE_NAMES[subscription.type],
        msg_rate_expired=0.0,
        msg_backlog=backlog,
        message_ack_rate=0.0,
    )
    cnx.outbox.send(replies.consumer_stats_response(command.request_id, stats))
