"""Edits of replayed messages: properties, key and payload. Pure."""

from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from pulsarbox.errors import Unprocessable
from pulsarbox.protocol.PulsarApi_pb2 import MessageMetadata, SingleMessageMetadata
from pulsarbox.storage.catalog import Row

_FIELDS: Final = ("setProperties", "removeProperties", "key", "payload", "payloadBase64")


class Edit(NamedTuple):
    """A change to each message that a job replays."""

    put: Mapping[str, str]
    """Properties to set."""
    remove: tuple[str, ...]
    """Names of properties to remove."""
    key: str | None
    """New key; None: unchanged."""
    payload: bytes | None
    """New payload; None: unchanged."""

    @property
    def row(self) -> Row:
        """The edit as in a request, for storage."""
        found: Row = {}
        if self.put:
            found["setProperties"] = dict(self.put)
        if self.remove:
            found["removeProperties"] = list(self.remove)
        if self.key is not None:
            found["key"] = self.key
        if self.payload is not None:
            found["payloadBase64"] = b64encode(self.payload).decode()
        return found

    def apply(self, own: MessageMetadata | SingleMessageMetadata) -> None:
        """Edit the metadata of a message; the caller replaces its payload."""
        gone = {*self.remove, *self.put}
        if gone:
            kept = [each for each in own.properties if each.key not in gone]
            del own.properties[:]
            own.properties.extend(kept)
            for name, value in self.put.items():
                own.properties.add(key=name, value=value)
        if self.key is not None:
            self.apply_key(own)
        if self.payload is not None:
            own.null_value = False

    def apply_key(self, of: MessageMetadata | SingleMessageMetadata) -> None:
        """Set the key of a message or of its batch."""
        assert self.key is not None
        of.partition_key = self.key
        of.partition_key_b64_encoded = False
        of.null_partition_key = False
        of.ClearField("ordering_key")  # it takes precedence when choosing the consumer


def read_edit(value: Any) -> Edit | None:
    """Parse the edit in a request; return None if it changes nothing. Raises Unprocessable."""
    if value is None:
        return None
    if not isinstance(value, dict):
        raise Unprocessable(f"edit is an object of {', '.join(_FIELDS)}")
    unknown = [name for name in value if name not in _FIELDS]
    if unknown:
        raise Unprocessable(f"edit has no {unknown[0]!r}: there are {', '.join(_FIELDS)}")
    put, remove = value.get("setProperties") or {}, value.get("removeProperties") or []
    if not isinstance(put, dict) or not all(isinstance(each, str) for each in put.values()):
        raise Unprocessable("edit.setProperties is an object of texts")
    if not isinstance(remove, list) or not all(isinstance(each, str) for each in remove):
        raise Unprocessable("edit.removeProperties is a list of names")
    key = value.get("key")
    if key is not None and not isinstance(key, str):
        raise Unprocessable("edit.key is a text")
    edit = Edit(put, tuple(remove), key, _payload(value))
    return edit if edit.row else None


def _payload(value: dict[str, Any]) -> bytes | None:
    text, encoded = value.get("payload"), value.get("payloadBase64")
    if text is not None and encoded is not None:
        raise Unprocessable("edit has payload (text) or payloadBase64, not both")
    if text is not None:
        if not isinstance(text, str):
            raise Unprocessable("edit.payload is a text; bytes go into edit.payloadBase64")
        return text.encode()
    if encoded is None:
        return None
    try:
        return b64decode(encoded, validate=True)
    except (ValueError, TypeError):
        raise Unprocessable("edit.payloadBase64 is not base64") from None
