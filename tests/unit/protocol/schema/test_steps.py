"""Expensive definitions and payloads: bounded steps and memory, and rejection. Measured without a clock."""

import json
from base64 import b64encode
from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet

from pulsarbox.errors import IncompatibleSchema, InvalidSchema
from pulsarbox.protocol.schema import compatibility, key_value, native_definition
from pulsarbox.protocol.schema.avro import definition, reading, validation, writing
from pulsarbox.protocol.schema.avro.resolution import STEPS_MAX, mismatch
from pulsarbox.protocol.schema.compatibility import Versions, checking
from pulsarbox.protocol.schema.decoding import UndecodableError, decoder_of
from pulsarbox.protocol.schema.definition import Definitions
from pulsarbox.protocol.schema.steps import CHUNK, TooManyStepsError, completed
from pulsarbox.protocol.schema.types import DEFINITION_BYTES_MAX
from tests.unit.protocol.schema.schemas import avro, field, of_type, record
from tests.unit.protocol.schema.worst import (
    Work,
    chain,
    doubling,
    growth,
    nested_unions,
    text,
    union_of_records,
    worked,
)

ELEMENTS_STEPS = definition.ELEMENTS_MAX // 20 + 1
"""JSON parser steps for the largest definition: the longest interval between two suspension points."""


def compared(old: Any, new: Any) -> Work:
    """Return the work to compare two parsed definitions."""
    return worked(mismatch(*(definition.parse(text(each)).root for each in (new, old))))


# Comparison -----------------------------------------------------------------------------------------------------------


def test_the_first_mismatch_ends_a_comparison() -> None:
    """The issue's 200 union branches took 20 s and 480 MB; the comparison now ends after the pairs of the first
    branch."""
    found = compared(union_of_records(200, "x"), union_of_records(200, "y", names="S"))
    assert str(found.result).startswith("missing union branch at /fields/0/type/0: reader union lacking writer type")
    assert found.steps < 2000 and found.longest <= 2 * CHUNK


def test_records_of_the_same_name_are_compared_first() -> None:
    old, new = union_of_records(1000, "x"), union_of_records(1000, "x")
    for each in new["fields"][0]["type"]:
        each["fields"].append(field("more", default=0))
    found = compared(old, new)
    assert found.result is None and found.steps < 20_000, "linear where unions grow as they do in practice"
    for each in new["fields"][0]["type"]:
        each["namespace"] = "moved"
    assert compared(old, new).steps < 20_000


def too_long() -> tuple[dict[str, Any], dict[str, Any]]:
    """Two definitions in which each type of one matches only the last types of the other."""
    old, new = (union_of_records(500, "x", names=names) for names in "RS")
    new["fields"][0]["type"] = [record(f"U{i}", field("b"), field("c")) for i in range(500)] + new["fields"][0]["type"]
    return old, new


def test_a_comparison_is_refused_beyond_its_bound() -> None:
    found = compared(*too_long())
    assert isinstance(found.result, TooManyStepsError)
    assert found.steps <= STEPS_MAX + 2 * CHUNK and found.longest <= 2 * CHUNK


def test_pairs_that_were_compared_are_remembered() -> None:
    """Without memoization, each level of unions multiplies the comparisons: 6**16 for 8 levels of 6 branches."""
    found = compared(nested_unions(8, 6, "x"), nested_unions(8, 6, "y"))
    assert found.result is not None and found.steps < 5000


def test_depth_is_no_recursion() -> None:
    old, new = chain(2000, "int"), chain(2000, "string")
    found = compared(record("A", field("a", [*old, {"type": "array", "items": old[-1]["name"]}])), record("A"))
    assert found.result is None
    ends = [record("A", field("u", kind), field("v", kind[-1]["name"])) for kind in (old, new)]
    found = compared(*ends)
    assert "reader union lacking writer type" in str(found.result) and len(str(found.result)) < 300
    assert found.steps < 20 * 2000


def test_aliases_and_symbols_cost_steps() -> None:
    """Aliases and symbols are scanned in loops without suspension points."""
    aliased = record("A", field("a", aliases=[f"x{i}" for i in range(10_000)], default=0))
    records = [record(f"R{i}", field("b")) for i in range(300)]
    many = compared(record("E", field("u", records)), record("E", field("u", aliased)))
    assert many.steps > 300 * 10_000 / 20 and many.longest < 10_000 / 20 + 2 * CHUNK
    enums = [{"type": "enum", "name": "E", "symbols": [f"{tag}{i}" for i in range(10_000)]} for tag in ("s", "t")]
    found = compared(*enums)
    assert found.steps >= 2 * 10_000 / 20 and "and 9995 more" in str(found.result)


def test_all_versions_together_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    most = 50_000
    monkeypatch.setattr(compatibility, "STEPS_MAX", most)
    wide = [avro(record("A", *(field(f"f{j}x{i}", default=0) for j in range(400)))) for i in range(60)]
    versions = Versions([each.type for each in wide], lambda index: wide[index])
    found = worked(checking(versions, wide[0], "FULL_TRANSITIVE", Definitions()))
    assert isinstance(found.result, IncompatibleSchema) and "60 versions" in str(found.result)
    assert most / 2 < found.steps <= most


def test_a_refusal_says_what_to_do() -> None:
    old, new = too_long()
    found = worked(checking(Versions.of([avro(old)]), avro(new), "BACKWARD", Definitions()))
    assert isinstance(found.result, IncompatibleSchema) and found.result.server_error == 18
    assert f"exceeds the limit of {STEPS_MAX} steps" in str(found.result) and "give the records of a union" in str(
        found.result
    )


# Definitions ----------------------------------------------------------------------------------------------------------


def wide_record(count: int) -> dict[str, Any]:
    return record("A", *(field(f"f{i}", ["null", "string"], default=None) for i in range(count)))


@pytest.mark.parametrize(
    "made",
    [
        wide_record,
        lambda count: {"type": "enum", "name": "E", "symbols": [f"s{i}" for i in range(count)]},
        lambda count: [record(f"R{i}") for i in range(count)],
        lambda count: [*(record(f"R{i}") for i in range(count)), {"type": "map", "values": f"R{count - 1}"}],
        lambda count: chain(count, "int"),
        lambda count: record("A", *(field(f"f{i}", default={"a": [i]}) for i in range(count))),
    ],
)
def test_parsing_is_linear(made: Any) -> None:
    assert growth(lambda count: worked(definition.parsing(text(made(count)))).steps, 1000) < 4.5


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b'"' + b" " * DEFINITION_BYTES_MAX + b'"', f"the maximum is {DEFINITION_BYTES_MAX}"),
        (b"[" + b"[]," * 30_000 + b"[]]", "elements"),
        (text(wide_record(4000)), "elements"),
        (b"[" * 100_000, "elements"),
        (b"[" * 20_000, "nested"),
        (b'"' + b"\\n" * 130_000 + b'"', "elements"),
        (b"[" + b"1234567," * 12_000 + b"0]", "elements"),
        (text(record("A", field("a", default=0))).replace(b":0", b":" + b"9" * 4000), "digits"),
        (b'{"type":"array","items":' * 300 + b'"int"' + b"}" * 300, "nested more than 200 levels"),
    ],
)
def test_a_definition_that_is_too_large(data: bytes, says: str) -> None:
    found = worked(definition.parsing(data))
    assert isinstance(found.result, InvalidSchema) and says in str(found.result) and len(str(found.result)) < 300
    assert found.steps <= ELEMENTS_STEPS + 4 * definition.ELEMENTS_MAX


def test_the_largest_definitions_are_parsed() -> None:
    for told in (wide_record(2900), chain(2000, "int"), doubling(30)):
        found = worked(definition.parsing(text(told)))
        assert isinstance(found.result, definition.Definition), found.result
        assert found.longest <= ELEMENTS_STEPS


def test_errors_do_not_repeat_the_definition() -> None:
    """The reference library copies the content of a type into the error of each level above it."""
    told: Any = record("Bad", field("a", "missing"), *(field(f"f{i}", "string", doc="x" * 50) for i in range(2000)))
    for level in range(60):
        told = record(f"L{level}", field("a", told))
    found = worked(definition.parsing(text(told)))
    assert str(found.result) == "not an Avro definition: the type 'missing' is not defined before it is used"


def test_fractions_are_not_converted() -> None:
    told = b'{"type":"record","name":"A","fields":[{"name":"a","type":"double","default":%s}]}'
    parsed = definition.parse(told % (b"1." + b"1" * 100_000))
    default = parsed.root.fields["a"].default
    assert isinstance(default, definition.Real) and len(default.text) == 100_002
    assert parsed.meaning != definition.parse(told % b"1.5").meaning
    assert completed(writing.writing(definition.parse(told % b"1.5").root, {})) == b"\0\0\0\0\0\0\xf8?"


@pytest.mark.parametrize(
    "value",
    [
        [1.5] * 10_000,
        {f"k{'abcdefghij'[i % 10] * (i // 10 + 1)}": 1 for i in range(1200)},
        [{"b": 1, "a": [2]}] * 2000,
        [[[]] * 5] * 2000,
    ],
)
def test_large_values_are_added_to_the_meaning_in_parts(value: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[int] = []
    to_json = definition._to_json

    def counted(words: Any) -> str:
        said.append(len(words))
        return to_json(words)

    monkeypatch.setattr(definition, "_to_json", counted)
    for told in (record("A", field("a", default=value)), record("A") | {"more": value}):
        said.clear()
        found = worked(definition.parsing(text(told)))
        assert isinstance(found.result, definition.Definition), found.result
        assert found.longest <= ELEMENTS_STEPS and max(said) <= 2 * CHUNK
        assert found.steps > sum(said) / 2, "each part is paid for"


def test_values_that_differ_have_different_meanings() -> None:
    values = ["1", '"1"', "1.0", '"1.0"', "[]", "{}", "[[1],2]", "[[1,2]]", "[1,2]", '{"a":{"b":1}}', '{"a":{},"b":1}']
    values += ['["[",1]', '["real","1.0"]', "[1.0]", "null", "true", '"\\ud800"', '"\\u0000"']
    values += ['{"a":1,"b":2}', '{"a":2,"b":1}']
    told = '{"type":"record","name":"A","fields":[{"name":"a","type":"int","default":%s}]}'
    meanings = {definition.parse((told % each).encode()).meaning for each in values}
    assert len(meanings) == len(values)
    assert definition.parse((told % '{"b":2,"a":1}').encode()).meaning in meanings, "members have no order"


# Descriptors ----------------------------------------------------------------------------------------------------------


def native(*files: FileDescriptorProto) -> bytes:
    told = {
        "fileDescriptorSet": b64encode(FileDescriptorSet(file=files).SerializeToString()).decode(),
        "rootMessageTypeName": "M",
    }
    return text(told)


def test_files_are_added_in_linear_time() -> None:
    def steps(count: int) -> int:
        files = [FileDescriptorProto(name=f"f{i}", dependency=[f"f{i - 1}"] if i else []) for i in range(count)]
        files[0].message_type.add(name="M")
        found = worked(native_definition.parsing(native(*reversed(files))))
        assert found.result.full_name == "M", found.result
        return found.steps

    assert growth(steps, 500) < 4.5


def many_messages(count: int, package: str = "") -> FileDescriptorProto:
    made = FileDescriptorProto(name="a", package=package)
    for i in range(count):
        made.message_type.add(name=f"M{i}").field.add(name="x", number=1, type=11, label=1, type_name="M0")
    return made


@pytest.mark.parametrize(
    "file",
    [
        many_messages(6000),
        many_messages(2000, "p" * 10_000),
        many_messages(2000, ".".join("p" * 5000)),
        FileDescriptorProto(name="a", enum_type=[{"name": f"E{i}"} for i in range(20_000)]),  # type: ignore[misc]
        FileDescriptorProto(
            name="a",
            enum_type=[{"name": "E", "value": [{"name": f"V{i}", "number": i} for i in range(20_000)]}],  # type: ignore[list-item]
        ),
    ],
)
def test_a_file_that_is_too_large(file: FileDescriptorProto) -> None:
    found = worked(native_definition.parsing(native(file)))
    assert isinstance(found.result, InvalidSchema) and "'a' has more than 5000 definitions" in str(found.result)
    assert found.steps < 2000


def test_the_json_around_descriptors_is_small() -> None:
    told = {**json.loads(native(many_messages(1))), "more": [0] * 1000}
    found = worked(native_definition.parsing(text(told)))
    assert isinstance(found.result, InvalidSchema) and "the maximum is 1000" in str(found.result) and not found.steps


@pytest.mark.parametrize("part", ["key", "value"])
def test_the_properties_of_keys_and_values_are_small(part: str) -> None:
    schema = of_type("KEY_VALUE", key_value.join(b"", b""))
    most = key_value.PROPERTIES_CHARACTERS_MAX
    added = schema.properties.add(key=f"{part}.schema.properties", value='{"a":"' + "x" * (most - 8) + '"}')
    found = dict(zip(("key", "value"), key_value.split(schema), strict=True))[part]
    assert [len(each.value) for each in found.properties] == [most - 8]
    added.value += " "
    with pytest.raises(
        InvalidSchema, match=f"the properties of the {part} have 65537 characters, the maximum is 65536"
    ):
        key_value.split(schema)


def test_a_file_that_is_just_not_too_large() -> None:
    told = json.loads(native(many_messages(2400)))
    assert native_definition.parse(text({**told, "rootMessageTypeName": "M7"})).full_name == "M7"


# Values ---------------------------------------------------------------------------------------------------------------


def test_a_value_of_no_bytes_has_a_bound() -> None:
    for told, payload in (
        (doubling(40), b""),
        ({"type": "array", "items": "null"}, b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f"),
        ({"type": "map", "values": record("A")}, b"\x02\x00\xfe\xff\xff\xff\x0f"),
        ({"type": "array", "items": {"type": "fixed", "name": "F", "size": 0}}, b"\xfe\xff\xff\xff\x0f"),
    ):
        with pytest.raises(UndecodableError):
            decoder_of(avro(told))(payload)
    many = {"type": "array", "items": "null"}
    assert reading.read(definition.parse(text(many)).root, b"\xa0\x9c\x01\0") == [None] * 10_000


def test_a_value_that_is_nested_without_end() -> None:
    tree = record("T", field("a", ["null", "T"]))
    with pytest.raises(UndecodableError, match="Recursion"):
        decoder_of(avro(tree))(b"\x02" * 100_000)


def test_a_decimal_has_a_bound() -> None:
    told = {"type": "bytes", "logicalType": "decimal", "precision": 2**31 - 1}
    size = 1 << 20
    with pytest.raises(UndecodableError, match="the maximum is 1024"):
        decoder_of(avro(told))(b"\x80\x80\x80\x01" + b"\x7f" * size)


def test_defaults_within_defaults_have_a_bound() -> None:
    found = worked(writing.writing(definition.parse(text(doubling(40))).root, {}))
    assert isinstance(found.result, ValueError) and found.steps <= writing.VALUES_MAX + 2 * CHUNK
    assert found.longest <= 2 * CHUNK
    assert completed(writing.writing(definition.parse(text(doubling(5))).root, {})) == b""


def test_writing_looks_names_up() -> None:
    branches = [record(f"R{i}") for i in range(2000)]
    schema = definition.parse(text({"type": "array", "items": branches})).root
    found = worked(writing.writing(schema, [{"R1999": {}}] * 20_000))
    assert len(found.result) > 40_000 and found.steps < 3 * 20_000
    assert schema.branches[0].number_of("R1999") == 1999


def test_validating_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[definition.Node] = []

    def shape(node: definition.Node, value: Any) -> bool:
        tried.append(node)
        return node.name == "R999"

    monkeypatch.setitem(validation._SHAPES, "record", shape)
    schema = definition.parse(text({"type": "array", "items": [record(f"R{i}") for i in range(1000)]})).root
    assert validation.is_valid(schema, [{}] * 50_000), "nobody can tell"
    assert len(tried) <= validation.CHECKS_MAX


def test_payloads_of_json_have_a_bound() -> None:
    for payload in (b"[" * 100_000, b"9" * 5000, b'{"a":' * 2000):
        with pytest.raises(UndecodableError):
            decoder_of(of_type("JSON"))(payload)
