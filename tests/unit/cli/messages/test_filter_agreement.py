"""A filter selects the same messages in commands, in the box's jobs and in Spark."""

import json
from typing import Any

import pytest

from pulsarbox.broker.replay.entry_messages import InspectedMessage, open_entry
from pulsarbox.cli.messages.message_filter import ReceivedView, parse_filter
from pulsarbox.cli.messages.schema_decoding import Decoding
from pulsarbox.client.client import Client
from pulsarbox.protocol.commands import encode_payload
from pulsarbox.protocol.dead_letters.message_filter import NAMES
from pulsarbox.protocol.dead_letters.message_view import MessageView
from pulsarbox.protocol.message_encoder import Envelope, Outgoing, in_batch, metadata
from pulsarbox.protocol.PulsarApi_pb2 import Schema
from pulsarbox.storage.format import EntryFlag
from pulsarbox.storage.record import Entry
from tests.unit.cli.incoming import PUBLISHED, TOPIC, received
from tests.unit.protocol.schema.schemas import avro, field, of_type, pair, record

VERSION = (7).to_bytes(8, "big")
AVRO = avro(record("Order", field("number")))
SEPARATED = pair(of_type("STRING"), AVRO)
SEPARATED.properties.add(key="kv.encoding.type", value="SEPARATED")
LETTER = [("REAL_TOPIC", "t"), ("REAL_SUBSCRIPTION", "s"), ("REPLAY_COUNT", "2"), ("error", "no order 5")]


class OneSchema(Client):
    """Client of a broker with one schema."""

    def __init__(self, schema: Schema) -> None:
        self.known = schema
        self.warn = lambda text: None

    def schema(self, topic: str, version: bytes | None = None) -> Schema:
        return self.known


def looked(message: Outgoing, schema: Schema, *, batched: bool) -> InspectedMessage:
    """The message from ``received``, as stored by the broker."""
    if batched:
        common = Outgoing(b"", schema_version=message.schema_version)
        data = metadata(common, Envelope("sender", 0, PUBLISHED, messages=2, highest_sequence_id=1))
        own = 1 if message.sequence_id is None else message.sequence_id
        body = b"".join([*in_batch(Outgoing(b"first"), 0), *in_batch(message, own)])
    else:
        data = metadata(message, Envelope("sender", message.sequence_id or 0, PUBLISHED))
        body = message.payload or b""
    flags, count = (int(EntryFlag.BATCH), 2) if batched else (0, 1)
    stored = encode_payload(data, body)
    entry = Entry(12, 7, flags, count, 0, 0, 0, PUBLISHED, PUBLISHED, message.deliver_at, 0, stored)
    return open_entry(entry, TOPIC, {7: schema}, 1 << 20).messages[-1]


def decoding(schema: Schema) -> Decoding:
    found = Decoding()
    found.begin(OneSchema(schema))
    return found


MESSAGES = {
    "json": (Outgoing(b'{"a": [1, {"b": "c"}]}', "k", properties=[("region", "eu")], event_time=5), AVRO),
    "text": (Outgoing(b"plain", sequence_id=9), AVRO),
    "binary": (Outgoing(b"\xff\xfe", "a2V5", key_is_base64=True), AVRO),
    "empty": (Outgoing(b""), AVRO),
    "tombstone": (Outgoing(None, "k"), AVRO),
    "letter": (Outgoing(b'{"a": 1}', properties=[*LETTER, ("ORIGIN_MESSAGE_ID", "1:2:-1")]), AVRO),
    "old letter": (Outgoing(b"x", properties=[("ORIGIN_MESSAGE_IDY_TIME", "1:2:-1"), ("error", "a"), *LETTER]), AVRO),
    "avro": (Outgoing(b"\x0a", schema_version=VERSION, properties=LETTER), AVRO),
    "not as its schema": (Outgoing(b"", schema_version=VERSION), AVRO),
    "separate key": (Outgoing(b"\x0a", "k", schema_version=VERSION), SEPARATED),
    "delayed": (Outgoing(b"1", deliver_at=PUBLISHED + 5), AVRO),
}


def values(message: MessageView) -> dict[str, Any]:
    return {name: read(message) for name, read in NAMES.items()} | {
        "props": message.properties,
        "json": message.decoded,
    }


@pytest.mark.parametrize(
    ("name", "batched"),
    [
        (name, batched)
        for name in MESSAGES
        for batched in (False, True)
        if not (MESSAGES[name][0].deliver_at and batched)
    ],
)
def test_commands_and_jobs_read_the_same_values(name: str, batched: bool) -> None:
    message, schema = MESSAGES[name]
    command = values(ReceivedView(received(message, batched=batched), decoding(schema)))
    assert command == values(looked(message, schema, batched=batched))


def test_the_sequence_id_of_a_message_in_a_batch_counts_from_that_of_the_batch() -> None:
    message = looked(Outgoing(b"x"), AVRO, batched=True)
    message.own.ClearField("sequence_id")
    message.metadata.sequence_id = 40
    assert message.sequence_id == 41


def test_a_filter_reads_the_published_payload_however_it_is_shown() -> None:
    message, schema = MESSAGES["avro"]
    decoder = decoding(schema)
    shown = decoder.readable(received(message))
    assert json.loads(shown.payload or b"") == {"number": 5}
    assert parse_filter("size == 1 and json.number == 5", decoder)(received(message))


@pytest.mark.parametrize(("text", "holds"), [("/no order", True), ("!/no order", False), ("/^plain$", False)])
def test_commands_search_like_jobs(text: str, holds: bool) -> None:
    assert parse_filter(text)(received(MESSAGES["letter"][0])) is holds


def test_patterns_are_those_of_the_box() -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_filter('matches(key, "(?=a)")')
    # Unlike RE2, Python's regular expressions also match $ before the last line feed.
    assert not parse_filter('matches(payload, "^a$")')(received(Outgoing(b"a\n")))
