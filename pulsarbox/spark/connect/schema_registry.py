"""Cache of topic schemas from the broker's registry."""

from collections.abc import Sequence
from typing import Any, Final

from pulsarbox.errors import TopicNotFound
from pulsarbox.names import parse_topic
from pulsarbox.protocol.PulsarApi_pb2 import Schema
from pulsarbox.protocol.schema.types import BYTES
from pulsarbox.spark.connect.broker_api import Service
from pulsarbox.spark.topic_segments import Reach

NEWEST: Final = b""


class Registry:
    """Schemas by topic and version. Cached schemas are pickled for workers, which request the rest themselves."""

    def __init__(self, reach: Reach) -> None:
        self._reach = reach
        self._known: dict[tuple[str, bytes], bytes | None] = {}
        """Serialized schemas; None for a topic without one."""
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
            for base, schema in zip(unknown, self._open().client.latest_schemas(unknown), strict=True):
                self._known[base, NEWEST] = _kept(schema)
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

    def _asked(self, topic: str, version: bytes) -> bytes | None:
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


def _kept(schema: Schema | None) -> bytes | None:
    return None if schema is None or schema.type == BYTES else schema.SerializeToString()
