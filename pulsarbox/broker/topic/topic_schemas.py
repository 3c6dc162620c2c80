"""Schema registry: the versions of each topic's schema, counted from 0. Partitions share their topic's schemas.

Adding a schema again returns its existing version. ``protocol.schema`` has the rules for definitions and compatibility;
applying them can take long, so ``Computations`` runs them in steps.
Source: https://pulsar.apache.org/docs/4.2.x/schema-understand/.
"""

import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple, TypeVar

from pulsarbox.broker.long_computation import Computations
from pulsarbox.broker.persistence.group_commit import GroupCommit
from pulsarbox.broker.policies.kinds.schema import ALLOW_AUTO_UPDATE, SCHEMA_COMPATIBILITY, VALIDATION_ENFORCED
from pulsarbox.broker.policies.policies import Policies
from pulsarbox.broker.topic.schema_versions import TopicVersions, Verdict, VersionCache, digest_of
from pulsarbox.broker.topic.system_topics import is_system
from pulsarbox.clock import Now
from pulsarbox.errors import IncompatibleSchema, InvalidSchema, PulsarBoxError, ServiceNotReady
from pulsarbox.names import TopicName
from pulsarbox.protocol.PulsarApi_pb2 import Schema
from pulsarbox.protocol.schema import compatibility, definition
from pulsarbox.protocol.schema.definition import Definitions
from pulsarbox.protocol.schema.steps import Steps
from pulsarbox.protocol.schema.types import BYTES, DEFINITION_BYTES_MAX, spelling
from pulsarbox.storage.catalog import Catalog, Row, schema_key

T = TypeVar("T")

_SCHEMA_BYTES_MAX: Final = 2 * DEFINITION_BYTES_MAX
"""Limit for a schema with its properties; a KeyValue schema holds two definitions."""
_DELETED: Final = b'{"deleted":true}'
_STEPS_A_VERSION: Final = 20
_BYTES_A_STEP: Final = 2000
_READABLE_MAX: Final = 1000
_READABLE_BYTES_MAX: Final = 8 << 20
"""Limits of ReadableSchemas: the newest versions, up to this many and to this many bytes of rows."""


class StoredSchema(NamedTuple):
    """One version of a topic's schema."""

    version: int
    created: int
    """Milliseconds since 1970."""
    schema: Schema

    @property
    def version_bytes(self) -> bytes:
        """The version as encoded in the protocol: 8 bytes, big-endian."""
        return self.version.to_bytes(8, "big")


class StillComparing(ServiceNotReady):
    """The comparison of a schema with a topic's versions takes longer than one turn; the caller retries."""


class ReadableSchemas(Mapping[int, Schema]):
    """The newest versions of a topic's schema, decoded lazily by a thread that reads messages."""

    def __init__(self, rows: Mapping[int, bytes]) -> None:
        self._rows = rows
        self._decoded: dict[int, Schema] = {}

    def __getitem__(self, version: int) -> Schema:
        if version not in self._decoded:
            self._decoded[version] = _from_row(version, json.loads(self._rows[version])).schema
        return self._decoded[version]

    def __iter__(self) -> Iterator[int]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)


class Schemas:
    """The schemas of all topics."""

    def __init__(self, catalog: Catalog, commits: GroupCommit, policies: Policies, computations: Computations) -> None:
        self._catalog = catalog
        self._commits = commits
        self._policies = policies
        self._computations = computations
        self._cache = VersionCache()
        self._deletions = 0

    # Reading

    def numbers(self, topic: TopicName) -> range:
        """Return the range of a topic's version numbers, which has no gaps. The first may mark a deletion."""
        catalog, name = self._catalog, str(topic.base)
        key = catalog.first(f"schema/{name}/")
        if key is None:
            return range(0)
        first = int(key.rpartition("/")[2], 16)
        below, above = first, first + 1
        while schema_key(name, above) in catalog:
            below, above = above, 2 * above - first
        while above - below > 1:
            middle = (below + above) // 2
            below, above = (middle, above) if schema_key(name, middle) in catalog else (below, middle)
        return range(first, below + 1)

    def versions(self, topic: TopicName) -> Iterator[StoredSchema]:
        """Return an iterator over all versions of a topic's schema, oldest first, each read lazily."""
        found = (self.get(topic, number) for number in self.numbers(topic))
        return (each for each in found if each is not None)

    def get(self, topic: TopicName, version: int | None = None) -> StoredSchema | None:
        """Return a version, by default the newest; None if it does not exist."""
        if version is None:
            version = next(reversed(self.numbers(topic)), -1)
        row = self._catalog.get(schema_key(str(topic.base), version)) if 0 <= version < 2**63 else None
        return None if row is None or "deleted" in row else _from_row(version, row)

    def by_version(self, topic: TopicName) -> ReadableSchemas:
        """Return the newest versions of a topic's schema, for a thread that reads its messages."""
        rows: dict[int, bytes] = {}
        size = 0
        for number in reversed(self.numbers(topic)):
            row = self._catalog.raw(schema_key(str(topic.base), number))
            if row is None or row == _DELETED or len(rows) == _READABLE_MAX or size > _READABLE_BYTES_MAX:
                break
            rows[number] = row
            size += len(row)
        return ReadableSchemas(rows)

    def strategy(self, topic: TopicName) -> str:
        """Return the topic's schema compatibility strategy."""
        if is_system(str(topic)):
            return compatibility.ALWAYS
        return self._policies.of(topic).get(SCHEMA_COMPATIBILITY)

    # Computations; they raise InvalidSchema and IncompatibleSchema

    def run(
        self,
        asker: object,
        schema: Schema,
        steps: Steps[T],
        then: Callable[[T | PulsarBoxError, Now], None],
        now: Now,
    ) -> None:
        """Run one of the computations below for a client; see ``Computations.run``.

        Raises InvalidSchema, ServiceNotReady.
        """
        size = schema.ByteSize()
        if size > _SCHEMA_BYTES_MAX:
            raise InvalidSchema(f"The schema has {size} bytes, at most {_SCHEMA_BYTES_MAX} are allowed")
        self._computations.run(asker, size, steps, then, now)

    def run_synchronously(self, schema: Schema, steps: Steps[T], now: Now) -> T:
        """Run one of the computations below for the box itself, and return its result.

        Raises StillComparing if it takes longer than one turn allows. The computation continues, and a later call
        finds its result.
        """
        results: list[T | PulsarBoxError] = []
        self.run(self, schema, steps, lambda result, when: results.append(result), now)
        if not results:
            raise StillComparing("the schema is still being compared with those of the topic; try again")
        (result,) = results
        if isinstance(result, PulsarBoxError):
            raise result
        return result

    def finding(self, topic: TopicName, schema: Schema) -> Steps[StoredSchema | None]:
        """Return the version that equals a schema; None if the topic has none."""
        found = yield from self._finding(topic, schema, Definitions())
        return None if found is None else self.get(topic, found)

    def checking(self, topic: TopicName, schema: Schema) -> Steps[None]:
        """Check that a schema can be the topic's next."""
        versions = yield from self._loaded(topic)
        yield from self._checking(topic, versions, schema, self.strategy(topic), Definitions())

    def bringing(self, topic: TopicName, schema: Schema, created: int) -> Steps[StoredSchema]:
        """Return the version of a producer's schema. Add one if it is compatible and auto-update is allowed."""
        if self._policies.of(topic).get(ALLOW_AUTO_UPDATE) or is_system(str(topic)):
            return (yield from self.putting(topic, schema, created))
        known = yield from self.finding(topic, schema)
        if known is None:
            raise IncompatibleSchema("Schema not found and schema auto updating is disabled.")
        return known

    def putting(
        self, topic: TopicName, schema: Schema, created: int, allow: Callable[[], None] = lambda: None
    ) -> Steps[StoredSchema]:
        """Return the version of a schema; if the topic has none, add it, to be stored with the next commit.

        ``allow`` is called in the turn that would add a version, and raises to prevent it.
        """
        definitions = Definitions()
        while True:
            number = yield from self._finding(topic, schema, definitions)
            known = None if number is None else self.get(topic, number)
            if known is not None:
                return known
            versions = yield from self._loaded(topic)
            count = len(versions.numbers)
            yield from self._checking(topic, versions, schema, self.strategy(topic), definitions)
            if self._cache.get(str(topic.base)) is versions and len(versions.numbers) == count:
                allow()
                return self._add(topic, schema, created)

    def trying(self, topic: TopicName, schema: Schema) -> Steps[None]:
        """Check that a topic has a schema already, or that it can be the topic's next."""
        if (yield from self.finding(topic, schema)) is None:
            yield from self.checking(topic, schema)

    def keeping(self, topic: TopicName, schema: Schema, created: int) -> Steps[StoredSchema]:
        """Return the version of a schema; if the topic has none, add it without a compatibility check.

        For messages that are stored already and come from another topic.
        """
        known = yield from self.finding(topic, schema)
        return known or self._add(topic, schema, created)

    def meeting(self, topic: TopicName, schema: Schema, created: int, is_idle: Callable[[], bool]) -> Steps[None]:
        """Check that a consumer's schema can read the topic's messages.

        A topic without a schema adopts the consumer's if it is idle: no client is connected and no message is stored.
        """
        versions = yield from self._loaded(topic)
        strategy = self.strategy(topic)
        if not versions.numbers:
            if is_idle():
                yield from self._giving(topic, schema, created, is_idle)
            elif strategy != compatibility.ALWAYS:
                raise _on_active_topic(schema)
            return
        if strategy == compatibility.ALWAYS:
            return
        newest = self.get(topic, versions.numbers[-1])
        if newest is None or digest_of(newest.schema) != digest_of(schema):
            strategy = compatibility.of_consumer(strategy)
            yield from self._checking(topic, versions, schema, strategy, Definitions())

    def _giving(self, topic: TopicName, schema: Schema, created: int, is_idle: Callable[[], bool]) -> Steps[None]:
        """Add a consumer's schema as the topic's first version."""

        def allow() -> None:
            if not is_idle():  # any more
                raise _on_active_topic(schema)

        if not self._policies.of(topic).get(ALLOW_AUTO_UPDATE) and not is_system(str(topic)):
            raise IncompatibleSchema("Schema not found and schema auto updating is disabled.")
        yield from self.putting(topic, schema, created, allow)

    def _loaded(self, topic: TopicName) -> Steps[TopicVersions]:
        """Return the versions of a topic, loading them into the cache if necessary."""
        name = str(topic.base)
        while (found := self._cache.get(name)) is None:
            made, numbers, deletions = TopicVersions(), self.numbers(topic), self._deletions
            for number in numbers:
                stored = self.get(topic, number)
                if stored is not None:
                    made.add(number, stored.schema)
                    yield _STEPS_A_VERSION + len(stored.schema.schema_data) // _BYTES_A_STEP
            if deletions == self._deletions and numbers == self.numbers(topic):
                self._cache.put(name, made)
        return found

    def _finding(self, topic: TopicName, schema: Schema, definitions: Definitions) -> Steps[int | None]:
        """Return the number of the version whose definition, or the meaning of it, equals that of a schema."""
        versions = yield from self._loaded(topic)
        digest = digest_of(schema)
        found = versions.by_digest.get(digest)
        if found is not None or schema.type not in definition.IN_AVRO or not versions.numbers:
            return found
        if digest in versions.unknown:
            return None
        meaning = yield from definition.meaning(schema, definitions)
        while versions.understood < len(versions.numbers):
            number = versions.numbers[versions.understood]
            stored = self.get(topic, number)
            theirs = None if stored is None else (yield from definition.meaning(stored.schema, Definitions()))
            if stored is not None and theirs is not None:
                versions.by_meaning.setdefault((stored.schema.type, theirs), number)
            versions.understood += 1
            yield _STEPS_A_VERSION
        found = None if meaning is None else versions.by_meaning.get((schema.type, meaning))
        versions.recognise(digest, found)
        return found

    def _checking(
        self, topic: TopicName, versions: TopicVersions, schema: Schema, strategy: str, definitions: Definitions
    ) -> Steps[None]:
        """Check a definition and its compatibility with the topic's versions. Verdicts are cached."""
        verdict, count = Verdict(digest_of(schema), strategy), len(versions.numbers)
        if verdict not in versions.verdicts:
            refusal: IncompatibleSchema | None = None
            try:
                yield from definition.checking(schema, definitions)
                stored = compatibility.Versions(
                    versions.types, lambda index: self._schema(topic, versions.numbers[index])
                )
                yield from compatibility.checking(stored, schema, strategy, definitions)
            except IncompatibleSchema as error:
                refusal = error
            if count != len(versions.numbers):
                if refusal is not None:
                    raise refusal
                return
            versions.judge(verdict, refusal)
        versions.raise_cached_error(verdict)

    def _schema(self, topic: TopicName, number: int) -> Schema:
        stored = self.get(topic, number)
        if stored is None:
            raise IncompatibleSchema("the topic's schema is being deleted; try again")
        return stored.schema

    # Changing

    def check_none(self, topic: TopicName) -> None:
        """Admit a producer without a schema. Raise IncompatibleSchema if the topic has one and enforces validation."""
        if self._policies.of(topic).get(VALIDATION_ENFORCED) and self.get(topic) is not None:
            raise IncompatibleSchema(
                "Producers cannot connect or send message without a schema to topics with a schema"
                "when SchemaValidationEnforced is enabled"
            )

    def _add(self, topic: TopicName, schema: Schema, created: int) -> StoredSchema:
        stored = StoredSchema(self._next_version(topic), created, schema)
        self._commits.put_row(schema_key(str(topic.base), stored.version), _to_row(stored))
        self._cache.added(str(topic.base), stored.version, schema)
        return stored

    def delete(self, topic: TopicName, *, force: bool = False) -> int:
        """Delete all versions; return the version number that marks the deletion, -1 with ``force``.

        Later versions continue from this number, so the schema version of a stored message never refers to a
        different schema. ``force`` restarts at 0.
        """
        version = self._next_version(topic)
        for number in self.numbers(topic):
            self._commits.put_row(schema_key(str(topic.base), number), None)
        self._cache.forget(str(topic.base))
        self._deletions += 1
        if force:
            return -1
        if version:
            self._commits.put_row(schema_key(str(topic.base), version), {"deleted": True})
        return version

    def _next_version(self, topic: TopicName) -> int:
        return next(reversed(self.numbers(topic)), -1) + 1


def _on_active_topic(schema: Schema) -> IncompatibleSchema:
    return IncompatibleSchema(
        f"Failed to add schema to an active topic with empty(BYTES) schema: new schema type {spelling(schema.type)}"
    )


def is_schema(schema: Schema) -> bool:
    """Return whether a client's schema is to be registered; BYTES and AUTO_CONSUME are not."""
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
