"""The table of commands, and conversion between bytes and BaseCommand.

Two properties of protobuf's Python runtime shape ``parse_command``: it accepts messages without their required fields,
and it returns a string field that is not valid UTF-8 as bytes. Both are checked here once, so that no caller has to.
Unknown fields are kept and ignored, as newer clients require.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from struct import Struct
from typing import Any, Final, NamedTuple

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError, Message

from pulsarbox.protocol import PulsarApi_pb2 as api
from pulsarbox.protocol.checksum import crc32c
from pulsarbox.protocol.PulsarApi_pb2 import BaseCommand
from pulsarbox.protocol.varint import varint
from pulsarbox.protocol.violations import MalformedCommand

MAGIC: Final = b"\x0e\x01"
"""Magic number before the checksum of a payload."""


_MISSING_SHOWN: Final = 3


class Direction(enum.Enum):
    """The sides that may send a command."""

    TO_BROKER = "client to broker"
    TO_CLIENT = "broker to client"
    BOTH = "both ways"


class CommandSpec(NamedTuple):
    """One row of the table of commands."""

    number: int
    name: str
    """Name in BaseCommand.Type."""
    field: str
    """The BaseCommand field with the command's own message."""
    direction: Direction
    has_payload: bool
    """Whether metadata and a body follow the command in its frame."""
    message_class: type[Message]
    """The class of the command's own message."""


_IN = Direction.TO_BROKER
_OUT = Direction.TO_CLIENT
_BOTH = Direction.BOTH

_ROWS: tuple[tuple[int, str, str, Direction], ...] = (
    (2, "CONNECT", "connect", _IN),
    (3, "CONNECTED", "connected", _OUT),
    (4, "SUBSCRIBE", "subscribe", _IN),
    (5, "PRODUCER", "producer", _IN),
    (6, "SEND", "send", _IN),
    (7, "SEND_RECEIPT", "send_receipt", _OUT),
    (8, "SEND_ERROR", "send_error", _OUT),
    (9, "MESSAGE", "message", _OUT),
    (10, "ACK", "ack", _IN),
    (11, "FLOW", "flow", _IN),
    (12, "UNSUBSCRIBE", "unsubscribe", _IN),
    (13, "SUCCESS", "success", _OUT),
    (14, "ERROR", "error", _OUT),
    (15, "CLOSE_PRODUCER", "close_producer", _BOTH),
    (16, "CLOSE_CONSUMER", "close_consumer", _BOTH),
    (17, "PRODUCER_SUCCESS", "producer_success", _OUT),
    (18, "PING", "ping", _BOTH),
    (19, "PONG", "pong", _BOTH),
    (20, "REDELIVER_UNACKNOWLEDGED_MESSAGES", "redeliverUnacknowledgedMessages", _IN),
    (21, "PARTITIONED_METADATA", "partitionMetadata", _IN),
    (22, "PARTITIONED_METADATA_RESPONSE", "partitionMetadataResponse", _OUT),
    (23, "LOOKUP", "lookupTopic", _IN),
    (24, "LOOKUP_RESPONSE", "lookupTopicResponse", _OUT),
    (25, "CONSUMER_STATS", "consumerStats", _IN),
    (26, "CONSUMER_STATS_RESPONSE", "consumerStatsResponse", _OUT),
    (27, "REACHED_END_OF_TOPIC", "reachedEndOfTopic", _OUT),
    (28, "SEEK", "seek", _IN),
    (29, "GET_LAST_MESSAGE_ID", "getLastMessageId", _IN),
    (30, "GET_LAST_MESSAGE_ID_RESPONSE", "getLastMessageIdResponse", _OUT),
    (31, "ACTIVE_CONSUMER_CHANGE", "active_consumer_change", _OUT),
    (32, "GET_TOPICS_OF_NAMESPACE", "getTopicsOfNamespace", _IN),
    (33, "GET_TOPICS_OF_NAMESPACE_RESPONSE", "getTopicsOfNamespaceResponse", _OUT),
    (34, "GET_SCHEMA", "getSchema", _IN),
    (35, "GET_SCHEMA_RESPONSE", "getSchemaResponse", _OUT),
    (36, "AUTH_CHALLENGE", "authChallenge", _OUT),
    (37, "AUTH_RESPONSE", "authResponse", _IN),
    (38, "ACK_RESPONSE", "ackResponse", _OUT),
    (39, "GET_OR_CREATE_SCHEMA", "getOrCreateSchema", _IN),
    (40, "GET_OR_CREATE_SCHEMA_RESPONSE", "getOrCreateSchemaResponse", _OUT),
    (50, "NEW_TXN", "newTxn", _IN),
    (51, "NEW_TXN_RESPONSE", "newTxnResponse", _OUT),
    (52, "ADD_PARTITION_TO_TXN", "addPartitionToTxn", _IN),
    (53, "ADD_PARTITION_TO_TXN_RESPONSE", "addPartitionToTxnResponse", _OUT),
    (54, "ADD_SUBSCRIPTION_TO_TXN", "addSubscriptionToTxn", _IN),
    (55, "ADD_SUBSCRIPTION_TO_TXN_RESPONSE", "addSubscriptionToTxnResponse", _OUT),
    (56, "END_TXN", "endTxn", _IN),
    (57, "END_TXN_RESPONSE", "endTxnResponse", _OUT),
    (58, "END_TXN_ON_PARTITION", "endTxnOnPartition", _IN),
    (59, "END_TXN_ON_PARTITION_RESPONSE", "endTxnOnPartitionResponse", _OUT),
    (60, "END_TXN_ON_SUBSCRIPTION", "endTxnOnSubscription", _IN),
    (61, "END_TXN_ON_SUBSCRIPTION_RESPONSE", "endTxnOnSubscriptionResponse", _OUT),
    (62, "TC_CLIENT_CONNECT_REQUEST", "tcClientConnectRequest", _IN),
    (63, "TC_CLIENT_CONNECT_RESPONSE", "tcClientConnectResponse", _OUT),
    (64, "WATCH_TOPIC_LIST", "watchTopicList", _IN),
    (65, "WATCH_TOPIC_LIST_SUCCESS", "watchTopicListSuccess", _OUT),
    (66, "WATCH_TOPIC_UPDATE", "watchTopicUpdate", _OUT),
    (67, "WATCH_TOPIC_LIST_CLOSE", "watchTopicListClose", _IN),
    (68, "TOPIC_MIGRATED", "topicMigrated", _OUT),
)


def _spec(number: int, name: str, field: str, direction: Direction) -> CommandSpec:
    descriptor = BaseCommand.DESCRIPTOR.fields_by_name[field].message_type
    assert descriptor is not None, field
    return CommandSpec(number, name, field, direction, name in ("SEND", "MESSAGE"), getattr(api, descriptor.name))


COMMANDS: Final[dict[int, CommandSpec]] = {row[0]: _spec(*row) for row in _ROWS}
"""All commands of the protocol by type number."""


# Parsing -------------------------------------------------------------------------------------------------------------

_parse = BaseCommand.FromString
_FIELD_OF: dict[int, str] = {spec.number: spec.field for spec in COMMANDS.values()}


def parse_command(data: bytes) -> BaseCommand:
    """Parse a command and check its type, its own message, its required fields, and that its text is UTF-8.

    Raises MalformedCommand if a check fails. Takes about 0.9 us; ``send_decoder.parse_send`` is the fast path for SEND.
    """
    try:
        command = _parse(data)
    except DecodeError as error:
        raise MalformedCommand(f"malformed command of {len(data)} bytes: {error}") from None
    number = command.type
    field = _FIELD_OF[number]
    if not command.HasField("type") or not command.HasField(field):
        raise MalformedCommand(_missing_part(command, data))
    if not command.IsInitialized():
        raise MalformedCommand(f"{COMMANDS[number].name} without the required fields {missing_fields(command)}")
    check_text = _TEXT_CHECKS.get(number)
    if check_text is not None and (path := check_text(getattr(command, field))):
        raise MalformedCommand(f"{COMMANDS[number].name}: {path} is not UTF-8")
    return command


def missing_fields(message: Any) -> str:
    """Return the paths of the first missing required fields, for an error message.

    Protobuf's own function lists all of them: two million paths for a frame of 5 MiB.
    """
    return ", ".join(islice(_missing(message, ""), _MISSING_SHOWN))


def _missing(message: Any, before: str) -> Iterator[str]:
    for field in message.DESCRIPTOR.fields:
        if field.is_required and not message.HasField(field.name):
            yield before + field.name
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        repeated = not hasattr(value, "DESCRIPTOR")
        for index, each in enumerate(value if repeated else (value,)):
            if not each.IsInitialized():
                yield from _missing(each, f"{before}{field.name}{f'[{index}]' if repeated else ''}.")


def _missing_part(command: BaseCommand, data: bytes) -> str:
    """Return the error for a command without its own message: no type, a type unknown to protobuf, or no message."""
    if command.HasField("type"):
        spec = COMMANDS[command.type]
        return f"command of type {spec.number} ({spec.name}) without the field {spec.field}"
    if data[:1] == b"\x08" and len(data) > 1:
        return f"command of unknown type {_leading_number(data[1:])}: expected 2 to 68"
    return f"command without a type, {len(data)} bytes long"


def _leading_number(data: bytes) -> int:
    """Return the varint at the start of ``data``, for an error message."""
    number = 0
    for place, byte in enumerate(data[:10]):
        number |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            break
    return number


# Text ----------------------------------------------------------------------------------------------------------------

_TextCheck = Callable[[Any], str]
"""Returns the path of a string field that is not UTF-8, or an empty string."""


def _text_check(descriptor: Any, above: tuple[Descriptor, ...] = ()) -> _TextCheck | None:
    """Return a check of all string fields of a message and its nested messages, or None if it has none."""
    checks: list[tuple[str, bool, _TextCheck]] = []
    for field in descriptor.fields:
        check: _TextCheck | None = None
        if field.type == FieldDescriptor.TYPE_STRING:
            check = _not_text
        elif field.message_type is not None and field.message_type not in (*above, descriptor):
            check = _text_check(field.message_type, (*above, descriptor))
        if check is not None:
            checks.append((field.name, field.default_value == [], check))  # [] is the default of repeated fields
    return _check_fields(checks) if checks else None


_HERE = "."


def _not_text(value: object) -> str:
    return "" if type(value) is str else _HERE


def _check_fields(checks: list[tuple[str, bool, _TextCheck]]) -> _TextCheck:
    def check_fields(message: Any) -> str:
        for name, repeated, check in checks:
            value = getattr(message, name)
            for item in value if repeated else (value,):
                if path := check(item):
                    return name if path is _HERE else f"{name}.{path}"
        return ""

    return check_fields


def _text_checks() -> Iterable[tuple[int, _TextCheck]]:
    for spec in COMMANDS.values():
        check = _text_check(spec.message_class.DESCRIPTOR)
        if check is not None:
            yield spec.number, check


_TEXT_CHECKS: dict[int, _TextCheck] = dict(_text_checks())


# Encoding ------------------------------------------------------------------------------------------------------------

_WITH_LENGTH: Final = 2
"""Wire type of a nested message."""
_frame_header = Struct(">II").pack  # totalSize, cmdSize
_checksum_field = Struct(">I").pack
_metadata_size = Struct(">I").pack


def encode_frame(command: BaseCommand) -> bytes:
    """Return the frame of a command without a payload. Raises protobuf's EncodeError if a required field is not set."""
    data = command.SerializeToString()
    size = len(data)
    return _frame_header(4 + size, size) + data


_FRAME_START: Final[dict[type[Message], bytes]] = {
    spec.message_class: varint(BaseCommand.DESCRIPTOR.fields_by_name["type"].number << 3)
    + varint(spec.number)
    + varint(BaseCommand.DESCRIPTOR.fields_by_name[spec.field].number << 3 | _WITH_LENGTH)
    for spec in COMMANDS.values()
}
"""The beginning of a BaseCommand by the class of its message: the type, and the tag of the message's field."""


def encode_command(message: Message) -> bytes:
    """Return the frame of a command without a payload from the command's own message, such as CommandSuccess.

    Raises EncodeError if a required field is not set. Faster than ``encode_frame``, whose BaseCommand is a copy.
    """
    data = message.SerializeToString()
    start = _FRAME_START[type(message)] + varint(len(data))
    size = len(start) + len(data)
    return b"".join((_frame_header(4 + size, size), start, data))


def encode_payload_frame(command: BaseCommand, payload: bytes) -> bytes:
    """Return the frame of SEND or MESSAGE. ``payload`` (magic, checksum, metadata size, metadata, body) is not
    changed."""
    data = command.SerializeToString()
    size = len(data)
    return b"".join((_frame_header(4 + size + len(payload), size), data, payload))


def encode_payload(metadata: bytes, body: bytes) -> bytes:
    """Return the payload of a SEND: magic, crc32c, metadata size, serialised metadata and body."""
    covered = b"".join((_metadata_size(len(metadata)), metadata, body))
    return b"".join((MAGIC, _checksum_field(crc32c(covered)), covered))
