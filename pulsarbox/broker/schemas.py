"""Schemas of topics: versions from 0 on, an equal schema keeps its version. Partitions share their topic's.

Compatibility is not checked yet: every new schema gets the next version, where clients may bring new ones.
"""

from base64 import b64decode, b64encode
from typing import NamedTuple

from pulsarbox.broker.core import Core
from pulsarbox.broker.policies.schema import ALLOW_AUTO_UPDATE, VALIDATION_ENFORCED
from pulsarbox.broker.system_topics import is_system
from pulsarbox.errors import IncompatibleSchema
from pulsarbox.names import TopicName
from pulsarbox.protocol.PulsarApi_pb2 import Schema
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

    def bring(self, topic: TopicName, schema: Schema, created: int) -> StoredSchema:
        """The version of a schema that a client brings. Raises IncompatibleSchema for a new one where clients may not
        bring any."""
        if not self._core.policies.of(topic).get(ALLOW_AUTO_UPDATE) and not is_system(str(topic)):
            known = next((each for each in self.versions(topic) if _equal(each.schema, schema)), None)
            if known is None:
                raise IncompatibleSchema("Schema not found and schema auto updating is disabled.")
            return known
        return self.put(topic, schema, created)

    def check_none(self, topic: TopicName) -> None:
        """A producer brings no schema. Raises IncompatibleSchema where the topic has one and goes by it."""
        if self._core.policies.of(topic).get(VALIDATION_ENFORCED) and self.get(topic) is not None:
            raise IncompatibleSchema(
                "Producers cannot connect or send message without a schema to topics with a schema"
                "when SchemaValidationEnforced is enabled"
            )

    def put(self, topic: TopicName, schema: Schema, created: int) -> StoredSchema:
        """The version of this schema, a new one where the topic has no equal one; durable with the next commit."""
        for stored in self.versions(topic):
            if _equal(stored.schema, schema):
                return stored
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
    return schema.type not in (Schema.Type.Value("None"), Schema.AutoConsume)


def _equal(a: Schema, b: Schema) -> bool:
    return a.type == b.type and a.schema_data == b.schema_data


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
