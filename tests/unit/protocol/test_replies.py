"""``pulsarbox.protocol.replies``."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from google.protobuf.message import EncodeError

from pulsarbox.errors import TopicNotFound
from pulsarbox.protocol import PulsarApi_pb2 as api
from pulsarbox.protocol import replies
from pulsarbox.protocol.commands import COMMANDS, Direction, encode_command, encode_frame, parse_command
from pulsarbox.protocol.frames import FrameDecoder
from pulsarbox.protocol.PulsarApi_pb2 import BaseCommand
from tests.unit.protocol.strategies import captured

STATS = replies.ConsumerStatsFields(1.5, 2.5, 0.0, "c", -3, 4, True, "/127.0.0.1:1", "now", "Shared", 0.5, 9, 1.0)
SCHEMA = api.Schema(name="s", schema_data=b"{}", type=api.Schema.Json)
LAST = replies.message_id(-1, -1)
WRONG = (TopicNotFound.server_error, "no such topic")

EXAMPLES = [
    ("CONNECTED", replies.connected(5242880, 20, api.FeatureFlags(supports_topic_watchers=True)),
     {"protocol_version": 20}),
    ("AUTH_CHALLENGE", replies.auth_challenge("token", b"x"), {"protocol_version": 21}),
    ("PING", replies.ping(), {}),
    ("PONG", replies.pong(), {}),
    ("SUCCESS", replies.success(7, SCHEMA), {"request_id": 7, "schema": SCHEMA}),
    ("ERROR", replies.error(replies.NO_REQUEST, *WRONG), {"request_id": 2**64 - 1, "error": 11, "message": WRONG[1]}),
    ("PARTITIONED_METADATA_RESPONSE", replies.partition_metadata(7, 3), {"partitions": 3, "response": 0}),
    ("PARTITIONED_METADATA_RESPONSE", replies.partition_metadata_failed(7, *WRONG), {"response": 1, "error": 11}),
    ("LOOKUP_RESPONSE", replies.lookup_connect(7, "pulsar://h:1", "pulsar+ssl://h:2"),
     {"response": 1, "brokerServiceUrl": "pulsar://h:1", "authoritative": True, "proxy_through_service_url": True}),
    ("LOOKUP_RESPONSE", replies.lookup_failed(7, *WRONG), {"response": 2, "error": 11}),
    ("GET_TOPICS_OF_NAMESPACE_RESPONSE", replies.get_topics_of_namespace_response(7, ["a", "b"], "00", filtered=True),
     {"topics": ["a", "b"], "topics_hash": "00", "filtered": True, "changed": True}),
    ("WATCH_TOPIC_LIST_SUCCESS", replies.watch_topic_list_success(7, 8, ["a"], "00"),
     {"watcher_id": 8, "topic": ["a"]}),
    ("WATCH_TOPIC_UPDATE", replies.watch_topic_update(8, ["a"], ["b"], "00"),
     {"new_topics": ["a"], "deleted_topics": ["b"]}),
    ("PRODUCER_SUCCESS", replies.producer_success(7, "p", 5, b"v", 2, producer_ready=False),
     {"producer_name": "p", "last_sequence_id": 5, "schema_version": b"v", "topic_epoch": 2, "producer_ready": False}),
    ("SEND_ERROR", replies.send_error(1, 2, *WRONG), {"producer_id": 1, "sequence_id": 2, "error": 11}),
    ("CLOSE_PRODUCER", replies.close_producer(1), {"producer_id": 1, "request_id": 2**64 - 1}),
    ("CLOSE_CONSUMER", replies.close_consumer(1), {"consumer_id": 1, "request_id": 2**64 - 1}),
    ("ACTIVE_CONSUMER_CHANGE", replies.active_consumer_change(1, is_active=True),
     {"consumer_id": 1, "is_active": True}),
    ("REACHED_END_OF_TOPIC", replies.reached_end_of_topic(1), {"consumer_id": 1}),
    ("ACK_RESPONSE", replies.ack_response(1, 7, *WRONG), {"consumer_id": 1, "request_id": 7, "error": 11}),
    ("GET_LAST_MESSAGE_ID_RESPONSE", replies.get_last_message_id_response(7, LAST, replies.message_id(3, 4, 1)),
     {"request_id": 7, "last_message_id": LAST}),
    ("CONSUMER_STATS_RESPONSE", replies.consumer_stats_response(7, STATS),
     {"availablePermits": 2**64 - 3, "unackedMessages": 4}),
    ("CONSUMER_STATS_RESPONSE", replies.consumer_stats_failed(7, *WRONG), {"error_code": 11}),
    ("GET_SCHEMA_RESPONSE", replies.get_schema_response(7, SCHEMA, b"v"), {"schema": SCHEMA, "schema_version": b"v"}),
    ("GET_SCHEMA_RESPONSE", replies.get_schema_failed(7, *WRONG), {"error_code": 11, "error_message": WRONG[1]}),
    ("GET_OR_CREATE_SCHEMA_RESPONSE", replies.get_or_create_schema_response(7, b"v"), {"schema_version": b"v"}),
    ("GET_OR_CREATE_SCHEMA_RESPONSE", replies.get_or_create_schema_failed(7, *WRONG), {"error_code": 11}),
    ("TC_CLIENT_CONNECT_RESPONSE", replies.tc_client_connect_response(7, *WRONG),
     {"request_id": 7, "error": 11}),
]  # fmt: skip
TXN = ["NEW_TXN", "ADD_PARTITION_TO_TXN", "ADD_SUBSCRIPTION_TO_TXN", "END_TXN", "END_TXN_ON_PARTITION",
       "END_TXN_ON_SUBSCRIPTION"]  # fmt: skip
for name in TXN:
    number = BaseCommand.Type.Value(f"{name}_RESPONSE")
    response: Any = COMMANDS[number].message_class
    told = replies.transaction_response(response, 7, 1, 2)
    EXAMPLES.append((f"{name}_RESPONSE", told, {"txnid_least_bits": 1, "txnid_most_bits": 2}))
    failed = replies.transaction_response(response, 7, 1, 2, *WRONG)
    EXAMPLES.append((f"{name}_RESPONSE", failed, {"error": 11, "message": WRONG[1]}))


@pytest.mark.parametrize(
    ("name", "frame", "fields"), EXAMPLES, ids=lambda value: value if isinstance(value, str) else ""
)
def test_a_reply_says_what_it_was_given(name: str, frame: bytes, fields: dict[str, object]) -> None:
    ((data, rest),) = FrameDecoder(100_000).feed(frame)
    command = parse_command(data)
    spec = COMMANDS[command.type]
    part = getattr(command, spec.field)
    assert (spec.name, rest) == (name, b"")
    assert {field: getattr(part, field) for field in fields} == fields


def test_every_command_to_a_client_has_its_reply() -> None:
    """Every command to a client, except two with separate modules and one used only by clusters."""
    outgoing = {spec.name for spec in COMMANDS.values() if spec.direction in (Direction.TO_CLIENT, Direction.BOTH)}
    assert outgoing - {name for name, *_ in EXAMPLES} == {"SEND_RECEIPT", "MESSAGE", "TOPIC_MIGRATED"}
    functions = inspect.getmembers(replies, inspect.isfunction)
    own = {name for name, function in functions if function.__module__ == replies.__name__}
    of_transactions = 2 * len(TXN)
    others = own - {"message_id", "code", "code_or_none", "transaction_response"}
    assert len(others) == len(EXAMPLES) - of_transactions


@pytest.mark.parametrize(("name", "frame", "fields"), EXAMPLES)
def test_a_frame_is_the_one_that_protobuf_encodes(name: str, frame: bytes, fields: dict[str, object]) -> None:
    ((data, _),) = FrameDecoder(100_000).feed(frame)
    assert frame == encode_frame(parse_command(data))


def test_a_reply_without_a_required_field_is_refused() -> None:
    with pytest.raises(EncodeError):
        encode_command(api.CommandSuccess())


def test_the_real_broker_wrote_these_bytes_too() -> None:
    real = {row.frame for row in captured() if row.sender == "B"}
    assert any(replies.partition_metadata(request_id, 0) in real for request_id in range(40))
    assert any(replies.success(request_id) in real for request_id in range(60))
