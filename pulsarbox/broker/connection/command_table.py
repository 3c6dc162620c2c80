"""The command table: accepted commands, the connection states and permission they require, and their handlers.

A command that is not in the table, or arrives in another state, closes the connection. Loading the table fails if a
row's permission has no rule.
"""

from typing import Final

from pulsarbox.broker.connection.command_row import CommandRow
from pulsarbox.broker.handlers import (
    authentication,
    connection,
    consume,
    lookup,
    produce,
    schema,
    subscribe,
    transactions,
)
from pulsarbox.broker.security.authorization import Authorization
from pulsarbox.broker.security.command_rules import RULES, Needs
from pulsarbox.protocol import replies
from pulsarbox.protocol.PulsarApi_pb2 import BaseCommand

START = frozenset({"start"})
CONNECTED = frozenset({"connected"})


_ROWS: Final = (
    (BaseCommand.CONNECT, START, Needs.NOTHING, connection.connect),
    (BaseCommand.PING, CONNECTED, Needs.NOTHING, connection.ping),
    (BaseCommand.PONG, CONNECTED, Needs.NOTHING, connection.pong),
    (BaseCommand.AUTH_RESPONSE, CONNECTED, Needs.NOTHING, authentication.auth_response),
    (BaseCommand.LOOKUP, CONNECTED, Needs.LOOKUP, lookup.lookup, "Lookup", replies.lookup_failed),
    (
        BaseCommand.PARTITIONED_METADATA,
        CONNECTED,
        Needs.LOOKUP,
        lookup.partitioned_metadata,
        "Get Partition Metadata",
        replies.partition_metadata_failed,
    ),
    (
        BaseCommand.GET_TOPICS_OF_NAMESPACE,
        CONNECTED,
        Needs.NAMESPACE,
        lookup.get_topics_of_namespace,
        "GetTopicsOfNamespace",
    ),
    (BaseCommand.WATCH_TOPIC_LIST, CONNECTED, Needs.NAMESPACE, lookup.watch_topic_list, "watchTopicList"),
    (BaseCommand.WATCH_TOPIC_LIST_CLOSE, CONNECTED, Needs.OPENED, lookup.watch_topic_list_close),
    (BaseCommand.PRODUCER, CONNECTED, Needs.PRODUCE, produce.producer, "Produce"),
    (BaseCommand.CLOSE_PRODUCER, CONNECTED, Needs.OPENED, produce.close_producer),
    (BaseCommand.SUBSCRIBE, CONNECTED, Needs.CONSUME, subscribe.subscribe, "subscribe"),
    (BaseCommand.FLOW, CONNECTED, Needs.OPENED, consume.flow),
    (BaseCommand.ACK, CONNECTED, Needs.OPENED, consume.ack),
    (BaseCommand.REDELIVER_UNACKNOWLEDGED_MESSAGES, CONNECTED, Needs.OPENED, consume.redeliver),
    (BaseCommand.UNSUBSCRIBE, CONNECTED, Needs.OPENED, consume.unsubscribe),
    (BaseCommand.SEEK, CONNECTED, Needs.OPENED, consume.seek),
    (BaseCommand.CLOSE_CONSUMER, CONNECTED, Needs.OPENED, consume.close_consumer),
    (BaseCommand.GET_LAST_MESSAGE_ID, CONNECTED, Needs.OPENED, consume.get_last_message_id),
    (BaseCommand.CONSUMER_STATS, CONNECTED, Needs.OPENED, consume.consumer_stats),
    (BaseCommand.GET_SCHEMA, CONNECTED, Needs.LOOKUP, schema.get_schema, "GetSchema", replies.get_schema_failed),
    (
        BaseCommand.GET_OR_CREATE_SCHEMA,
        CONNECTED,
        Needs.PRODUCE,
        schema.get_or_create_schema,
        "GetOrCreateSchema",
        replies.get_or_create_schema_failed,
    ),
    (BaseCommand.TC_CLIENT_CONNECT_REQUEST, CONNECTED, Needs.NAME, transactions.tc_client_connect),
    (BaseCommand.NEW_TXN, CONNECTED, Needs.NAME, transactions.new_txn),
    (BaseCommand.ADD_PARTITION_TO_TXN, CONNECTED, Needs.NAME, transactions.add_partition_to_txn),
    (BaseCommand.ADD_SUBSCRIPTION_TO_TXN, CONNECTED, Needs.NAME, transactions.add_subscription_to_txn),
    (BaseCommand.END_TXN, CONNECTED, Needs.NAME, transactions.end_txn),
    (BaseCommand.END_TXN_ON_PARTITION, CONNECTED, Needs.SUPERUSER, transactions.end_txn_on_partition),
    (BaseCommand.END_TXN_ON_SUBSCRIPTION, CONNECTED, Needs.SUPERUSER, transactions.end_txn_on_subscription),
)


def command_table(authorization: Authorization) -> dict[int, CommandRow]:
    """Return the table by command type. Raises ValueError for a row whose permission has no rule."""
    table: dict[int, CommandRow] = {row[0]: CommandRow(*row) for row in _ROWS}
    for number, row in table.items():
        if row.permission not in RULES:
            raise ValueError(f"command {row.type} has no permission: {row.permission!r}")
        if authorization.enabled:
            table[number] = row._replace(rule=RULES[row.permission])
    return table
