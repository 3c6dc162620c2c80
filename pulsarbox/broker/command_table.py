"""The command table: which commands the broker takes, in which state of the connection, who may send them, who answers.

A command that stands nowhere here closes the connection, as does one sent in another state. A row without a permission
does not load.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from pulsarbox.broker.cnx import ServerCnx
from pulsarbox.broker.handlers import (
    authenticating,
    connection,
    consume,
    lookup,
    produce,
    schema,
    subscribe,
    transactions,
)
from pulsarbox.clock import Now
from pulsarbox.protocol.PulsarApi_pb2 import BaseCommand

Handler = Callable[[ServerCnx, Any, Now], None]

ANYONE = "anyone"
LOOKUP = "lookup"
PRODUCE = "produce"
CONSUME = "consume"
PERMISSIONS = frozenset({ANYONE, LOOKUP, PRODUCE, CONSUME})

START = frozenset({"start"})
CONNECTED = frozenset({"connected"})


class CommandRow(NamedTuple):
    """One command the broker takes."""

    type: int
    states: frozenset[str]
    permission: str
    handler: Handler


_ROWS = (
    (BaseCommand.CONNECT, START, ANYONE, connection.connect),
    (BaseCommand.PING, CONNECTED, ANYONE, connection.ping),
    (BaseCommand.PONG, CONNECTED, ANYONE, connection.pong),
    (BaseCommand.AUTH_RESPONSE, CONNECTED, ANYONE, authenticating.auth_response),
    (BaseCommand.LOOKUP, CONNECTED, LOOKUP, lookup.lookup),
    (BaseCommand.PARTITIONED_METADATA, CONNECTED, LOOKUP, lookup.partitioned_metadata),
    (BaseCommand.GET_TOPICS_OF_NAMESPACE, CONNECTED, LOOKUP, lookup.get_topics_of_namespace),
    (BaseCommand.WATCH_TOPIC_LIST, CONNECTED, LOOKUP, lookup.watch_topic_list),
    (BaseCommand.WATCH_TOPIC_LIST_CLOSE, CONNECTED, LOOKUP, lookup.watch_topic_list_close),
    (BaseCommand.PRODUCER, CONNECTED, PRODUCE, produce.producer),
    (BaseCommand.CLOSE_PRODUCER, CONNECTED, PRODUCE, produce.close_producer),
    (BaseCommand.SUBSCRIBE, CONNECTED, CONSUME, subscribe.subscribe),
    (BaseCommand.FLOW, CONNECTED, CONSUME, consume.flow),
    (BaseCommand.ACK, CONNECTED, CONSUME, consume.ack),
    (BaseCommand.REDELIVER_UNACKNOWLEDGED_MESSAGES, CONNECTED, CONSUME, consume.redeliver),
    (BaseCommand.UNSUBSCRIBE, CONNECTED, CONSUME, consume.unsubscribe),
    (BaseCommand.SEEK, CONNECTED, CONSUME, consume.seek),
    (BaseCommand.CLOSE_CONSUMER, CONNECTED, CONSUME, consume.close_consumer),
    (BaseCommand.GET_LAST_MESSAGE_ID, CONNECTED, CONSUME, consume.get_last_message_id),
    (BaseCommand.CONSUMER_STATS, CONNECTED, CONSUME, consume.consumer_stats),
    (BaseCommand.GET_SCHEMA, CONNECTED, LOOKUP, schema.get_schema),
    (BaseCommand.GET_OR_CREATE_SCHEMA, CONNECTED, PRODUCE, schema.get_or_create_schema),
    (BaseCommand.TC_CLIENT_CONNECT_REQUEST, CONNECTED, PRODUCE, transactions.tc_client_connect),
    (BaseCommand.NEW_TXN, CONNECTED, PRODUCE, transactions.new_txn),
    (BaseCommand.ADD_PARTITION_TO_TXN, CONNECTED, PRODUCE, transactions.add_partition_to_txn),
    (BaseCommand.ADD_SUBSCRIPTION_TO_TXN, CONNECTED, CONSUME, transactions.add_subscription_to_txn),
    (BaseCommand.END_TXN, CONNECTED, PRODUCE, transactions.end_txn),
)


def command_table() -> dict[int, CommandRow]:
    """The table by command type. Raises ValueError for a row without a known permission."""
    table: dict[int, CommandRow] = {row[0]: CommandRow(*row) for row in _ROWS}
    for row in table.values():
        if row.permission not in PERMISSIONS:
            raise ValueError(f"command {row.type} has no permission: {row.permission!r}")
    return table
