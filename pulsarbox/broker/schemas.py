"""Schemas of topics: versions from 0 on, the same schema keeps its version. Partitions share their topic's.

What a schema is and which may follow which is said in ``protocol.schema``. Source:
https://pulsar.apache.org/docs/4.2.x/schema-understand/.
"""

from base64 import b64decode, b64encode
from typing import NamedTuple

from pulsarbox.broker.core import Core
from pulsarbox.broker.policies.policy import Level
from pulsarbox.broker.policies.schema import (
    ALLOW_AUTO_UPDATE,
    OLD_STRATEGY,
    SCHEMA_COMPATIBILITY,
    VALIDATION_ENFORCED,
)
from pulsarbox.broker.system_topics import is_system
from pulsarbox.errors import IncompatibleSchema
from pulsarbox.names import TopicName
from pulsarbox.protocol.PulsarApi_pb2 import Schema
from pulsarbox.protocol.schema import compatibility, definition
from pulsarbox.protocol.schema.types import BYTES, spelling
from pulsarbox.storage.catalog import Row, schema_key


class StoredSchema(NamedTuple):
    """One version of a topic's schema."""

    version: int
    created: int
    """Milliseconds since 1970."""
    schema: Schema

    @property
    def version_bytes(self) -> bytes:
        """The version as the protocol has it."""
        return self.version.to_bytes(8, "big")


class Schemas:
    """The schemas of all topics."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def versions(self, topic: TopicName) -> list[StoredSchema]:
        """All versions of a topic's schema, oldest first."""
        return [_from_row(version, row) for version, row in self._rows(topic) if "deleted" not in row]

    def _rows(self, topic: TopicName) -> list[tuple[int, Row]]:
        """The stored versions with the mark of a deletion, oldest first."""
        catalog = self._core.catalog
        found = []
        for key in catalog.keys(f"schema/{topic.base}/"):
            row = catalog.get(key)
            assert row is not None
            found.append((int(key.rpartition("/")[2], 16), row))
        return found

    def get(self, topic: TopicName, version: int | None = None) -> StoredSchema | None:
        """One version, or the newest with None; None where there is none."""
        if version is not None:
            row = self._core.catalog.get(schema_key(str(topic.base), version)) if 0 <= version < 2**63 else None
            return None if row is None or "deleted" in row else _from_row(version, row)
        versions = self.versions(topic)
        return versions[-1] if versions else None

    def strategy(self, topic: TopicName) -> str:
        """Which schemas may follow one another on a topic."""
        if is_system(str(topic)):
            return compatibility.ALWAYS
        policies = self._core.policies.of(topic)
        found, level = policies.found(SCHEMA_COMPATIBILITY)
        return policies.get(OLD_STRATEGY) or found if level is Level.BROKER else found

    def version_of(self, topic: TopicName, schema: Schema) -> StoredSchema | None:
        """The version that is the same as a schema; None where a topic has none."""
        versions = self.versions(topic)
        for each in versions:  # what clients bring is as a rule this, and nothing needs to be understood
            if each.schema.type == schema.type and each.schema.schema_data == schema.schema_data:
                return each
        return next((each for each in versions if definition.same(each.schema, schema)), None)

    def check(self, topic: TopicName, schema: Schema) -> None:
        """Raises InvalidSchema, IncompatibleSchema where a schema cannot be the topic's next."""
        definition.check(schema)
        compatibility.check([each.schema for each in self.versions(topic)], schema, self.strategy(topic))

    def bring(self, topic: TopicName, schema: Schema, created: int) -> StoredSchema:
        """The version of a schema that a producer brings. Raises InvalidSchema; IncompatibleSchema for one that may not
        follow those of the topic, and for any new one where clients may not bring any."""
        if not self._core.policies.of(topic).get(ALLOW_AUTO_UPDATE) and not is_system(str(topic)):
            known = self.version_of(topic, schema)
            if known is None:
                raise IncompatibleSchema("Schema not found and schema auto updating is disabled.")
            return known
        return self.put(topic, schema, created)

    def meet(self, topic: TopicName, schema: Schema, created: int, *, idle: bool) -> None:
        """A consumer comes with a schema, which a topic without one and ``idle`` (nobody is there, nothing is stored)
        takes for its own. Raises InvalidSchema; IncompatibleSchema where it cannot read what is written there."""
        versions = [each.schema for each in self.versions(topic)]
        if not versions and idle:
            self.bring(topic, schema, created)
            return
        strategy = self.strategy(topic)
        if strategy == compatibility.ALWAYS:
            return
        if not versions:
            raise IncompatibleSchema(
                "Failed to add schema to an active topic with empty(BYTES) schema: new schema type "
                f"{spelling(schema.type)}"
            )
        if (versions[-1].type, versions[-1].schema_data) != (schema.type, schema.schema_data):
            definition.check(schema)
        compatibility.check_consumer(versions, schema, strategy)

    def check_none(self, topic: TopicName) -> None:
        """A producer brings no schema. Raises IncompatibleSchema where the topic has one and goes by it."""
        if self._core.policies.of(topic).get(VALIDATION_ENFORCED) and self.get(topic) is not None:
            raise IncompatibleSchema(
                "Producers cannot connect or send message without a schema to topics with a schema"
                "when SchemaValidationEnforced is enabled"
            )

    def put(self, topic: TopicName, schema: Schema, created: int) -> StoredSchema:
        """The version of this schema, a new one where the topic has no such; durable with the next commit.

        Raises InvalidSchema, IncompatibleSchema.
        """
        known = self.version_of(topic, schema)
        if known is not None:
            return known
        self.check(topic, schema)
        return self._add(topic, schema, created)

    def keep(self, topic: TopicName, schema: Schema, created: int) -> StoredSchema:
        """The same, whatever other schemas the topic has: of messages that are there already, and come from another."""
        return self.version_of(topic, schema) or self._add(topic, schema, created)

    def _add(self, topic: TopicName, schema: Schema, created: int) -> StoredSchema:
        version = self._next_version(topic)
        stored = StoredSchema(version, created, schema)
        self._core.commits.put_row(schema_key(str(topic.base), version), _to_row(stored))
        return stored

    def delete(self, topic: TopicName, *, force: bool = False) -> int:
        """Forget all versions; the version that the deletion takes, -1 with ``force``.

        Versions go on counting behind it, so that a stored message never means another schema than it was written
        with. ``force`` forgets the count as well.
        """
        version = self._next_version(topic)
        for stored, _ in self._rows(topic):
            self._core.commits.put_row(schema_key(str(topic.base), stored), None)
        if force:
            return -1
        if version:
            self._core.commits.put_row(schema_key(str(topic.base), version), {"deleted": True})
        return version

    def _next_version(self, topic: TopicName) -> int:
        rows = self._rows(topic)
        return rows[-1][0] + 1 if rows else 0


def is_schema(schema: Schema) -> bool:
    """Whether a producer or consumer brings a schema to be kept: bytes and AUTO_CONSUME are none."""
    return schema.type not in (BYTES, Schema.AutoConsume)


def _to_row(stored: StoredSchema) -> Row:
    return {
        "name": stored.schema.name,
        "type": Schema.Type.Name(stored.schema.type),
        "created": stored.created,
        "data": b64encode(stored.schema.schema_data).decode(),
        "properties": {item.key: item.value for item in stored.schema.properties},
    }


def _from_row(version: int, row: Row) -> StoredSchema:
    schema = Schema(name=row["name"], schema_data=b64decode(row["data"]), type=row["type"])
    for key, value in row["properties"].items():
        schema.properties.add(key=key, value=value)
    return StoredSchema(version, row["created"], schema)
