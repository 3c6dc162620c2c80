"""The JSON of the WebSocket API: messages, results, commands.

Values are accepted as Pulsar 4.2.4 accepts them: numbers and booleans for strings, strings for numbers, unknown fields.
Payloads are encoded and decoded in pieces of ``PIECE_BYTES``, so that large ones do not delay other clients. Source:
https://pulsar.apache.org/docs/4.2.x/client-libraries-websocket/ and the behavior of Pulsar 4.2.4.
"""

import json
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from secrets import token_hex
from typing import Any, Final, NamedTuple

from pulsarbox.clock import WALL_MAX
from pulsarbox.protocol.PulsarApi_pb2 import MessageIdData, MessageMetadata
from pulsarbox.protocol.schema.types import JSON_STRUCTURE
from pulsarbox.server.http.framework.request import compact, kind_of, long_of

PIECE_BYTES: Final = 96 << 10
"""Bytes encoded or decoded in one turn of the loop, a multiple of 12: whole groups of base64 in either direction."""
ELEMENTS_MAX: Final = 20_000
"""Maximum elements of one JSON text: each takes the parser time and memory."""
JSON_MAX: Final = 1 << 20
"""Maximum characters of a JSON text besides the payload: the parser takes up to 6 ms for as many."""
_STRUCTURE: Final = JSON_STRUCTURE.decode()
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_COMPRESSIONS: Final = {"NONE": 0, "LZ4": 1, "ZLIB": 2, "ZSTD": 3, "SNAPPY": 4}

NOT_JSON: Final = 3
BAD_PAYLOAD: Final = 7
NOT_SENT: Final = 8
"""Codes of failed sends: WebSocketError of Pulsar."""

Pause = Callable[[], Awaitable[None]]
"""Lets other clients be served."""


class InvalidMessage(Exception):
    """A message cannot be published; ``code`` is its result code, ``context`` that of the message, if known."""

    def __init__(self, code: int, reason: str, context: str | None = None) -> None:
        super().__init__(reason)
        self.code = code
        self.context = context


class EscapedBase64(str):
    """Base64 with the escapes of a JSON string, which ``decode_payload`` removes."""

    __slots__ = ()


class OutgoingMessage(NamedTuple):
    """A message to publish, as a client has sent it."""

    payload: str
    """In base64."""
    context: str | None = None
    properties: Mapping[str, str] = {}
    key: str | None = None
    replication_clusters: tuple[str, ...] = ()
    event_time: int = 0
    """Milliseconds since 1970; 0 for none."""
    deliver_at: int = 0
    deliver_after: int = 0
    """Milliseconds; 0 for none."""
    encryption_param: bytes = b""
    compression: int = 0
    uncompressed_size: int | None = None


def parse_message(text: str) -> OutgoingMessage:
    """Parse a message to publish. Raises InvalidMessage."""
    try:
        found = _parse_large(text) if len(text) > PIECE_BYTES else parse_object(text)
    except ValueError as error:
        raise InvalidMessage(NOT_JSON, str(error)) from None
    context = None
    try:
        context = _text(found, "context")
        fields = _fields(found, context)
        payload = _text(found, "payload")
    except ValueError as error:
        raise InvalidMessage(NOT_JSON, str(error)) from None
    if payload is None:
        raise InvalidMessage(BAD_PAYLOAD, "The message has no payload", context)
    return fields._replace(payload=payload)


def _parse_large(text: str) -> dict[str, Any]:
    """Parse a message with a large payload, which is cut out first: the parser takes 3 ms for each megabyte."""
    for named in {text.find('"payload"'), text.rfind('"payload"')}:
        start = text.find('"', text.find(":", named) + 1) + 1
        end = text.find('"', start)
        payload = text[start:end]
        is_plain = "\\" not in payload
        if start > 0 and len(payload) > PIECE_BYTES and payload.isascii() and (is_plain or len(text) > JSON_MAX):
            mark = token_hex(16)
            found = parse_object("".join((text[:start], mark, text[end:])))
            if found.get("payload") == mark:
                found["payload"] = payload if is_plain else EscapedBase64(payload)
                return found
    return parse_object(text)


def _fields(found: dict[str, Any], context: str | None) -> OutgoingMessage:
    compression = found.get("compressionType")
    if compression is not None and compression not in _COMPRESSIONS:
        raise ValueError(f"compressionType must be one of {', '.join(_COMPRESSIONS)}")
    size = found.get("uncompressedMessageSize")
    return OutgoingMessage(
        "",
        context,
        _properties(found.get("properties")),
        _text(found, "key"),
        _clusters(found.get("replicationClusters")),
        _event_time(_text(found, "eventTime"), context),
        _number(found, "deliverAt"),
        _number(found, "deliverAfterMs"),
        _encryption_param(_text(found, "encryptionParam"), context),
        0 if compression is None else _COMPRESSIONS[compression],
        None if size is None else _number(found, "uncompressedMessageSize"),
    )


def parse_object(text: str) -> dict[str, Any]:
    """Parse a JSON object. Raises ValueError with a readable message."""
    if len(text) > JSON_MAX:
        raise ValueError(f"The JSON has more than {JSON_MAX} characters besides the base64 of a payload")
    if sum(map(text.count, _STRUCTURE)) > ELEMENTS_MAX:
        raise ValueError(f"The JSON has more than {ELEMENTS_MAX} elements")
    try:
        value = json.loads(text)
    except ValueError as error:
        raise ValueError(f"Not JSON: {str(error)[:200]}") from None
    except RecursionError:
        raise ValueError("The JSON is nested too deep") from None
    if not isinstance(value, dict):
        raise ValueError(f"Expected a JSON object, not {kind_of(value)}")
    return value


def _text(found: dict[str, Any], name: str) -> str | None:
    value = found.get(name)
    if value is None:
        return None
    if isinstance(value, dict | list):
        raise ValueError(f"{name} must be a string, not {kind_of(value)}")
    return _checked(value if isinstance(value, str) else json.dumps(value))


def _checked(text: str) -> str:
    """Raise ValueError for text that is not Unicode: half of a surrogate pair."""
    if not text.isascii():
        text.encode()
    return text


def _properties(value: object) -> Mapping[str, str]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ValueError(f"properties must be an object, not {kind_of(value)}")
    found = {}
    for name in value:
        text = _text(value, name)
        if text is None:
            raise ValueError(f"The property {name[:40]!r} is null")
        found[_checked(name)] = text
    return found


def _clusters(value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise ValueError("replicationClusters must be an array of strings")
    return tuple(map(_checked, value))


def _number(found: dict[str, Any], name: str) -> int:
    """Parse a number, possibly a string; fractions are cut off. 0 if it is missing."""
    value = found.get(name)
    if value is None:
        return 0
    if isinstance(value, float) and abs(value) < 2**63:
        return int(value)
    number = None if isinstance(value, bool | float) else long_of(str(value))
    if number is None:
        raise ValueError(f"{name} must be a whole number")
    return number


def _event_time(text: str | None, context: str | None) -> int:
    if text is None:
        return 0
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            raise ValueError
        milliseconds = (moment - _EPOCH) // timedelta(milliseconds=1)
    except (ValueError, OverflowError):
        raise InvalidMessage(
            BAD_PAYLOAD, f"eventTime {text[:40]!r} is not a time such as 2026-11-21T10:00:00.000Z", context
        ) from None
    return max(0, milliseconds)


def _encryption_param(text: str | None, context: str | None) -> bytes:
    try:
        return b64decode(text or "", validate=True)
    except ValueError:
        raise InvalidMessage(BAD_PAYLOAD, "encryptionParam is not base64", context) from None


async def decode_payload(message: OutgoingMessage, pause: Pause) -> bytes:
    """Return the payload of a message; padding is optional. Raises InvalidMessage."""
    text = message.payload
    parts = []
    try:
        if isinstance(text, EscapedBase64):
            text = await _unescaped(text, pause)
        for at in range(0, len(text), PIECE_BYTES):
            piece = text[at : at + PIECE_BYTES]
            parts.append(b64decode(piece + "=" * (-len(piece) % 4), validate=True))
            if len(text) > PIECE_BYTES:
                await pause()
    except ValueError as error:
        raise InvalidMessage(BAD_PAYLOAD, f"The payload is not base64: {error}", message.context) from None
    if any(len(part) < PIECE_BYTES // 4 * 3 for part in parts[:-1]):
        raise InvalidMessage(BAD_PAYLOAD, "The payload is not base64: padding before its end", message.context)
    return parts[0] if len(parts) == 1 else b"".join(parts)


async def _unescaped(text: str, pause: Pause) -> str:
    parts, at = list[str](), 0
    while at < len(text):
        end = at + PIECE_BYTES
        cut = text.rfind("\\", max(at + 1, end - len("\\u003d")), end)
        piece = text[at : cut if cut > 0 and end < len(text) else end]
        at += len(piece)
        parts.append(json.loads(f'"{piece}"') if "\\" in piece else piece)
        await pause()
    return "".join(parts)


# Results


def encode_id(message_id: MessageIdData) -> str:
    """Return a message ID as text."""
    return b64encode(message_id.SerializeToString()).decode()


def sent(message_id: MessageIdData, context: str | None) -> bytes:
    """Return the result of a stored message."""
    found = {"result": "ok", "messageId": encode_id(message_id), "errorCode": 0, "schemaVersion": 0}
    return _result(found, context)


def not_sent(code: int, reason: str, context: str | None) -> bytes:
    """Return the result of a message that is not stored."""
    found = {"result": f"send-error:{code}", "errorMsg": reason, "errorCode": 0, "schemaVersion": 0}
    return _result(found, context)


def _result(found: dict[str, Any], context: str | None) -> bytes:
    if context is not None:
        found["context"] = context
    return compact(found).encode(errors="replace")


def end_of_topic(ended: bool) -> bytes:
    """Return the answer to isEndOfTopic."""
    return compact({"endOfTopic": ended}).encode()


# Received messages


def timestamp(milliseconds: int) -> str:
    """Return a time as Pulsar writes it: UTC, without trailing zeros of the fraction."""
    moment = _EPOCH + timedelta(milliseconds=min(milliseconds, WALL_MAX))
    text = moment.strftime("%Y-%m-%dT%H:%M:%S").rjust(19, "0")
    fraction = f"{milliseconds % 1000:03}".rstrip("0") if milliseconds <= WALL_MAX else ""
    return f"{text}.{fraction}Z" if fraction else f"{text}Z"


def received_head(about: Mapping[str, Any]) -> bytes:
    """Return the JSON of a message up to its payload; ``about`` is its other fields."""
    return compact(about)[:-1].encode(errors="replace") + b',"payload":"'


RECEIVED_END: Final = b'"}'


async def encode_payload(payload: bytes, pause: Pause) -> AsyncIterator[bytes]:
    """Yield a payload in base64, in pieces."""
    for at in range(0, len(payload), PIECE_BYTES):
        yield b64encode(payload[at : at + PIECE_BYTES])
        if len(payload) > PIECE_BYTES:
            await pause()


def encryption_context(metadata: MessageMetadata) -> dict[str, Any]:
    """Return the encryptionContext of a message whose client decrypts it."""
    keys = {
        each.key: {
            "keyValue": b64encode(each.value).decode(),
            "metadata": {pair.key: pair.value for pair in each.metadata},
        }
        for each in metadata.encryption_keys
    }
    names = {number: name for name, number in _COMPRESSIONS.items()}
    found: dict[str, Any] = {
        "keys": keys,
        "param": b64encode(metadata.encryption_param).decode(),
        "algorithm": metadata.encryption_algo,
        "compressionType": names.get(metadata.compression, "NONE"),
        "uncompressedMessageSize": metadata.uncompressed_size,
    }
    if metadata.HasField("num_messages_in_batch"):
        found["batchSize"] = metadata.num_messages_in_batch
    return found
