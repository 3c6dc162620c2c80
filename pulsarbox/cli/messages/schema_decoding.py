"""``--decode``: decode payloads by the schema version they were published with."""

import json
from collections.abc import Callable
from typing import Any, Final

from pulsarbox.client.client import Client
from pulsarbox.client.message_decoder import ReceivedMessage
from pulsarbox.errors import PulsarBoxError
from pulsarbox.protocol.schema import decoding


class Decoding:
    """Payload decoder. Fetches each schema once; leaves undecodable payloads unchanged and reports a schema once."""

    NOTHING: Final = object()
    """Marks a message without a decoded value."""

    def __init__(self) -> None:
        self._client: Client | None = None
        self._decoders: dict[tuple[str, bytes], Callable[[ReceivedMessage], Any] | None] = {}
        self._told: set[tuple[str, bytes]] = set()

    def begin(self, client: Client) -> None:
        """Set the client that fetches schemas."""
        self._client = client

    def value(self, message: ReceivedMessage) -> Any:
        """Return the decoded value of a message, ``NOTHING`` if it has no schema or does not match it."""
        version = message.schema_version
        if not version or message.payload is None or message.encrypted:
            return self.NOTHING
        place = (message.topic, version)
        if place not in self._decoders:
            self._decoders[place] = self._decoder(place)
        decode = self._decoders[place]
        if decode is None:
            return self.NOTHING
        try:
            return decode(message)
        except decoding.UndecodableError as error:
            self._tell(place, f"message {message.id}", str(error))
            return self.NOTHING

    def readable(self, message: ReceivedMessage) -> ReceivedMessage:
        """Return the message with its value as the payload: a string unchanged, other values as JSON, in UTF-8."""
        value = self.value(message)
        if value is self.NOTHING:
            return message
        text = value if isinstance(value, str) else as_json(value)
        return ReceivedMessage(message.entry, message.index, text.encode("utf-8", "surrogateescape"), message.single)

    def _decoder(self, place: tuple[str, bytes]) -> Callable[[ReceivedMessage], Any] | None:
        assert self._client is not None
        try:
            schema = self._client.schema(*place)
            decode = decoding.message_decoder(schema)
        except PulsarBoxError as error:
            self._tell(place, f"schema {int.from_bytes(place[1], 'big')}", str(error))
            return None
        return lambda message: decode(message.key, message.key_is_base64, message.payload or b"")

    def _tell(self, place: tuple[str, bytes], what: str, why: str) -> None:
        if place not in self._told and self._client is not None:
            self._told.add(place)
            self._client.warn(f"cannot decode {what} of {place[0]}: {why}")


def as_json(value: Any) -> str:
    """Return a value as JSON on one line."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
