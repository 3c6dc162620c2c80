"""Commands of transactions: this version has no coordinator, and says so in each command's own reply."""

from pulsarbox.broker.cnx import ServerCnx
from pulsarbox.clock import Now
from pulsarbox.errors import NotAllowed
from pulsarbox.protocol import transaction_replies as replies
from pulsarbox.protocol.PulsarApi_pb2 import (
    CommandAddPartitionToTxn,
    CommandAddSubscriptionToTxn,
    CommandEndTxn,
    CommandNewTxn,
    CommandTcClientConnectRequest,
)

CODE = NotAllowed.server_error
TEXT = "Transactions are not enabled."


def tc_client_connect(cnx: ServerCnx, command: CommandTcClientConnectRequest, now: Now) -> None:
    """Refused."""
    cnx.outbox.send(replies.tc_client_connect_response(command.request_id, CODE, TEXT))


def new_txn(cnx: ServerCnx, command: CommandNewTxn, now: Now) -> None:
    """Refused."""
    cnx.outbox.send(replies.new_txn_response(command.request_id, 0, command.tc_id, CODE, TEXT))


def add_partition_to_txn(cnx: ServerCnx, command: CommandAddPartitionToTxn, now: Now) -> None:
    """Refused."""
    least, most = command.txnid_least_bits, command.txnid_most_bits
    cnx.outbox.send(replies.add_partition_to_txn_response(command.request_id, least, most, CODE, TEXT))


def add_subscription_to_txn(cnx: ServerCnx, command: CommandAddSubscriptionToTxn, now: Now) -> None:
    """Refused."""
    least, most = command.txnid_least_bits, command.txnid_most_bits
    cnx.outbox.send(replies.add_subscription_to_txn_response(command.request_id, least, most, CODE, TEXT))


def end_txn(cnx: ServerCnx, command: CommandEndTxn, now: Now) -> None:
    """Refused."""
    least, most = command.txnid_least_bits, command.txnid_most_bits
    cnx.outbox.send(replies.end_txn_response(command.request_id, least, most, CODE, TEXT))
