"""Columns of topics in SQL, by schema and by offloaded file."""

import json
from typing import Any

from pulsarbox.cli.sql.topic_columns import expressions, of_file, of_schema
from pulsarbox.protocol.PulsarApi_pb2 import Schema
from pulsarbox.spark.decode.row_columns import NAMES
from pulsarbox.spark.schema.column_types import ColumnField, field_of


def schema(*fields: tuple[str, Any]) -> Schema:
    definition = {"type": "record", "name": "R", "fields": [{"name": name, "type": kind} for name, kind in fields]}
    return Schema(name="s", type=Schema.Json, schema_data=json.dumps(definition).encode())


def names(fields: list[ColumnField]) -> list[str]:
    return [field["name"] for field in fields]


def test_values_come_first_and_the_corrupt_record_last() -> None:
    found = of_schema(schema(("id", "long"), ("name", "string")))
    assert names(found.fields) == ["id", "name", *NAMES, "_corrupt_record"] and not found.omitted


def test_without_a_schema_the_value_is_bytes() -> None:
    assert names(of_schema(None).fields) == ["value", *NAMES]


def test_a_field_with_the_name_of_a_metadata_column_leaves_the_value_as_bytes() -> None:
    assert names(of_schema(schema(("__key", "long"))).fields) == ["value", *NAMES]


def test_fields_that_sql_cannot_tell_apart_are_omitted_with_a_reason() -> None:
    found = of_schema(schema(("Id", "long"), ("id", "long"), ("no", {"type": "record", "name": "E", "fields": []})))
    assert names(found.fields)[:2] == ["Id", "__key"]
    assert found.omitted == [
        "column id is omitted: it differs from Id only by case",
        "column no is omitted: it has a record without fields",
    ]


def test_a_file_has_the_columns_of_its_topic() -> None:
    stored = [field_of("id", "long"), *of_schema(None).fields[1:], field_of("__payload", "binary")]
    assert names(of_file(stored).fields) == ["id", *NAMES, "_corrupt_record"]


def test_values_from_before_the_schema_are_corrupt_records() -> None:
    raw, typed = of_schema(None).fields, of_schema(schema(("value", "string"))).fields
    found = dict(zip(names(typed), expressions(raw, typed), strict=True))
    assert found["value"] == "CAST(NULL AS VARCHAR)" and found["_corrupt_record"] == '"value"'
    assert found["__key"] == '"__key"'


def test_the_payload_of_a_file_is_the_value_of_a_topic_without_a_schema() -> None:
    stored = [*of_schema(schema(("value", "long"))).fields, field_of("__payload", "binary")]
    found = dict(zip(names(of_schema(None).fields), expressions(stored, of_schema(None).fields), strict=True))
    assert found["value"] == '"__payload"'
