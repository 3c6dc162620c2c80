"""Schemas of topics, from the broker's registry: each is asked for once."""

from typing import Any, Final

from pulsarbox.errors import TopicNotFound
from pulsarbox.names import parse_topic
from pulsarbox.protocol.PulsarApi_pb2 import Schema
from pulsarbox.protocol.schema.types import BYTES
from pulsarbox.spark.segments import Reach
from pulsarbox.spark.service import Service

NEWEST: Final = b""


class Registry:
    """Schemas by topic and version. What it knows travels with it to workers; they ask for the rest themselves."""

    def __init__(self, reach: Reach) -> None:
        self._reach = reach
        self._known: dict[tuple[str, bytes], bytes | None] = {}
        """Serialised; None where there is none."""
        self._service: Service | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_service": None}

    def newest(self, topic: str) -> Schema | None:
        """The schema that a topic has now; None without one. Raises PulsarBoxError where the broker cannot be asked."""
        return self.at(topic, NEWEST)

    def at(self, topic: str, version: bytes) -> Schema | None:
        """The schema that a message was written with, by the version that it names. Raises PulsarBoxError."""
        base = str(parse_topic(topic).base)
        place = (base, version)
        if place not in self._known:
            self._known[place] = self._asked(base, version)
        found = self._known[place]
        return None if found is None else Schema.FromString(found)

    def know(self, topic: str, version: bytes, schema: Schema | None) -> None:
        """What somebody else has asked for."""
        self._known[str(parse_topic(topic).base), version] = None if schema is None else schema.SerializeToString()

    def _asked(self, topic: str, version: bytes) -> bytes | None:
        if self._service is None:
            self._service = Service(self._reach)
        try:
            found = self._service.schema(topic, version)
        except TopicNotFound:
            return None
        return None if found.type == BYTES else found.SerializeToString()

    def close(self) -> None:
        """Let the connection go, if there is one. Raises nothing."""
        service, self._service = self._service, None
        if service is not None:
            service.close()
