"""The JSON of messages and results."""

import json
from base64 import b64encode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarbox.protocol.PulsarApi_pb2 import MessageIdData, MessageMetadata
from pulsarbox.server.websocket.message_json import (
    BAD_PAYLOAD,
    ELEMENTS_MAX,
    JSON_MAX,
    NOT_JSON,
    PIECE_BYTES,
    InvalidMessage,
    OutgoingMessage,
    decode_payload,
    encode_payload,
    encryption_context,
    not_sent,
    parse_message,
    parse_object,
    received_head,
    sent,
    timestamp,
)

PAYLOAD = "aGVsbG8="


async def no_pause() -> None:
    """Continue at once."""


def message(**fields: Any) -> OutgoingMessage:
    return parse_message(json.dumps({"payload": PAYLOAD, **fields}))


def refusal(text: str) -> InvalidMessage:
    with pytest.raises(InvalidMessage) as found:
        parse_message(text)
    return found.value


def test_a_message() -> None:
    assert message(unknown=[1]) == OutgoingMessage(PAYLOAD)


def test_all_fields() -> None:
    found = message(
        context="c",
        properties={"a": "b"},
        key="k",
        replicationClusters=["standalone"],
        eventTime="2020-01-02T03:04:05.678+01:00",
        deliverAt=5,
        deliverAfterMs=6,
        encryptionParam="AAA=",
        compressionType="LZ4",
        uncompressedMessageSize=9,
        sequenceId=7,
        disableReplication=False,
    )
    expected = OutgoingMessage(PAYLOAD, "c", {"a": "b"}, "k", ("standalone",), 1577930645678, 5, 6, b"\0\0", 1, 9)
    assert found == expected


def test_numbers_for_text_and_text_for_numbers() -> None:
    found = message(key=5, context=7, properties={"n": 3, "b": True}, deliverAt="123", deliverAfterMs=1.5)
    assert (found.key, found.context, found.properties) == ("5", "7", {"n": "3", "b": "true"})
    assert (found.deliver_at, found.deliver_after) == (123, 1)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("nojson", NOT_JSON),
        ("", NOT_JSON),
        ("[]", NOT_JSON),
        ("null", NOT_JSON),
        ("[" * 5000, NOT_JSON),
        (json.dumps({"payload": PAYLOAD, "properties": []}), NOT_JSON),
        (json.dumps({"payload": PAYLOAD, "properties": {"a": None}}), NOT_JSON),
        (json.dumps({"payload": PAYLOAD, "properties": {"a": {}}}), NOT_JSON),
        (json.dumps({"payload": PAYLOAD, "replicationClusters": "a"}), NOT_JSON),
        (json.dumps({"payload": PAYLOAD, "deliverAfterMs": "x"}), NOT_JSON),
        (json.dumps({"payload": PAYLOAD, "deliverAt": 1e300}), NOT_JSON),
        (json.dumps({"payload": PAYLOAD, "deliverAt": 2**70}), NOT_JSON),
        (json.dumps({"payload": PAYLOAD, "compressionType": "FOO"}), NOT_JSON),
        (json.dumps({"payload": PAYLOAD, "key": "\ud800"}), NOT_JSON),
        ("{}", BAD_PAYLOAD),
        (json.dumps({"payload": None}), BAD_PAYLOAD),
        (json.dumps({"payload": PAYLOAD, "eventTime": "yesterday"}), BAD_PAYLOAD),
        (json.dumps({"payload": PAYLOAD, "eventTime": "2020-01-02T03:04:05"}), BAD_PAYLOAD),
        (json.dumps({"payload": PAYLOAD, "encryptionParam": "*"}), BAD_PAYLOAD),
    ],
)
def test_invalid_messages(text: str, code: int) -> None:
    assert refusal(text).code == code


def test_the_context_is_in_the_result() -> None:
    assert refusal(json.dumps({"payload": PAYLOAD, "context": "c", "eventTime": "x"})).context == "c"


def test_many_elements_are_refused() -> None:
    text = json.dumps({"payload": PAYLOAD, "properties": {str(n): "" for n in range(ELEMENTS_MAX // 2)}})
    with pytest.raises(ValueError, match=f"more than {ELEMENTS_MAX} elements"):
        parse_object(text)


@given(st.text(max_size=50) | st.recursive(st.none() | st.text(max_size=5), st.lists).map(json.dumps))
def test_no_text_breaks_the_parser(text: str) -> None:
    with pytest.raises(InvalidMessage):
        parse_message(text)


@pytest.mark.parametrize("size", [0, 1, 2, 3, PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1, 3 * PIECE_BYTES + 5])
async def test_payloads_in_pieces(size: int) -> None:
    payload = bytes(range(256)) * (size // 256 + 1)
    payload = payload[:size]
    text = b"".join([piece async for piece in encode_payload(payload, no_pause)])
    assert text == b64encode(payload)
    assert await decode_payload(OutgoingMessage(text.decode()), no_pause) == payload
    assert await decode_payload(OutgoingMessage(text.decode().rstrip("=")), no_pause) == payload


@pytest.mark.parametrize(
    "text", ["***", "aGVsbG8-", "aGVs\nbG8=", "5", "A" * (PIECE_BYTES - 1) + "=" + "AAAA", "AA==AAAA"]
)
async def test_invalid_payloads(text: str) -> None:
    with pytest.raises(InvalidMessage, match="base64"):
        await decode_payload(OutgoingMessage(text), no_pause)


def test_results() -> None:
    where = MessageIdData(ledgerId=21, entryId=0, batch_size=0)
    expected = {"result": "ok", "messageId": "CBUQADAA", "errorCode": 0, "schemaVersion": 0}
    assert json.loads(sent(where, None)) == expected
    assert json.loads(sent(where, "c")) == {**expected, "context": "c"}
    found = json.loads(not_sent(8, 'no "room"', "\ud800"))
    assert found["result"] == "send-error:8"
    assert found["errorMsg"] == 'no "room"'


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (0, "1970-01-01T00:00:00Z"),
        (1795416975080, "2026-11-23T06:56:15.08Z"),
        (1795416975935, "2026-11-23T06:56:15.935Z"),
        (2**64 - 1, "9999-12-31T23:59:59Z"),
    ],
)
def test_timestamps(milliseconds: int, text: str) -> None:
    assert timestamp(milliseconds) == text


def test_the_head_of_a_message() -> None:
    assert json.loads(received_head({"a": "ü\ud800"}) + b'x"}') == {"a": "ü?", "payload": "x"}


def test_the_encryption_context() -> None:
    metadata = MessageMetadata(encryption_param=b"p", encryption_algo="a", compression="ZSTD", uncompressed_size=5)
    key = metadata.encryption_keys.add(key="k", value=b"v")
    key.metadata.add(key="m", value="n")
    metadata.num_messages_in_batch = 2
    assert encryption_context(metadata) == {
        "keys": {"k": {"keyValue": "dg==", "metadata": {"m": "n"}}},
        "param": "cA==",
        "algorithm": "a",
        "compressionType": "ZSTD",
        "uncompressedMessageSize": 5,
        "batchSize": 2,
    }


LARGE = "A" * (PIECE_BYTES + 4)


@pytest.mark.parametrize("first", [{}, {"properties": {"payload": "x"}}])
async def test_only_the_payload_may_be_larger_than_the_parser_is_given(first: dict[str, Any]) -> None:
    payload = bytes(range(256)) * (JSON_MAX // 128) + b"=="
    text = json.dumps({**first, "payload": b64encode(payload).decode()})
    escaped = text.replace("/", "\\/").replace("+", "\\u002b").replace("=", "\\u003d")
    for each in (text, escaped):
        assert await decode_payload(parse_message(each), no_pause) == payload
    wrong = parse_message(text.replace("+", "\\\\"))
    with pytest.raises(InvalidMessage, match="not base64"):
        await decode_payload(wrong, no_pause)
    for other in (
        json.dumps({"payload": PAYLOAD, "key": "k" * JSON_MAX}),
        json.dumps({"payload": "é" * JSON_MAX}, ensure_ascii=False),
        text.replace("{", '{"key": "' + "k" * JSON_MAX + '",', 1),
    ):
        assert f"more than {JSON_MAX} characters" in str(refusal(other))


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"payload": LARGE, "key": "k"}),
        json.dumps({"key": "k", "payload": LARGE}, indent=1),
        json.dumps({"properties": {"payload": "x"}, "key": "k", "payload": LARGE}),
        json.dumps({"context": '"payload":"x"', "key": "k", "payload": LARGE}),
        json.dumps({"properties": {"payload": LARGE}, "key": "k", "payload": LARGE}),
        json.dumps({"payload": LARGE, "key": "k"}).replace("AAAA", "\\u0041AAA", 1),
    ],
)
def test_large_messages_are_parsed_as_small_ones(text: str) -> None:
    found = parse_message(text)
    assert (found.payload, found.key) == (LARGE, "k")


@pytest.mark.parametrize(
    "text",
    [
        '{"payload":"' + LARGE,
        '{"payload":"' + LARGE + '"',
        '{"payload' + LARGE,
        LARGE,
        '"payload"' + LARGE,
        "{" + LARGE + '"payload":""}',
    ],
)
def test_large_messages_may_be_invalid(text: str) -> None:
    assert refusal(text).code == NOT_JSON
