"""Schema compatibility checks.

Strategies are Pulsar's: under BACKWARD the new schema must read data of the old one, under FORWARD the old schema must
read data of the new one, under FULL both. TRANSITIVE strategies check all versions instead of only the newest.
Source: https://pulsar.apache.org/docs/4.2.x/schema-understand/#schema-compatibility-check-strategy.
"""

from collections.abc import Callable, Sequence
from typing import Final

from pulsarbox.errors import IncompatibleSchema, InvalidSchema
from pulsarbox.protocol.PulsarApi_pb2 import Schema
from pulsarbox.protocol.schema.avro import resolution
from pulsarbox.protocol.schema.definition import IN_AVRO, Definitions
from pulsarbox.protocol.schema.key_value import split
from pulsarbox.protocol.schema.steps import Steps, TooManyStepsError, bounded, completed
from pulsarbox.protocol.schema.types import spelling

ALWAYS: Final = "ALWAYS_COMPATIBLE"
NEVER: Final = "ALWAYS_INCOMPATIBLE"
BACKWARD: Final = "BACKWARD"
_STEPS_A_VERSION: Final = 200
"""Cost of loading one version."""
_NEW_READS_OLD: Final = ("BACKWARD", "BACKWARD_TRANSITIVE", "FULL", "FULL_TRANSITIVE")
_OLD_READS_NEW: Final = ("FORWARD", "FORWARD_TRANSITIVE", "FULL", "FULL_TRANSITIVE")
_AS_BACKWARD: Final = ("BACKWARD", "FORWARD", "FORWARD_TRANSITIVE", "FULL")
"""Strategies under which a consumer only has to read data of the newest schema."""
STEPS_MAX: Final = 2_000_000
"""Steps of a check against all versions of a topic: about four seconds of CPU time."""


class Versions:
    """The versions of a topic's schema, oldest first, loaded on demand."""

    def __init__(self, types: Sequence["Schema.Type"], load: Callable[[int], Schema]) -> None:
        """``load`` returns the version at an index of ``types``."""
        self.types = types
        self.load = load

    @classmethod
    def of(cls, schemas: Sequence[Schema]) -> "Versions":
        """Return versions that are already loaded."""
        return cls([each.type for each in schemas], lambda index: schemas[index])


def check(versions: Sequence[Schema], new: Schema, strategy: str) -> None:
    """Run a check in one go. Raises IncompatibleSchema if ``new`` may not follow a topic's versions."""
    completed(checking(Versions.of(versions), new, strategy, Definitions()))


def check_consumer(versions: Sequence[Schema], schema: Schema, strategy: str) -> None:
    """Run a consumer's check in one go. Raises IncompatibleSchema if its schema does not fit a topic's versions."""
    completed(checking(Versions.of(versions), schema, of_consumer(strategy), Definitions()))


def of_consumer(strategy: str) -> str:
    """Return the strategy for checking a consumer's schema on a topic with ``strategy``.

    Under FORWARD too, a consumer has to read data of the newest schema, even if it lags behind the producers.
    """
    return BACKWARD if strategy in _AS_BACKWARD else strategy


def checking(versions: Versions, new: Schema, strategy: str, definitions: Definitions) -> Steps[None]:
    """Check whether a schema may follow a topic's versions, newest first; ``definitions`` may already hold it.

    Stops at the first incompatibility. Raises IncompatibleSchema.
    """
    if strategy == ALWAYS or not versions.types:
        return
    for_all = strategy.endswith("_TRANSITIVE")
    newest = len(versions.types) - 1
    existing = range(newest if not for_all else 0, newest + 1)
    for kind in {versions.types[index] for index in existing}:
        if kind != new.type:
            raise IncompatibleSchema(
                f"Incompatible schema: exists schema type {spelling(kind)}, new schema type {spelling(new.type)}"
            )
    if not for_all and versions.load(newest).schema_data == new.schema_data:
        return
    try:
        yield from bounded(_checking_all(versions, existing, new, strategy, definitions), STEPS_MAX)
    except TooManyStepsError:
        raise IncompatibleSchema(
            f"comparing the new schema with {len(existing)} versions exceeds the limit of {STEPS_MAX} steps: delete "
            "unused versions, or set a strategy that is not transitive"
        ) from None


def _checking_all(
    versions: Versions, existing: range, new: Schema, strategy: str, definitions: Definitions
) -> Steps[None]:
    for index in reversed(existing):
        yield _STEPS_A_VERSION
        yield from _checking_pair(versions.load(index), new, strategy, definitions)


def _checking_pair(old: Schema, new: Schema, strategy: str, definitions: Definitions) -> Steps[None]:
    """Check two schemas of the same type."""
    if new.type in IN_AVRO:
        yield from _checking_avro(old, new, strategy, definitions)
    elif new.type == Schema.ProtobufNative:
        yield from _checking_native(old, new, strategy)
    elif new.type == Schema.Type.KeyValue:
        yield from _checking_key_value(old, new, strategy, definitions)
    elif strategy == NEVER:
        raise IncompatibleSchema(f"Schema compatibility strategy is {NEVER}")


def _checking_avro(old: Schema, new: Schema, strategy: str, definitions: Definitions) -> Steps[None]:
    try:
        after = (yield from definitions.avro(new.schema_data)).root
        before = (yield from Definitions().avro(old.schema_data)).root
    except InvalidSchema as error:
        raise IncompatibleSchema(f"Incompatible schema: {error}") from None
    why = ""
    if strategy == NEVER:
        why = "no new version is allowed"
    try:
        if strategy in _NEW_READS_OLD and (found := (yield from resolution.mismatch(after, before))):
            why = f"the new schema cannot read data written with the old one: {found}"
        if not why and strategy in _OLD_READS_NEW and (found := (yield from resolution.mismatch(before, after))):
            why = f"the old schema cannot read data written with the new one: {found}"
    except TooManyStepsError:
        why = (
            f"comparing the two schemas exceeds the limit of {resolution.STEPS_MAX} steps: give the records of a union "
            "the same names in both schemas, or use fewer of them"
        )
    if why:
        raise IncompatibleSchema(f"Error during schema compatibility check with strategy {strategy}: {why}")


def _checking_native(old: Schema, new: Schema, strategy: str) -> Steps[None]:
    """Check the message name only, as Pulsar does: Protobuf's own rules govern changes of fields."""
    from pulsarbox.protocol.schema.native_definition import parsing

    if strategy == NEVER:
        raise IncompatibleSchema(f"Schema compatibility strategy is {NEVER}")
    before = (yield from parsing(old.schema_data)).full_name
    after = (yield from parsing(new.schema_data)).full_name
    if before != after:
        raise IncompatibleSchema(
            f"Protobuf root message change is not allowed under the '{strategy}' strategy. Original message name: "
            f"'{before[:200]}', new message name: '{after[:200]}'."
        )


def _checking_key_value(old: Schema, new: Schema, strategy: str, definitions: Definitions) -> Steps[None]:
    for before, after in zip(split(old), split(new), strict=True):
        if before.type != after.type:
            raise IncompatibleSchema(
                "Key schemas or Value schemas are different schema type: "
                f"{spelling(before.type)} and {spelling(after.type)}"
            )
        yield from _checking_pair(before, after, strategy, definitions)
