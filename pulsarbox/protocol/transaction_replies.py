"""Encoding of the replies to transaction commands.

A transaction ID is two numbers, the least and the most significant 64 bits, in the order of the protocol's fields.
"""

from __future__ import annotations

from pulsarbox.protocol import PulsarApi_pb2 as api
from pulsarbox.protocol.commands import encode_frame
from pulsarbox.protocol.PulsarApi_pb2 import BaseCommand
from pulsarbox.protocol.replies import code_or_none


def tc_client_connect_response(request_id: int, server_error: int | None = None, message: str | None = None) -> bytes:
    """TC_CLIENT_CONNECT_RESPONSE; ``server_error`` None: this broker owns the coordinator."""
    return encode_frame(
        BaseCommand(
            type=BaseCommand.TC_CLIENT_CONNECT_RESPONSE,
            tcClientConnectResponse=api.CommandTcClientConnectResponse(
                request_id=request_id, error=code_or_none(server_error), message=message
            ),
        )
    )


def new_txn_response(
    request_id: int,
    txnid_least_bits: int,
    txnid_most_bits: int,
    server_error: int | None = None,
    message: str | None = None,
) -> bytes:
    """NEW_TXN_RESPONSE: the ID of the new transaction, or an error."""
    return encode_frame(
        BaseCommand(
            type=BaseCommand.NEW_TXN_RESPONSE,
            newTxnResponse=api.CommandNewTxnResponse(
                request_id=request_id,
                txnid_least_bits=txnid_least_bits,
                txnid_most_bits=txnid_most_bits,
                error=code_or_none(server_error),
                message=message,
            ),
        )
    )


def add_partition_to_txn_response(
    request_id: int,
    txnid_least_bits: int,
    txnid_most_bits: int,
    server_error: int | None = None,
    message: str | None = None,
) -> bytes:
    """ADD_PARTITION_TO_TXN_RESPONSE: the partitions were added to the transaction, or an error."""
    return encode_frame(
        BaseCommand(
            type=BaseCommand.ADD_PARTITION_TO_TXN_RESPONSE,
            addPartitionToTxnResponse=api.CommandAddPartitionToTxnResponse(
                request_id=request_id,
                txnid_least_bits=txnid_least_bits,
                txnid_most_bits=txnid_most_bits,
                error=code_or_none(server_error),
                message=message,
            ),
        )
    )


def add_subscription_to_txn_response(
    request_id: int,
    txnid_least_bits: int,
    txnid_most_bits: int,
    server_error: int | None = None,
    message: str | None = None,
) -> bytes:
    """ADD_SUBSCRIPTION_TO_TXN_RESPONSE: the subscriptions were added to the transaction, or an error."""
    return encode_frame(
        BaseCommand(
            type=BaseCommand.ADD_SUBSCRIPTION_TO_TXN_RESPONSE,
            addSubscriptionToTxnResponse=api.CommandAddSubscriptionToTxnResponse(
                request_id=request_id,
                txnid_least_bits=txnid_least_bits,
                txnid_most_bits=txnid_most_bits,
                error=code_or_none(server_error),
                message=message,
            ),
        )
    )


def end_txn_response(
    request_id: int,
    txnid_least_bits: int,
    txnid_most_bits: int,
    server_error: int | None = None,
    message: str | None = None,
) -> bytes:
    """END_TXN_RESPONSE: the transaction was committed or aborted, or an error."""
    return encode_frame(
        BaseCommand(
            type=BaseCommand.END_TXN_RESPONSE,
            endTxnResponse=api.CommandEndTxnResponse(
                request_id=request_id,
                txnid_least_bits=txnid_least_bits,
                txnid_most_bits=txnid_most_bits,
                error=code_or_none(server_error),
                message=message,
            ),
        )
    )


def end_txn_on_partition_response(
    request_id: int,
    txnid_least_bits: int,
    txnid_most_bits: int,
    server_error: int | None = None,
    message: str | None = None,
) -> bytes:
    """END_TXN_ON_PARTITION_RESPONSE: the transaction was ended on the topic, or an error."""
    return encode_frame(
        BaseCommand(
            type=BaseCommand.END_TXN_ON_PARTITION_RESPONSE,
            endTxnOnPartitionResponse=api.CommandEndTxnOnPartitionResponse(
                request_id=request_id,
                txnid_least_bits=txnid_least_bits,
                txnid_most_bits=txnid_most_bits,
                error=code_or_none(server_error),
                message=message,
            ),
        )
    )


def end_txn_on_subscription_response(
    request_id: int,
    txnid_least_bits: int,
    txnid_most_bits: int,
    server_error: int | None = None,
    message: str | None = None,
) -> bytes:
    """END_TXN_ON_SUBSCRIPTION_RESPONSE: the transaction was ended on the subscription, or an error."""
    return encode_frame(
        BaseCommand(
            type=BaseCommand.END_TXN_ON_SUBSCRIPTION_RESPONSE,
            endTxnOnSubscriptionResponse=api.CommandEndTxnOnSubscriptionResponse(
                request_id=request_id,
                txnid_least_bits=txnid_least_bits,
                txnid_most_bits=txnid_most_bits,
                error=code_or_none(server_error),
                message=message,
            ),
        )
    )
