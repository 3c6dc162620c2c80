"""Schema compatibility: strategies, types, and Avro's rules compared with another library."""

import io
import json
import random
from typing import Any

import fastavro
import pytest
from fastavro.read import SchemaResolutionError
from fastavro.utils import generate_many
from google.protobuf.message_factory import GetMessageClass
from hypothesis import given, settings
from hypothesis import strategies as st

from pulsarbox.config.sections.client_policy_settings import SCHEMA_STRATEGIES as STRATEGIES
from pulsarbox.errors import IncompatibleSchema
from pulsarbox.protocol.PulsarApi_pb2 import Schema
from pulsarbox.protocol.schema import native_definition
from pulsarbox.protocol.schema.avro import definition as avro_definition
from pulsarbox.protocol.schema.avro.resolution import mismatch
from pulsarbox.protocol.schema.compatibility import check, check_consumer
from pulsarbox.protocol.schema.steps import completed
from tests.tools.campaigns import examples
from tests.unit.protocol.schema.schemas import avro, field, json_schema, native, of_type, pair, record

ONE = record("A", field("a"))
MORE = record("A", field("a"), field("b"))
MORE_WITH_DEFAULT = record("A", field("a"), field("b", default=0))
NOTHING = record("A")


def passes(versions: list[Schema], new: Schema) -> set[str]:
    """The strategies under which the new schema is compatible."""
    found = set()
    for strategy in STRATEGIES:
        try:
            check(versions, new, strategy)
        except IncompatibleSchema:
            continue
        found.add(strategy)
    return found


EVERY = set(STRATEGIES)
BACKWARD = {"BACKWARD", "BACKWARD_TRANSITIVE", "ALWAYS_COMPATIBLE"}
FORWARD = {"FORWARD", "FORWARD_TRANSITIVE", "ALWAYS_COMPATIBLE"}
CHECKED = EVERY - {"ALWAYS_INCOMPATIBLE"}


@pytest.mark.parametrize("kind", [avro, json_schema, lambda told: of_type("PROTOBUF", json.dumps(told).encode())])
def test_of_records(kind: Any) -> None:
    assert passes([], kind(ONE)) == EVERY, "the first may be anything"
    assert passes([kind(ONE)], kind(MORE_WITH_DEFAULT)) == CHECKED
    assert passes([kind(ONE)], kind(MORE)) == FORWARD, "the old one skips what it does not know"
    assert passes([kind(MORE)], kind(ONE)) == BACKWARD
    assert passes([kind(ONE)], kind(record("A", field("a", "string")))) == {"ALWAYS_COMPATIBLE"}
    assert passes([kind(ONE)], kind(record("A", field("a", "long")))) == BACKWARD, "an int is read as a long"
    assert passes([kind(ONE)], kind(record("B", field("a")))) == CHECKED, "records are read by their fields"
    assert passes([kind(ONE)], kind(record("B", field("a"), field("b")))) == FORWARD
    within = [record("A", field("a", record(name, field("b")))) for name in "CD"]
    assert passes([kind(within[0])], kind(within[1])) == CHECKED
    maybe = [record("A", field("a", ["null", record(name, field("b"))])) for name in "CD"]
    assert passes([kind(maybe[0])], kind(maybe[1])) == CHECKED
    colours = [record("A", field("a", {"type": "enum", "name": name, "symbols": ["X"]})) for name in "EF"]
    assert passes([kind(colours[0])], kind(colours[1])) == {"ALWAYS_COMPATIBLE"}, "another enum is another thing"


def test_of_the_newest_or_of_all() -> None:
    versions = [avro(ONE), avro(NOTHING)]
    assert passes(versions, avro(MORE_WITH_DEFAULT)) == FORWARD - {"FORWARD_TRANSITIVE"} | {"FORWARD_TRANSITIVE"}
    back = [avro(record("A", field("a", "string", default=""))), avro(NOTHING)]
    assert passes(back, avro(record("A", field("a", default=0)))) == {
        *("BACKWARD", "FORWARD", "FULL", "ALWAYS_COMPATIBLE")
    }, "the newest has no such field, the one before has it with another type"


def test_the_same_again() -> None:
    assert passes([avro(ONE)], avro(ONE)) == EVERY, "of the newest nothing is asked"
    assert passes([of_type("STRING")], of_type("STRING")) == EVERY


def test_of_other_types() -> None:
    for old, new in (
        (avro(ONE), json_schema(ONE)),
        (of_type("STRING"), of_type("INT32")),
        (native("A"), avro(ONE)),
        (of_type("STRING"), avro("string")),
    ):
        assert passes([old], new) == {"ALWAYS_COMPATIBLE"}
    with pytest.raises(IncompatibleSchema, match="exists schema type STRING, new schema type INT32"):
        check([of_type("STRING")], of_type("INT32"), "FULL")
    assert passes([of_type("INT8"), of_type("STRING")], of_type("STRING")) == EVERY - {
        *("BACKWARD_TRANSITIVE", "FORWARD_TRANSITIVE", "FULL_TRANSITIVE")
    }


def test_of_messages() -> None:
    assert passes([native("A", "a")], native("A", "b", "c")) == CHECKED, "Protobuf itself looks after fields"
    with pytest.raises(IncompatibleSchema, match="root message change is not allowed under the 'FULL' strategy"):
        check([native("A")], native("B"), "FULL")


def test_of_pairs() -> None:
    text = of_type("STRING")
    assert passes([pair(avro(ONE), text)], pair(avro(MORE_WITH_DEFAULT), text)) == CHECKED
    assert passes([pair(text, avro(ONE))], pair(text, avro(MORE))) == FORWARD
    assert passes([pair(text, text)], pair(text, avro("string"))) == {"ALWAYS_COMPATIBLE"}
    assert passes([pair(avro(ONE), avro(ONE))], pair(avro(MORE), avro(NOTHING))) == FORWARD - {"FORWARD"} - {
        "FORWARD_TRANSITIVE"
    }


def test_of_a_definition_that_is_none() -> None:
    assert passes([of_type("JSON", b'{"type":"object"}')], json_schema(ONE)) == {"ALWAYS_COMPATIBLE"}


def test_what_is_wrong_is_said() -> None:
    old, new = avro(ONE), avro(record("A", field("a", "string"), field("b")))
    with pytest.raises(IncompatibleSchema) as caught:
        check([old], new, "BACKWARD")
    text = str(caught.value)
    assert "strategy BACKWARD: the new schema cannot read data written with the old one" in text
    assert text.endswith(": type mismatch at /fields/0/type: reader type: string not compatible with writer type: int")
    with pytest.raises(IncompatibleSchema, match="reader field missing default value at /fields/1: b"):
        check([old], avro(MORE), "BACKWARD")
    with pytest.raises(IncompatibleSchema, match="the old schema cannot read data written with the new one"):
        check([old], new, "FORWARD")


def consumer_may(versions: list[Schema], new: Schema) -> set[str]:
    found = set()
    for strategy in STRATEGIES:
        try:
            check_consumer(versions, new, strategy)
        except IncompatibleSchema:
            continue
        found.add(strategy)
    return found


def test_of_consumers() -> None:
    """Consumers only read: strategies that check the newest version require only that it is readable."""
    assert consumer_may([avro(MORE)], avro(ONE)) == {
        *("ALWAYS_COMPATIBLE", "BACKWARD", "BACKWARD_TRANSITIVE", "FORWARD", "FORWARD_TRANSITIVE", "FULL")
    }
    assert consumer_may([avro(ONE)], avro(MORE)) == {"ALWAYS_COMPATIBLE"}
    assert consumer_may([avro(record("A", field("a", "string"))), avro(ONE)], avro(ONE)) == {
        *("ALWAYS_COMPATIBLE", "ALWAYS_INCOMPATIBLE", "BACKWARD", "FORWARD", "FORWARD_TRANSITIVE", "FULL")
    }


# Avro rules, compared with another library ----------------------------------------------------------------------------

PRIMITIVES = ["null", "boolean", "int", "long", "float", "double", "bytes", "string"]
simple = st.one_of(
    st.sampled_from(PRIMITIVES),
    st.builds(
        lambda symbols: {"type": "enum", "name": "E", "symbols": symbols},
        st.lists(st.sampled_from("XYZ"), min_size=1, unique=True),
    ),
    st.builds(lambda size: {"type": "fixed", "name": "F", "size": size}, st.integers(1, 2)),
    st.builds(list, st.lists(st.sampled_from(PRIMITIVES), min_size=1, max_size=3, unique=True)),
)
kinds = st.one_of(
    simple,
    st.builds(lambda items: {"type": "array", "items": items}, simple),
    st.builds(lambda values: {"type": "map", "values": values}, simple),
)
DEFAULTS = {"null": None, "boolean": False, "int": 0, "long": 0, "float": 0.5, "double": 0.5, "bytes": "", "string": ""}


@st.composite
def records(draw: st.DrawFn) -> dict[str, Any]:
    """A record whose named types have a different name in each field, with the same names in every record."""
    fields = []
    for name in draw(st.lists(st.sampled_from("abc"), unique=True)):
        kind = json.loads(json.dumps(draw(kinds)).replace('"E"', f'"E{name}"').replace('"F"', f'"F{name}"'))
        made = field(name, kind)
        if isinstance(kind, str) and draw(st.booleans()):
            made["default"] = DEFAULTS[kind]
        fields.append(made)
    return record("R", *fields)


def _in_ascii(written: Any) -> Any:
    """Replace bytes by ASCII: the rules allow reading bytes as a string, so they must be valid text."""
    if isinstance(written, bytes):
        return b"x" * len(written)
    if isinstance(written, list):
        return [_in_ascii(each) for each in written]
    return {name: _in_ascii(each) for name, each in written.items()} if isinstance(written, dict) else written


def can_read_all(reader: dict[str, Any], writer: dict[str, Any]) -> bool:
    random.seed(0)  # seed of fastavro's generated values
    for written in generate_many(writer, 25):
        stream = io.BytesIO()
        fastavro.schemaless_writer(stream, writer, _in_ascii(written))
        stream.seek(0)
        try:
            fastavro.schemaless_reader(stream, writer, reader)
        except SchemaResolutionError:
            return False
    return True


@settings(max_examples=examples(100), deadline=None)
@given(writer=records(), reader=records())
def test_what_is_called_readable_is_read_and_nothing_else(writer: dict[str, Any], reader: dict[str, Any]) -> None:
    parsed = [avro_definition.parse(json.dumps(each).encode()).root for each in (reader, writer)]
    trouble = completed(mismatch(*parsed))
    if not trouble:
        assert can_read_all(reader, writer)
    elif "array" not in str(writer) and "map" not in str(writer):  # may be empty, and then any reader accepts them
        assert not can_read_all(reader, writer), trouble


# Protobuf rules, compared with its library ----------------------------------------------------------------------------

some_fields = st.lists(st.sampled_from("abcdef"), max_size=5, unique=True)


@given(st.sampled_from("AB"), some_fields, st.sampled_from("AB"), some_fields, st.lists(st.integers(0, 1 << 20)))
def test_what_fits_is_read_by_protobuf_itself(
    old_name: str, old_fields: list[str], new_name: str, new_fields: list[str], numbers: list[int]
) -> None:
    old, new = native(old_name, *old_fields), native(new_name, *new_fields)
    fits = old_name == new_name
    assert passes([old], new) == (EVERY if old == new else CHECKED if fits else {"ALWAYS_COMPATIBLE"})
    if not fits:
        return
    written = GetMessageClass(native_definition.parse(old.schema_data))()
    for name, number in zip(old_fields, numbers, strict=False):
        setattr(written, name, number)
    read = GetMessageClass(native_definition.parse(new.schema_data)).FromString(written.SerializeToString())
    for old_field, new_field in zip(old_fields, new_fields, strict=False):  # matched by number, not by name
        assert getattr(read, new_field) == getattr(written, old_field)
    assert read.SerializeToString() == written.SerializeToString()  # unknown fields are preserved
