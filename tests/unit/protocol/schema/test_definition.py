"""Schema definitions: invalid ones, and equality."""

import json
from base64 import b64encode

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet

from pulsarbox.errors import IncompatibleSchema, InvalidSchema
from pulsarbox.protocol.PulsarApi_pb2 import Schema
from pulsarbox.protocol.schema import definition, key_value, native_definition
from pulsarbox.protocol.schema.types import BYTES, SCHEMA_TYPES, spelling
from tests.unit.protocol.schema.schemas import avro, json_schema, native, of_type, pair, record


def test_what_is_a_definition() -> None:
    for each in (
        avro(record("A", {"name": "a", "type": "int"})),
        avro("string"),
        avro({"type": "enum", "name": "E", "symbols": ["X"]}),
        avro(record("Outer$Inner", {"name": "$a_1", "type": "int"})),
        avro(record("A", {"name": "a", "type": {"type": "long", "logicalType": "nobody-knows-it"}})),
        avro(record("A", {"name": "a", "type": "int", "default": "not an int"})),
        avro(record("Ünï", {"name": "ä", "type": "int"})),
        json_schema(["null", "string"]),
        native("Sensor"),
        of_type("STRING"),
        of_type("STRING", b"null"),
        of_type("INT32"),
        Schema(name="", type=BYTES, schema_data=b"anything"),
        of_type("EXTERNAL", b"anything"),
        pair(avro("int"), of_type("STRING")),
    ):
        definition.check(each)


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        (of_type("AVRO", b"{"), "Invalid schema definition data for AVRO schema: not an Avro definition"),
        (of_type("AVRO", b"\xff"), "Invalid schema definition data for AVRO schema"),
        (of_type("AVRO", b'"nothing"'), "not an Avro definition"),
        (of_type("AVRO", b"7"), "not an Avro definition"),
        (of_type("AVRO", b"[" * 100_000), "not an Avro definition"),
        (of_type("AVRO", b'{"type":"array","items":' * 400 + b'"int"' + b"}" * 400), "not an Avro definition"),
        (avro(record("A", {"name": "a", "type": "B"})), "not an Avro definition"),
        (avro(record("1A")), "'1A' is not a valid name"),
        (avro(record("A", {"name": "a b", "type": "int"})), "'a b' is not a valid name"),
        (avro({"type": "array", "items": record("A", {"name": "-", "type": "int"})}), "'-' is not a valid name"),
        (avro(["null", "string"]), "typed [UNION] is not supported"),
        (of_type("JSON", b'{"type":"object","properties":{}}'), "Invalid schema definition data for JSON schema"),
        (of_type("PROTOBUF", b""), "Invalid schema definition data for PROTOBUF schema"),
        (of_type("INT32", b"x"), "Invalid schema definition data for INT32 schema: it must be empty"),
        (of_type("STRING", b"x"), "Invalid schema definition data for STRING schema: it must be empty"),
        (of_type("PROTOBUF_NATIVE", b"x"), "it must be a JSON object with fileDescriptorSet"),
        (of_type("PROTOBUF_NATIVE", b"[]"), "it must be a JSON object with fileDescriptorSet"),
        (of_type("KEY_VALUE", b"\0\0\0\7abc"), "expected the definitions of a key and a value"),
        (pair(of_type("INT8", b"?"), of_type("STRING")), "Invalid schema definition data for INT8 schema"),
        (Schema(name="", type=Schema.AutoConsume, schema_data=b""), "AutoConsume is a client-side schema type"),
    ],
)
def test_what_is_none(schema: Schema, says: str) -> None:
    with pytest.raises(InvalidSchema) as caught:
        definition.check(schema)
    assert says in str(caught.value) and len(str(caught.value)) < 500
    assert caught.value.http_status == 422 and caught.value.server_error == IncompatibleSchema("").server_error


def test_a_message_that_is_meant() -> None:
    whole = FileDescriptorSet(
        file=[
            FileDescriptorProto(
                name="b.proto",
                dependency=["a.proto"],
                message_type=[{"name": "B", "field": [{"name": "a", "number": 1, "type": 11, "type_name": ".A"}]}],  # type: ignore[list-item]
            ),
            FileDescriptorProto(name="a.proto", message_type=[{"name": "A"}]),  # type: ignore[list-item]
        ]
    )
    told = {
        "fileDescriptorSet": b64encode(whole.SerializeToString()).decode(),
        "rootMessageTypeName": "B",
        "rootFileDescriptorName": "b.proto",
    }
    found = native_definition.parse(json.dumps(told).encode())
    inner = found.fields[0].message_type
    assert found.full_name == "B" and inner is not None and inner.full_name == "A"
    alone = FileDescriptorSet(file=whole.file[:1])
    circle = FileDescriptorSet(file=[*whole.file[:1], FileDescriptorProto(name="a.proto", dependency=["b.proto"])])
    for changed, says in (
        ({"rootMessageTypeName": "C"}, "does not define the message 'C'"),
        ({"rootMessageTypeName": 7}, "does not define the message"),
        ({"rootFileDescriptorName": "c.proto"}, "does not contain 'c.proto'"),
        ({"fileDescriptorSet": "!"}, "it must be a JSON object"),
        ({"fileDescriptorSet": b64encode(b"\xff\xff").decode()}, "it must be a JSON object"),
        ({"fileDescriptorSet": b64encode(alone.SerializeToString()).decode()}, "does not define the message 'B'"),
        ({"fileDescriptorSet": b64encode(circle.SerializeToString()).decode()}, "need one another"),
    ):
        definition_text = json.dumps({**told, **changed}).encode()
        with pytest.raises(InvalidSchema, match=says):
            native_definition.parse(definition_text)


def test_what_is_the_same() -> None:
    one = {"type": "record", "name": "A", "namespace": "n", "fields": [{"name": "a", "type": "int"}]}
    also = {
        "doc": "of many words",
        "fields": [{"doc": "more", "type": {"type": "int"}, "name": "a"}],
        "name": "n.A",
        "aliases": ["B"],
        "type": "record",
    }
    assert definition.same(avro(one), avro(also))
    assert definition.same(of_type("AVRO", json.dumps(one, indent=4).encode()), avro(one))
    for other in (
        {**one, "name": "B"},
        {**one, "namespace": "m"},
        {**one, "fields": [{"name": "a", "type": "int", "default": 1}]},
        {**one, "fields": [{"name": "a", "type": {"type": "int", "logicalType": "date"}}]},
        {**one, "fields": [{"name": "a", "type": ["int"]}]},
        {**one, "fields": []},
    ):
        assert not definition.same(avro(one), avro(other))
    assert not definition.same(avro(one), json_schema(one))
    assert definition.same(of_type("INT8"), of_type("INT8")) and not definition.same(of_type("INT8"), of_type("INT16"))
    assert not definition.same(of_type("AVRO", b"no definition"), avro(one))


def test_key_and_value() -> None:
    key, value = key_value.split(pair(avro("int"), of_type("STRING")))
    assert (key.type, key.schema_data, value.type, value.schema_data) == (Schema.Avro, b'"int"', Schema.String, b"")
    bare = Schema(name="", type=Schema.Type.KeyValue, schema_data=key_value.join(b"a", b""))
    assert [(each.type, each.schema_data) for each in key_value.split(bare)] == [(BYTES, b"a"), (BYTES, b"")]
    assert key_value.parts(b"\xff\xff\xff\xff\0\0\0\1x") == (b"", b"x"), "-1 stands for none with some clients"
    made = pair(avro("int"), of_type("STRING"))
    made.properties.add(key="key.schema.properties", value='{"a":"b"}')
    assert [(each.key, each.value) for each in key_value.split(made)[0].properties] == [("a", "b")]
    made.properties[-1].value = "{"
    assert not key_value.split(made)[0].properties
    made.properties.add(key="value.schema.type", value="WHAT")
    with pytest.raises(InvalidSchema, match="unknown type 'WHAT' of the value"):
        key_value.split(made)


def test_words_of_types() -> None:
    assert all(spelling(number) == name for name, number in SCHEMA_TYPES.items())
    assert spelling(Schema.AutoConsume) == "NONE"
