"""Cache of topic schemas from the broker's registry."""

from collections.abc import Sequence
from struct import Struct
from typing import Any, Final

from pulsarbox.errors import TopicNotFound
from pulsarbox.names import parse_topic
from pulsarbox.protocol.PulsarApi_pb2 import Schema
from pulsarbox.protocol.schema.types import BYTES
from pulsarbox.spark.connect.broker_api import Service
from pulsarbox.spark.topic_segments import Reach

NEWEST: Final = b""
VERSIONS_MAX: Final = 16
_VERSION: Final = Struct(">q")


class Registry:
    """Schemas by topic and version. Cached schemas are pickled for workers, which request the rest themselves."""

    def __init__(self, reach: Reach) -> None:
        self._reach = reach
        self._known: dict[tuple[str, bytes], bytes | None] = {}
        """Serialized schemas; None for a topic without one."""
        self._versions: dict[str, bytes] = {}
        """Versions of the newest schemas."""
        self._service: Service | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_service": None}

    def newest(self, topic: str) -> Schema | None:
        """Return a topic's current schema, or None. Raises PulsarBoxError if the request fails."""
        return self.at(topic, NEWEST)

    def newest_of(self, topics: Sequence[str]) -> list[Schema | None]:
        """Return the current schemas of many topics, requesting those not cached together."""
        bases = [str(parse_topic(topic).base) for topic in topics]
        unknown = [base for base in dict.fromkeys(bases) if (base, NEWEST) not in self._known]
        if len(unknown) > 1:
            for base, found in zip(unknown, self._open().client.latest_schemas(unknown), strict=True):
                self._learn(base, found)
        return [self.newest(base) for base in bases]

    def at(self, topic: str, version: bytes) -> Schema | None:
        """Return the schema that a message was written with, by its version. Raises PulsarBoxError."""
        base = str(parse_topic(topic).base)
        place = (base, version)
        if place not in self._known:
            self._known[place] = self._asked(base, version)
        found = self._known[place]
        return None if found is None else Schema.FromString(found)

    def know(self, topic: str, version: bytes, schema: Schema | None) -> None:
        """Add a schema to the cache."""
        self._known[str(parse_topic(topic).base), version] = None if schema is None else schema.SerializeToString()

    def versions(self, topic: str) -> list[bytes]:
        """Return up to VERSIONS_MAX versions of a topic's schema that messages may have, the newest first."""
        newest = self._versions.get(str(parse_topic(topic).base), b"")
        if len(newest) != _VERSION.size:
            return []
        (number,) = _VERSION.unpack(newest)
        return [_VERSION.pack(each) for each in range(number, max(-1, number - VERSIONS_MAX), -1)]

    def _learn(self, topic: str, found: tuple[Schema, bytes] | None) -> bytes | None:
        """Store the newest schema of a topic, and its version."""
        kept = None if found is None else _kept(found[0])
        self._known[topic, NEWEST] = kept
        if found is not None:
            self._known[topic, found[1]] = kept
            self._versions[topic] = found[1]
        return kept

    def _asked(self, topic: str, version: bytes) -> bytes | None:
        if version == NEWEST:
            return self._learn(topic, self._open().client.latest_schema(topic))
        try:
            return _kept(self._open().schema(topic, version))
        except TopicNotFound:
            return None

    def _open(self) -> Service:
        if self._service is None:
            self._service = Service(self._reach)
        return self._service

    def close(self) -> None:
        """Close the connection, if any. Raises nothing."""
        service, self._service = self._service, None
        if service is not None:
            service.close()


def _kept(schema: Schema) -> bytes | None:
    return None if schema.type == BYTES else schema.SerializeToString()
