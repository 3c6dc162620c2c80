"""Transaction commands. Each is answered once its changes are durable."""

from collections.abc import Callable
from typing import Any

from pulsarbox.broker.connection.cnx import ServerCnx
from pulsarbox.broker.transactions.transaction import ABORTED, COMMITTED, OpenTransaction
from pulsarbox.clock import Now
from pulsarbox.errors import PulsarBoxError
from pulsarbox.names import parse_topic
from pulsarbox.protocol import replies
from pulsarbox.protocol.PulsarApi_pb2 import (
    CommandAddPartitionToTxn,
    CommandAddPartitionToTxnResponse,
    CommandAddSubscriptionToTxn,
    CommandAddSubscriptionToTxnResponse,
    CommandEndTxn,
    CommandEndTxnOnPartition,
    CommandEndTxnOnPartitionResponse,
    CommandEndTxnOnSubscription,
    CommandEndTxnOnSubscriptionResponse,
    CommandEndTxnResponse,
    CommandNewTxn,
    CommandNewTxnResponse,
    CommandTcClientConnectRequest,
    TxnAction,
)
from pulsarbox.storage.transactions import TxnId


def tc_client_connect(cnx: ServerCnx, command: CommandTcClientConnectRequest, now: Now) -> None:
    """Answer whether this broker has the coordinator."""
    try:
        cnx.broker.transactions.check_coordinator(command.tc_id)
    except PulsarBoxError as error:
        cnx.outbox.send(replies.tc_client_connect_response(command.request_id, error.server_error, str(error)))
        return
    cnx.outbox.send(replies.tc_client_connect_response(command.request_id))


def new_txn(cnx: ServerCnx, command: CommandNewTxn, now: Now) -> None:
    """Begin a transaction. The protocol field named seconds contains milliseconds, in all clients and in Pulsar."""
    broker, request_id = cnx.broker, command.request_id
    try:
        broker.transactions.check_coordinator(command.tc_id)
        txn = broker.coordinator.begin(command.txn_ttl_seconds, cnx.principal, now)
    except PulsarBoxError as error:
        cnx.outbox.send(
            replies.transaction_response(
                CommandNewTxnResponse, request_id, 0, command.tc_id, error.server_error, str(error)
            )
        )
        return
    reply = replies.transaction_response(CommandNewTxnResponse, request_id, txn.id.least, txn.id.most)
    broker.commits.after_commit(lambda when: cnx.outbox.send(reply))


def add_partition_to_txn(cnx: ServerCnx, command: CommandAddPartitionToTxn, now: Now) -> None:
    """Register topics to which the transaction publishes."""

    def add(txn: OpenTransaction) -> None:
        cnx.broker.transactions.add_topics(txn, command.partitions)

    _add(cnx, command, add, CommandAddPartitionToTxnResponse, now)


def add_subscription_to_txn(cnx: ServerCnx, command: CommandAddSubscriptionToTxn, now: Now) -> None:
    """Register subscriptions on which the transaction acknowledges."""

    def add(txn: OpenTransaction) -> None:
        names = [(each.topic, each.subscription) for each in command.subscription]
        cnx.broker.transactions.add_subscriptions(txn, names)

    _add(cnx, command, add, CommandAddSubscriptionToTxnResponse, now)


def _add(
    cnx: ServerCnx,
    command: Any,
    add: Callable[[OpenTransaction], None],
    response: replies.TransactionResponse,
    now: Now,
) -> None:
    request_id, least, most = command.request_id, command.txnid_least_bits, command.txnid_most_bits
    try:
        add(cnx.broker.transactions.find(TxnId(most, least), cnx))
    except PulsarBoxError as error:
        cnx.outbox.send(replies.transaction_response(response, request_id, least, most, error.server_error, str(error)))
        return
    reply = replies.transaction_response(response, request_id, least, most)
    cnx.broker.when_durable(lambda when: cnx.outbox.send(reply), now)


def end_txn(cnx: ServerCnx, command: CommandEndTxn, now: Now) -> None:
    """Commit or abort the transaction."""
    _end(cnx, command, lambda txn_id: True, CommandEndTxnResponse, now)


def end_txn_on_partition(cnx: ServerCnx, command: CommandEndTxnOnPartition, now: Now) -> None:
    """End a transaction through one of its topics; this ends it on all topics and subscriptions."""

    def takes_part(txn_id: TxnId) -> bool:
        txn = cnx.broker.transactions.open.get(txn_id)
        return txn is not None and str(parse_topic(command.topic)) in txn.topics

    _end(cnx, command, takes_part, CommandEndTxnOnPartitionResponse, now)


def end_txn_on_subscription(cnx: ServerCnx, command: CommandEndTxnOnSubscription, now: Now) -> None:
    """End a transaction through one of its subscriptions; this ends it on all topics and subscriptions."""
    where = command.subscription

    def takes_part(txn_id: TxnId) -> bool:
        txn = cnx.broker.transactions.open.get(txn_id)
        return txn is not None and (str(parse_topic(where.topic)), where.subscription) in txn.subscriptions

    _end(cnx, command, takes_part, CommandEndTxnOnSubscriptionResponse, now)


def _end(
    cnx: ServerCnx, command: Any, takes_part: Callable[[TxnId], bool], response: replies.TransactionResponse, now: Now
) -> None:
    request_id, least, most = command.request_id, command.txnid_least_bits, command.txnid_most_bits

    def answer(error: PulsarBoxError | None, when: Now) -> None:
        code, text = (None, None) if error is None else (error.server_error, str(error))
        cnx.outbox.send(replies.transaction_response(response, request_id, least, most, code, text))

    outcome = COMMITTED if command.txn_action == TxnAction.COMMIT else ABORTED
    try:
        if takes_part(TxnId(most, least)):
            cnx.broker.coordinator.end(TxnId(most, least), outcome, cnx, answer, now)
        else:
            answer(None, now)  # as in Pulsar: the transaction has no part here
    except PulsarBoxError as error:
        answer(error, now)
