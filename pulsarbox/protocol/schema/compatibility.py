"""Which schemas may follow one another.

The words are Pulsar's: a strategy is BACKWARD where the new schema must read what the old one wrote, FORWARD where the
old one must read what the new one writes, FULL for both; TRANSITIVE where that holds for all versions and not only for
the newest. Source: https://pulsar.apache.org/docs/4.2.x/schema-understand/#schema-compatibility-check-strategy.
"""

from collections.abc import Sequence
from typing import Final

from pulsarbox.errors import IncompatibleSchema, InvalidSchema
from pulsarbox.protocol.PulsarApi_pb2 import Schema
from pulsarbox.protocol.schema.definition import IN_AVRO, avro
from pulsarbox.protocol.schema.key_value import split
from pulsarbox.protocol.schema.types import spelling

ALWAYS: Final = "ALWAYS_COMPATIBLE"
NEVER: Final = "ALWAYS_INCOMPATIBLE"
BACKWARD: Final = "BACKWARD"
_NEW_READS_OLD: Final = ("BACKWARD", "BACKWARD_TRANSITIVE", "FULL", "FULL_TRANSITIVE")
_OLD_READS_NEW: Final = ("FORWARD", "FORWARD_TRANSITIVE", "FULL", "FULL_TRANSITIVE")
_AS_BACKWARD: Final = ("BACKWARD", "FORWARD", "FORWARD_TRANSITIVE", "FULL")
"""Strategies under which a consumer has to read what the newest schema wrote, and nothing more."""
FROM_OLD_WORDS: Final = {
    "AutoUpdateDisabled": NEVER,
    "Backward": BACKWARD,
    "Forward": "FORWARD",
    "Full": "FULL",
    "AlwaysCompatible": ALWAYS,
    "BackwardTransitive": "BACKWARD_TRANSITIVE",
    "ForwardTransitive": "FORWARD_TRANSITIVE",
    "FullTransitive": "FULL_TRANSITIVE",
}
"""What the words of schemaAutoUpdateCompatibilityStrategy mean."""


def check(versions: Sequence[Schema], new: Schema, strategy: str) -> None:
    """Raises IncompatibleSchema where a new schema may not follow those of a topic, which come oldest first."""
    if strategy == ALWAYS or not versions:
        return
    for_all = strategy.endswith("_TRANSITIVE")
    existing = versions if for_all else versions[-1:]
    for each in existing:
        if each.type != new.type:
            raise IncompatibleSchema(
                f"Incompatible schema: exists schema type {spelling(each.type)}, new schema type {spelling(new.type)}"
            )
    if not for_all and existing[0].schema_data == new.schema_data:
        return
    for each in reversed(existing):
        _check_pair(each, new, strategy)


def check_consumer(versions: Sequence[Schema], schema: Schema, strategy: str) -> None:
    """Raises IncompatibleSchema where a consumer's schema cannot read what a topic's are for.

    ``versions`` come oldest first; there is at least one. Under FORWARD a consumer may be behind its producers, and has
    to read what the newest schema writes like any other.
    """
    if strategy in _AS_BACKWARD:
        check(versions, schema, BACKWARD)
    else:
        check(versions, schema, strategy)


def _check_pair(old: Schema, new: Schema, strategy: str) -> None:
    """Of two schemas of one type."""
    if new.type in IN_AVRO:
        _check_avro(old, new, strategy)
    elif new.type == Schema.ProtobufNative:
        _check_native(old, new, strategy)
    elif new.type == Schema.Type.KeyValue:
        _check_key_value(old, new, strategy)
    elif strategy == NEVER:
        raise IncompatibleSchema(f"Schema compatibility strategy is {NEVER}")


def _check_avro(old: Schema, new: Schema, strategy: str) -> None:
    parse, unreadable = avro().parse, avro().unreadable
    try:
        before, after = parse(old.schema_data), parse(new.schema_data)
    except InvalidSchema as error:
        raise IncompatibleSchema(f"Incompatible schema: {error}") from None
    why = ""
    if strategy == NEVER:
        why = "no schema may follow another"
    if not why and strategy in _NEW_READS_OLD and (trouble := unreadable(after, before)):
        why = f"the new schema cannot read what the old one wrote: {trouble}"
    if not why and strategy in _OLD_READS_NEW and (trouble := unreadable(before, after)):
        why = f"the old schema cannot read what the new one writes: {trouble}"
    if why:
        raise IncompatibleSchema(f"Error during schema compatibility check with strategy {strategy}: {why}")


def _check_native(old: Schema, new: Schema, strategy: str) -> None:
    """Fields of a message may change in every way, as in Pulsar: Protobuf itself looks after them."""
    from pulsarbox.protocol.schema.native_definition import parse

    if strategy == NEVER:
        raise IncompatibleSchema(f"Schema compatibility strategy is {NEVER}")
    before, after = parse(old.schema_data).full_name, parse(new.schema_data).full_name
    if before != after:
        raise IncompatibleSchema(
            f"Protobuf root message change is not allowed under the '{strategy}' strategy. Original message name: "
            f"'{before}', new message name: '{after}'."
        )


def _check_key_value(old: Schema, new: Schema, strategy: str) -> None:
    for before, after in zip(split(old), split(new), strict=True):
        if before.type != after.type:
            raise IncompatibleSchema(
                "Key schemas or Value schemas are different schema type: "
                f"{spelling(before.type)} and {spelling(after.type)}"
            )
        _check_pair(before, after, strategy)
