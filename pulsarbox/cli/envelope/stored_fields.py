"""Envelope fields for the storage of a message: its batch, codec, chunks, encryption and schema.

``produce`` ignores them without ``--preserve``. ``docs/cli.md`` lists them.
"""

import base64
import binascii
import json
from collections.abc import Callable
from typing import Any, Final

from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet

from pulsarbox.client.client import Client
from pulsarbox.client.message_decoder import text
from pulsarbox.errors import PulsarBoxError
from pulsarbox.plugins.compression.wire import CODECS
from pulsarbox.protocol.PulsarApi_pb2 import KeyValue, MessageMetadata, Schema
from pulsarbox.protocol.schema.types import SCHEMA_TYPES, spelling

_CODEC_NAMES: Final = {number: name for name, number in CODECS.items()}
_COUNT_MAX: Final = 2**31 - 1
"""Message counts are signed 32-bit integers in the protocol."""
_TOLD: Final = (
    *("producer_name", "sequence_id", "publish_time", "properties", "partition_key", "partition_key_b64_encoded"),
    *("ordering_key", "null_partition_key", "event_time", "deliver_at_time", "schema_version", "compression"),
    "num_messages_in_batch",
)
"""Metadata stored in other fields of an envelope."""
_SELDOM: Final = ("replicated_from", "encryption_algo", "encryption_param", "schema_id", "marker_type")
_TRANSACTION: Final = ("txnid_least_bits", "txnid_most_bits")
"""Omitted: a message that can be read is committed."""
_OPENED: Final = (
    *("uncompressed_size", "null_value", "uuid", "num_chunks_from_msg", "total_chunk_msg_size", "chunk_id"),
    *("compacted_batch_indexes", "highest_sequence_id"),
)
"""Metadata of an unpacked body. An encrypted body stays packed, so it needs these."""

Ask = Callable[[str, bytes], Schema | None]
"""Lookup of a schema version of a topic; returns None if unavailable."""


def written(metadata: MessageMetadata, chunks: int) -> dict[str, Any]:
    """Return the storage fields of an entry; empty for a plain unbatched message.

    ``chunks`` is the number of assembled entries.
    """
    found: dict[str, Any] = {}
    if metadata.HasField("num_messages_in_batch"):
        found["batch"] = metadata.num_messages_in_batch
    if metadata.compression:
        found["compression"] = _CODEC_NAMES.get(metadata.compression, str(metadata.compression))
    if chunks > 1:
        found["chunks"] = chunks
    if metadata.encryption_keys:
        found["encrypted"] = True
    has = metadata.HasField
    if metadata.encryption_keys or metadata.replicate_to or any(map(has, _SELDOM)) or len(UnknownFieldSet(metadata)):
        found["metadata_b64"] = base64.b64encode(_rest(metadata)).decode()
    return found


def _rest(metadata: MessageMetadata) -> bytes:
    """Return the metadata not stored in other fields, including unknown fields."""
    rest = MessageMetadata()
    rest.CopyFrom(metadata)
    for name in (*_TOLD, *_TRANSACTION, *(() if metadata.encryption_keys else _OPENED)):
        rest.ClearField(name)
    return rest.SerializePartialToString()


class SchemaLookup:
    """Schemas from the broker for envelopes. Reports the first refused one, and leaves refused ones undefined."""

    def __init__(self) -> None:
        self._client: Client | None = None
        self._is_told = False

    def begin(self, client: Client) -> None:
        """Set the client that fetches schemas."""
        self._client = client

    def __call__(self, topic: str, version: bytes) -> Schema | None:
        """Return a schema version of a topic, None if unavailable."""
        if self._client is None:
            return None
        try:
            return self._client.schema(topic, version)
        except PulsarBoxError as error:
            if not self._is_told:
                self._is_told = True
                number = int.from_bytes(version, "big")
                self._client.warn(f"cannot write schema version {number} of {topic} to the output: {error}")
            return None


class SchemaDefinitions:
    """Schema definitions in envelopes: each version once per topic, with its first message."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._written: set[tuple[str, bytes]] = set()

    def first(self, topic: str, version: bytes) -> str:
        """Return the field for a version not written yet, with a leading comma; otherwise empty."""
        if (topic, version) in self._written:
            return ""
        self._written.add((topic, version))
        schema = self._ask(topic, version)
        return "" if schema is None else f',"schema_definition":{json.dumps(_defined(schema), separators=(",", ":"))}'


def _defined(schema: Schema) -> dict[str, Any]:
    found: dict[str, Any] = {"name": text(schema.name), "type": spelling(schema.type)}
    try:
        found["data"] = schema.schema_data.decode()
    except UnicodeDecodeError:
        found["data_b64"] = base64.b64encode(schema.schema_data).decode()
    if schema.properties:
        found["properties"] = [[text(each.key), text(each.value)] for each in schema.properties]
    return found


# Reading -------------------------------------------------------------------------------------------------------------


def codec(document: dict[str, Any]) -> int:
    """Return the CompressionType of an envelope. Raises ValueError."""
    name = document.get("compression", "none")
    if type(name) is not str or name not in CODECS:
        raise ValueError(f"unknown compression {name!r}; expected one of {', '.join(CODECS)}")
    return CODECS[name]


def batch(document: dict[str, Any]) -> int:
    """Return the batch size of an envelope, 0 for an unbatched message. Raises ValueError."""
    value = document.get("batch", 0)
    if type(value) is not int or not 0 <= value <= _COUNT_MAX:
        raise ValueError(f"batch: expected a number from 0 to {_COUNT_MAX}")
    return value


def metadata(document: dict[str, Any]) -> MessageMetadata | None:
    """Return the metadata not stored in other fields, None without any. Raises ValueError."""
    if document.get("metadata_b64") is None:
        return None
    found = MessageMetadata()
    try:
        found.MergeFromString(base64.b64decode(document["metadata_b64"], validate=True))
    except (binascii.Error, TypeError, ValueError):
        raise ValueError("metadata_b64 is not base64") from None
    except DecodeError:
        raise ValueError("metadata_b64 is not a valid Protobuf MessageMetadata") from None
    return found


def schema(document: dict[str, Any]) -> Schema | None:
    """Return the schema definition in an envelope, None without one. Raises ValueError."""
    found = document.get("schema_definition")
    if found is None:
        return None
    try:
        data = base64.b64decode(found["data_b64"], validate=True) if "data_b64" in found else found["data"].encode()
        properties = [KeyValue(key=key, value=value) for key, value in found.get("properties", [])]
        made = Schema(name=found["name"], type=SCHEMA_TYPES[found["type"]], schema_data=data, properties=properties)
    except (AttributeError, KeyError, TypeError, ValueError):
        raise ValueError("schema_definition: expected an object with name, type, data and properties") from None
    return made
