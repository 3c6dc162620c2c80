"""Attacks with schemas: unions that are expensive to compare; large, deep or endlessly expanding definitions."""

import json
from collections.abc import Iterator
from typing import Any, Final

from pulsarbox.protocol.commands import encode_frame, parse_command
from pulsarbox.protocol.frames import FrameDecoder
from pulsarbox.protocol.PulsarApi_pb2 import (
    BaseCommand,
    CommandGetOrCreateSchema,
    CommandProducer,
    CommandSubscribe,
    Schema,
)
from tests.attack.victim import Broken, Victim, send
from tests.attack.web import with_body
from tests.attack.wire import hello, until
from tests.unit.protocol.schema.schemas import field, record
from tests.unit.protocol.schema.worst import chain, doubling, nested_unions, text, union_of_records

_BRANCHES: Final = 200
_ANSWERS: Final = (
    BaseCommand.PRODUCER_SUCCESS,
    BaseCommand.GET_OR_CREATE_SCHEMA_RESPONSE,
    BaseCommand.SUCCESS,
    BaseCommand.ERROR,
)


def _definitions() -> Iterator[bytes]:
    """Yield definitions to compare with a union of ``_BRANCHES`` records, none of which has their fields."""
    unlike = [record(f"U{i}", field("b"), field("c")) for i in range(_BRANCHES)]
    yield text(union_of_records(_BRANCHES, "y", names="S"))
    yield text(record("Envelope", field("event", unlike + union_of_records(_BRANCHES, "x")["fields"][0]["type"])))
    yield text(record("Envelope", field("event", ["null", *unlike])))
    yield text(record("Envelope", field("event", nested_unions(8, 6, "z"))))
    yield text(record("Envelope", field("event", doubling(40))))
    yield text(record("Envelope", field("event", chain(2000, "int"))))
    yield text(record("Envelope", *(field(f"f{i}", ["null", "string"], default=None) for i in range(2900))))
    yield text({"type": "enum", "name": "E", "symbols": [f"s{i}" for i in range(13_000)]})
    yield text(record("Envelope", field("event", default={f"{i:x}": [] for i in range(8000)})))
    yield text(record("Envelope", field("event", default=[1.5] * 18_000)))
    yield b"[" * 200_000
    yield b"[" + b"{}," * 200_000 + b"{}]"
    yield b'{"type":"array","items":' * 900 + b'"int"' + b"}" * 900
    yield b"[" + b"9" * 1_000_000 + b"]"
    yield b'"' + b"\\u00e9" * 800_000 + b'"'


def _commands(schema: Schema) -> Iterator[bytes]:
    topic = "schemas"
    producer = CommandProducer(topic=topic, producer_id=1, request_id=1, schema=schema)
    yield encode_frame(BaseCommand(type=BaseCommand.PRODUCER, producer=producer))
    created: Any = BaseCommand(type=BaseCommand.GET_OR_CREATE_SCHEMA)
    created.getOrCreateSchema.CopyFrom(CommandGetOrCreateSchema(topic=topic, request_id=2, schema=schema))
    yield encode_frame(created)
    subscribe = CommandSubscribe(
        topic=topic, subscription="s", subType=CommandSubscribe.Shared, consumer_id=1, request_id=3, schema=schema
    )
    yield encode_frame(BaseCommand(type=BaseCommand.SUBSCRIBE, subscribe=subscribe))


def schemas(victim: Victim) -> str:
    """Every command and request with a schema is answered; the broker's turns stay short, and its memory small."""
    base = "/admin/v2/schemas/public/default/schemas"
    first = {"type": "AVRO", "schema": text(union_of_records(_BRANCHES, "x")).decode()}
    told = with_body(victim, "POST", f"{base}/schema", json.dumps(first).encode())
    if told[9:10] != b"2":
        raise Broken(f"the first schema is refused: {told[:300]!r}")
    refused = answered = 0
    for number in range(victim.times(20)):
        for known in _definitions():
            definition = known + b" " * number  # otherwise the broker has cached the result
            answered, refused = answered + 3, refused + _over_the_wire(victim, definition)
            for path in ("schema", "compatibility", "version"):
                body = {"type": "AVRO", "schema": definition.decode()}
                told = with_body(victim, "POST", f"{base}/{path}", json.dumps(body).encode()[: 1 << 20])
                if told[9:10] not in (b"2", b"4"):
                    raise Broken(f"POST {path} of {definition[:60]!r} is answered with {told[:300]!r}")
        victim.good.gets_on()
    return f"{answered} commands, {refused} refused"


def _over_the_wire(victim: Victim, definition: bytes) -> int:
    """Send one schema by all commands; return how many are rejected."""
    schema = Schema(name="s", type=Schema.Avro, schema_data=definition)
    decoder = FrameDecoder(10 << 20)
    found: list[Any] = []
    with victim.connect(victim.doors[0]) as connection:
        send(connection, hello(victim.token))
        until(connection, BaseCommand.CONNECTED)  # frames before that are limited to a smaller size
        send(connection, b"".join(_commands(schema)))
        while len(found) < 3:
            part = connection.recv(65536)
            if not part:
                raise Broken(f"the connection is closed on {definition[:60]!r}")
            commands = [parse_command(data) for data, _ in decoder.feed(part)]
            found += [each for each in commands if each.type in _ANSWERS]
    return sum(each.type == BaseCommand.ERROR or bool(each.getOrCreateSchemaResponse.error_code) for each in found)
