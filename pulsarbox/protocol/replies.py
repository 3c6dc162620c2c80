"""Encoding of the commands that a broker sends.

One function for each command, except those of transactions, which share one. SEND_RECEIPT and MESSAGE, which carry the
traffic, have modules of their own (``send_receipt``, ``message_frame``). Error codes are ServerError numbers, as in
``PulsarBoxError.server_error``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple, cast

from pulsarbox.protocol import PulsarApi_pb2 as api
from pulsarbox.protocol.commands import encode_command
from pulsarbox.protocol.features import PROTOCOL_VERSION, SERVER_VERSION
from pulsarbox.protocol.PulsarApi_pb2 import MessageIdData

NO_REQUEST: Final = 0xFFFFFFFFFFFFFFFF
"""The request ID (-1) of an ERROR that answers no request, and of a close initiated by the broker."""


def code(server_error: int) -> api.ServerError:
    """Cast an error number to the stub's enum class; on the wire and at run time it is a plain number."""
    return cast(api.ServerError, server_error)


def code_or_none(server_error: int | None) -> api.ServerError | None:
    """Cast an optional error number."""
    return None if server_error is None else code(server_error)


def message_id(ledger_id: int, entry_id: int, partition: int = -1, batch_index: int = -1) -> MessageIdData:
    """Return a message ID; -1 as ledger or entry becomes 2**64-1, as in Java. A partition or index of -1 is omitted."""
    return MessageIdData(
        ledgerId=ledger_id & NO_REQUEST,
        entryId=entry_id & NO_REQUEST,
        partition=None if partition == -1 else partition,
        batch_index=None if batch_index == -1 else batch_index,
    )


# The connection ------------------------------------------------------------------------------------------------------


def connected(
    max_message_size: int,
    protocol_version: int = PROTOCOL_VERSION,
    feature_flags: api.FeatureFlags | None = None,
    server_version: str = SERVER_VERSION,
) -> bytes:
    """CONNECTED, with the negotiated protocol version (``features.negotiated_version``)."""
    return encode_command(
        api.CommandConnected(
            server_version=server_version,
            protocol_version=protocol_version,
            max_message_size=max_message_size,
            feature_flags=feature_flags,
        )
    )


def auth_challenge(
    auth_method_name: str,
    auth_data: bytes,
    protocol_version: int = PROTOCOL_VERSION,
    server_version: str = SERVER_VERSION,
) -> bytes:
    """AUTH_CHALLENGE: the next step of a handshake, or a request for fresh credentials."""
    return encode_command(
        api.CommandAuthChallenge(
            server_version=server_version,
            challenge=api.AuthData(auth_method_name=auth_method_name, auth_data=auth_data),
            protocol_version=protocol_version,
        )
    )


_PING = encode_command(api.CommandPing())
_PONG = encode_command(api.CommandPong())


def ping() -> bytes:
    """PING."""
    return _PING


def pong() -> bytes:
    """PONG."""
    return _PONG


# Any request ---------------------------------------------------------------------------------------------------------


def success(request_id: int, schema: api.Schema | None = None) -> bytes:
    """SUCCESS of a subscribe, unsubscribe, seek or close."""
    return encode_command(api.CommandSuccess(request_id=request_id, schema=schema))


def error(request_id: int, server_error: int, message: str) -> bytes:
    """ERROR. A failed handshake uses the request ID ``NO_REQUEST``."""
    return encode_command(api.CommandError(request_id=request_id, error=code(server_error), message=message))


# Lookup --------------------------------------------------------------------------------------------------------------


def partition_metadata(request_id: int, partitions: int) -> bytes:
    """PARTITIONED_METADATA_RESPONSE, Success. ``partitions``: 0 for a non-partitioned topic."""
    return encode_command(
        api.CommandPartitionedTopicMetadataResponse(
            request_id=request_id,
            partitions=partitions,
            response=api.CommandPartitionedTopicMetadataResponse.Success,
        )
    )


def partition_metadata_failed(request_id: int, server_error: int, message: str) -> bytes:
    """PARTITIONED_METADATA_RESPONSE, Failed."""
    return encode_command(
        api.CommandPartitionedTopicMetadataResponse(
            request_id=request_id,
            response=api.CommandPartitionedTopicMetadataResponse.Failed,
            error=code(server_error),
            message=message,
        )
    )


def lookup_connect(
    request_id: int,
    broker_service_url: str | None,
    broker_service_url_tls: str | None = None,
    *,
    authoritative: bool = True,
    proxy_through_service_url: bool = True,
) -> bytes:
    """LOOKUP_RESPONSE, Connect; one of the URLs may be None.

    ``proxy_through_service_url``: the client stays connected through its service URL.
    """
    return encode_command(
        api.CommandLookupTopicResponse(
            request_id=request_id,
            brokerServiceUrl=broker_service_url,
            brokerServiceUrlTls=broker_service_url_tls,
            response=api.CommandLookupTopicResponse.Connect,
            authoritative=authoritative,
            proxy_through_service_url=proxy_through_service_url,
        )
    )


def lookup_failed(request_id: int, server_error: int, message: str) -> bytes:
    """LOOKUP_RESPONSE, Failed."""
    return encode_command(
        api.CommandLookupTopicResponse(
            request_id=request_id,
            response=api.CommandLookupTopicResponse.Failed,
            error=code(server_error),
            message=message,
        )
    )


def get_topics_of_namespace_response(
    request_id: int, topics: Iterable[str], topics_hash: str | None = None, *, filtered: bool, changed: bool = True
) -> bytes:
    """GET_TOPICS_OF_NAMESPACE_RESPONSE. ``filtered``: by the pattern; ``changed`` False: the list is omitted."""
    return encode_command(
        api.CommandGetTopicsOfNamespaceResponse(
            request_id=request_id, topics=topics, topics_hash=topics_hash, filtered=filtered, changed=changed
        )
    )


def watch_topic_list_success(request_id: int, watcher_id: int, topics: Iterable[str], topics_hash: str) -> bytes:
    """WATCH_TOPIC_LIST_SUCCESS: the watcher is registered, with its initial list of topics."""
    return encode_command(
        api.CommandWatchTopicListSuccess(
            request_id=request_id, watcher_id=watcher_id, topic=topics, topics_hash=topics_hash
        )
    )


def watch_topic_update(
    watcher_id: int, new_topics: Iterable[str], deleted_topics: Iterable[str], topics_hash: str
) -> bytes:
    """WATCH_TOPIC_UPDATE: changes since the last update. ``topics_hash``: of the whole current list."""
    return encode_command(
        api.CommandWatchTopicUpdate(
            watcher_id=watcher_id, new_topics=new_topics, deleted_topics=deleted_topics, topics_hash=topics_hash
        )
    )


# Producers -----------------------------------------------------------------------------------------------------------


def producer_success(
    request_id: int,
    producer_name: str,
    last_sequence_id: int = -1,
    schema_version: bytes | None = None,
    topic_epoch: int | None = None,
    *,
    producer_ready: bool = True,
) -> bytes:
    """PRODUCER_SUCCESS. ``producer_ready`` False: the producer waits for exclusive access; a second reply follows."""
    return encode_command(
        api.CommandProducerSuccess(
            request_id=request_id,
            producer_name=producer_name,
            last_sequence_id=last_sequence_id,
            schema_version=schema_version,
            topic_epoch=topic_epoch,
            producer_ready=producer_ready,
        )
    )


def send_error(producer_id: int, sequence_id: int, server_error: int, message: str) -> bytes:
    """SEND_ERROR: the message was not stored."""
    return encode_command(
        api.CommandSendError(
            producer_id=producer_id, sequence_id=sequence_id, error=code(server_error), message=message
        )
    )


def close_producer(producer_id: int, request_id: int = NO_REQUEST) -> bytes:
    """CLOSE_PRODUCER, initiated by the broker: the client looks the topic up again and reconnects."""
    return encode_command(api.CommandCloseProducer(producer_id=producer_id, request_id=request_id))


# Consumers -----------------------------------------------------------------------------------------------------------


def close_consumer(consumer_id: int, request_id: int = NO_REQUEST) -> bytes:
    """CLOSE_CONSUMER, initiated by the broker: the client subscribes again."""
    return encode_command(api.CommandCloseConsumer(consumer_id=consumer_id, request_id=request_id))


def active_consumer_change(consumer_id: int, *, is_active: bool) -> bytes:
    """ACTIVE_CONSUMER_CHANGE: whether this consumer of a Failover subscription is the active one."""
    return encode_command(api.CommandActiveConsumerChange(consumer_id=consumer_id, is_active=is_active))


def reached_end_of_topic(consumer_id: int) -> bytes:
    """REACHED_END_OF_TOPIC. Send it only to clients that support it: C++, Python, Node and Go drop the connection."""
    return encode_command(api.CommandReachedEndOfTopic(consumer_id=consumer_id))


def ack_response(
    consumer_id: int,
    request_id: int,
    server_error: int | None = None,
    message: str | None = None,
    txnid_least_bits: int | None = None,
    txnid_most_bits: int | None = None,
) -> bytes:
    """ACK_RESPONSE to an ACK with a request ID. ``server_error`` None: the acknowledgement is durable."""
    return encode_command(
        api.CommandAckResponse(
            consumer_id=consumer_id,
            request_id=request_id,
            error=code_or_none(server_error),
            message=message,
            txnid_least_bits=txnid_least_bits,
            txnid_most_bits=txnid_most_bits,
        )
    )


def get_last_message_id_response(
    request_id: int, last_message_id: MessageIdData, mark_delete_position: MessageIdData | None = None
) -> bytes:
    """GET_LAST_MESSAGE_ID_RESPONSE. ``mark_delete_position``: None if the subscription has none."""
    return encode_command(
        api.CommandGetLastMessageIdResponse(
            request_id=request_id,
            last_message_id=last_message_id,
            consumer_mark_delete_position=mark_delete_position,
        )
    )


class ConsumerStatsFields(NamedTuple):
    """Fields of CONSUMER_STATS_RESPONSE. Rates are messages a second, throughput bytes a second."""

    msg_rate_out: float
    msg_throughput_out: float
    msg_rate_redeliver: float
    consumer_name: str
    available_permits: int
    unacked_messages: int
    blocked_on_unacked_messages: bool
    address: str
    connected_since: str
    type: str
    msg_rate_expired: float
    msg_backlog: int
    message_ack_rate: float


def consumer_stats_response(request_id: int, stats: ConsumerStatsFields) -> bytes:
    """CONSUMER_STATS_RESPONSE. The permits field is unsigned: as in Pulsar, negative permits (after one big batch) are
    sent modulo 2**64."""
    return encode_command(
        api.CommandConsumerStatsResponse(
            request_id=request_id,
            msgRateOut=stats.msg_rate_out,
            msgThroughputOut=stats.msg_throughput_out,
            msgRateRedeliver=stats.msg_rate_redeliver,
            consumerName=stats.consumer_name,
            availablePermits=stats.available_permits & 0xFFFFFFFFFFFFFFFF,
            unackedMessages=stats.unacked_messages,
            blockedConsumerOnUnackedMsgs=stats.blocked_on_unacked_messages,
            address=stats.address,
            connectedSince=stats.connected_since,
            type=stats.type,
            msgRateExpired=stats.msg_rate_expired,
            msgBacklog=stats.msg_backlog,
            messageAckRate=stats.message_ack_rate,
        )
    )


def consumer_stats_failed(request_id: int, server_error: int, message: str) -> bytes:
    """CONSUMER_STATS_RESPONSE with an error."""
    return encode_command(
        api.CommandConsumerStatsResponse(request_id=request_id, error_code=code(server_error), error_message=message)
    )


# Schemas -------------------------------------------------------------------------------------------------------------


def get_schema_response(request_id: int, schema: api.Schema, schema_version: bytes) -> bytes:
    """GET_SCHEMA_RESPONSE. ``schema_version``: eight bytes, big endian."""
    return encode_command(
        api.CommandGetSchemaResponse(request_id=request_id, schema=schema, schema_version=schema_version)
    )


def get_schema_failed(request_id: int, server_error: int, message: str) -> bytes:
    """GET_SCHEMA_RESPONSE with an error."""
    return encode_command(
        api.CommandGetSchemaResponse(request_id=request_id, error_code=code(server_error), error_message=message)
    )


def get_or_create_schema_response(request_id: int, schema_version: bytes) -> bytes:
    """GET_OR_CREATE_SCHEMA_RESPONSE. ``schema_version``: eight bytes, big endian."""
    return encode_command(api.CommandGetOrCreateSchemaResponse(request_id=request_id, schema_version=schema_version))


def get_or_create_schema_failed(request_id: int, server_error: int, message: str) -> bytes:
    """GET_OR_CREATE_SCHEMA_RESPONSE with an error."""
    return encode_command(
        api.CommandGetOrCreateSchemaResponse(
            request_id=request_id, error_code=code(server_error), error_message=message
        )
    )


# Transactions --------------------------------------------------------------------------------------------------------

TransactionResponse = (
    type[api.CommandNewTxnResponse]
    | type[api.CommandAddPartitionToTxnResponse]
    | type[api.CommandAddSubscriptionToTxnResponse]
    | type[api.CommandEndTxnResponse]
    | type[api.CommandEndTxnOnPartitionResponse]
    | type[api.CommandEndTxnOnSubscriptionResponse]
)
"""Responses with the ID of a transaction. All have the same fields."""


def tc_client_connect_response(request_id: int, server_error: int | None = None, message: str | None = None) -> bytes:
    """TC_CLIENT_CONNECT_RESPONSE; ``server_error`` None: this broker owns the coordinator."""
    return encode_command(
        api.CommandTcClientConnectResponse(request_id=request_id, error=code_or_none(server_error), message=message)
    )


def transaction_response(
    response: TransactionResponse,
    request_id: int,
    txnid_least_bits: int,
    txnid_most_bits: int,
    server_error: int | None = None,
    message: str | None = None,
) -> bytes:
    """Response to a transaction command: success, or an error.

    A transaction ID is two numbers, the least and the most significant 64 bits, in the order of the protocol's fields.
    """
    return encode_command(
        response(
            request_id=request_id,
            txnid_least_bits=txnid_least_bits,
            txnid_most_bits=txnid_most_bits,
            error=code_or_none(server_error),
            message=message,
        )
    )
