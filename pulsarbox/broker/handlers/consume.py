"""Commands of an open consumer; SUBSCRIBE is in ``subscribe``."""

from pulsarbox.broker.connection.cnx import ServerCnx
from pulsarbox.broker.handlers.subscribe import position_of
from pulsarbox.broker.subscription.consumer import Consumer
from pulsarbox.broker.subscription.subscription import ONE_ACTIVE, TYPE_NAMES, Subscription
from pulsarbox.broker.transactions.visibility import find_last_visible
from pulsarbox.clock import Now
from pulsarbox.errors import MetadataError, NotAllowed, PersistenceError, PulsarBoxError
from pulsarbox.names import COMPACTION_SUBSCRIPTION
from pulsarbox.protocol import replies
from pulsarbox.protocol.PulsarApi_pb2 import (
    CommandAck,
    CommandCloseConsumer,
    CommandConsumerStats,
    CommandFlow,
    CommandGetLastMessageId,
    CommandRedeliverUnacknowledgedMessages,
    CommandSeek,
    CommandUnsubscribe,
)
from pulsarbox.storage.record import Position
from pulsarbox.storage.transactions import TxnId

MAX_UINT64 = 2**64 - 1


def flow(cnx: ServerCnx, command: CommandFlow, now: Now) -> None:
    """Add permits; ignored if the consumer is closed."""
    consumer = cnx.consumers.get(command.consumer_id)
    if consumer is not None:
        consumer.subscription.flow(consumer, command.messagePermits, now)


def ack(cnx: ServerCnx, command: CommandAck, now: Now) -> None:
    """Acknowledge messages; answered once durable, if the client requests an answer."""
    wants_answer = command.HasField("request_id")
    consumer = cnx.consumers.get(command.consumer_id)
    refusal: PulsarBoxError | None = None
    if consumer is None:
        refusal = MetadataError("Consumer not found")
    elif consumer.subscription.name == COMPACTION_SUBSCRIPTION:
        refusal = NotAllowed(
            f"{COMPACTION_SUBSCRIPTION} is reserved for compaction: consumers cannot acknowledge on it"
        )
    elif command.HasField("txnid_most_bits") or command.HasField("txnid_least_bits"):
        _ack_in_transaction(cnx, consumer, command, now)
        return
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


def _ack_in_transaction(cnx: ServerCnx, consumer: Consumer, command: CommandAck, now: Now) -> None:
    """Acknowledge messages in a transaction; answered once the pending acknowledgement is durable."""
    consumer_id, wants_answer, request_id = command.consumer_id, command.HasField("request_id"), command.request_id

    def done(when: Now) -> None:
        if wants_answer:
            cnx.outbox.send(replies.ack_response(consumer_id, request_id))

    def refused(error: PulsarBoxError) -> None:
        if wants_answer:
            cnx.outbox.send(replies.ack_response(consumer_id, request_id, error.server_error, str(error)))

    subscription = consumer.subscription
    try:
        txn_id = TxnId(command.txnid_most_bits, command.txnid_least_bits)
        txn = cnx.broker.transactions.find(txn_id, cnx)
        if not isinstance(subscription, Subscription):
            raise NotAllowed("Non-persistent topics do not support transactions")
        subscription.pending_acks().acknowledge(consumer, command, txn, done, refused, now)
    except PulsarBoxError as error:
        refused(error)


def redeliver(cnx: ServerCnx, command: CommandRedeliverUnacknowledgedMessages, now: Now) -> None:
    """Redeliver unacknowledged messages of the consumer."""
    consumer = cnx.consumers.get(command.consumer_id)
    if consumer is None or not isinstance(consumer.subscription, Subscription):
        return
    if command.HasField("consumer_epoch") and consumer.subscription.type in ONE_ACTIVE:
        consumer.raise_epoch(command.consumer_epoch)
    positions = [(each.ledgerId, each.entryId) for each in command.message_ids] or None
    consumer.subscription.redeliver(consumer, positions, now)


def _open_consumer(cnx: ServerCnx, consumer_id: int) -> Consumer:
    consumer = cnx.consumers.get(consumer_id)
    if consumer is None:
        raise MetadataError("Consumer not found")
    return consumer


def unsubscribe(cnx: ServerCnx, command: CommandUnsubscribe, now: Now) -> None:
    """Delete the subscription; answered once durable."""
    consumer = _open_consumer(cnx, command.consumer_id)
    consumer.subscription.unsubscribe(consumer, command.force, now)
    reply = replies.success(command.request_id)
    cnx.broker.when_durable(lambda when: cnx.outbox.send(reply), now)


def seek(cnx: ServerCnx, command: CommandSeek, now: Now) -> None:
    """Reset the cursor; its consumers are disconnected and reconnect."""
    if not command.HasField("message_id") and not command.HasField("message_publish_time"):
        raise MetadataError("Message id and message publish time were not present")
    subscription = _open_consumer(cnx, command.consumer_id).subscription
    request_id = command.request_id
    if not isinstance(subscription, Subscription):
        # As in Pulsar. A non-persistent topic stores nothing, so every position is its end.
        cnx.outbox.send(replies.success(request_id))
        return

    def done(when: Now) -> None:
        cnx.outbox.send(replies.success(request_id))

    def failed(error: Exception) -> None:
        cnx.outbox.send(replies.error(request_id, 0, f"Error when resetting subscription: {error}"))

    if command.HasField("message_id"):
        subscription.seek(position_of(command.message_id), list(command.message_id.ack_set), done, failed, now)
    else:
        subscription.seek_to_time(now.of_client(command.message_publish_time), done, failed, now)


def close_consumer(cnx: ServerCnx, command: CommandCloseConsumer, now: Now) -> None:
    """Close a consumer, open or opening. An unknown one counts as closed."""
    cnx.abandon("consumer", command.consumer_id, now)
    consumer = cnx.consumers.pop(command.consumer_id, None)
    if consumer is not None:
        consumer.closed = True
        consumer.subscription.remove_consumer(consumer, now)
    cnx.outbox.send(replies.success(command.request_id))


def get_last_message_id(cnx: ServerCnx, command: CommandGetLastMessageId, now: Now) -> None:
    """Return the last visible message of the topic, and the subscription's mark-delete position."""
    consumer = _open_consumer(cnx, command.consumer_id)
    subscription = consumer.subscription
    if not isinstance(subscription, Subscription):
        raise NotAllowed("A non-persistent topic stores no messages and has no last message ID")
    partition = subscription.topic_name.partition_index
    request_id, read_compacted = command.request_id, consumer.read_compacted

    def found(last: Position, batch: int, when: Now) -> None:
        mark = subscription.cursor.mark_delete
        view = subscription.compaction.view if read_compacted else None
        if view is not None and (last.entry_id < 0 or last <= view.horizon):
            ledger_id, entry_id, index = view.last
            last_id = replies.message_id(ledger_id & MAX_UINT64, entry_id & MAX_UINT64, partition, index)
        elif last.entry_id < 0:
            last_id = replies.message_id(MAX_UINT64, MAX_UINT64, partition)
        else:
            last_id = replies.message_id(last.ledger_id, last.entry_id, partition, max(batch, 0) - 1)
        mark_id = replies.message_id(mark.ledger_id, mark.entry_id & MAX_UINT64) if mark.ledger_id >= 0 else None
        cnx.outbox.send(replies.get_last_message_id_response(request_id, last_id, mark_id))

    find_last_visible(subscription.stored, cnx.broker.catalog, subscription.reader, found, now)


def consumer_stats(cnx: ServerCnx, command: CommandConsumerStats, now: Now) -> None:
    """Return the statistics of a consumer.

    As in Pulsar, the backlog counts entries, and only Shared and Key_Shared subscriptions count unacknowledged
    messages.
    """
    consumer = cnx.consumers.get(command.consumer_id)
    if consumer is None:
        code, text = MetadataError.server_error, "Consumer not found"
        cnx.outbox.send(replies.consumer_stats_failed(command.request_id, code, text))
        return
    subscription, rates = consumer.subscription, consumer.rates(now)
    backlog = subscription.cursor.backlog_entries if isinstance(subscription, Subscription) else 0
    stats = replies.ConsumerStatsFields(
        msg_rate_out=rates.messages_out,
        msg_throughput_out=rates.bytes_out,
        msg_rate_redeliver=rates.given_back,
        consumer_name=consumer.name,
        available_permits=consumer.permits,
        unacked_messages=0 if subscription.type in ONE_ACTIVE else consumer.unacked,
        blocked_on_unacked_messages=consumer.blocked,
        address=cnx.address,
        connected_since=str(consumer.connected_since),
        type=TYPE_NAMES[subscription.type],
        msg_rate_expired=0.0,
        msg_backlog=backlog,
        message_ack_rate=rates.acknowledged,
    )
    cnx.outbox.send(replies.consumer_stats_response(command.request_id, stats))
