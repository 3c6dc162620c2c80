"""The metadata of a package: description, contact, times and properties."""

from typing import Any, Final

from pulsarbox.errors import BadRequest, PayloadTooLarge
from pulsarbox.server.http.framework.request import compact, kind_of, texts

METADATA_BYTES_MAX: Final = 64 << 10
"""Maximum bytes of metadata as JSON."""
NO_METADATA: Final = "Unknown error, metadata is null when processing update package metadata request"
"""Pulsar's message for a request without metadata, of either kind."""
_TEXTS: Final = ("description", "contact")


def parse_metadata(value: Any) -> dict[str, Any]:
    """Return the metadata of a request without the times, which the box sets. Unknown fields are ignored, as in Pulsar.

    Raises BadRequest, PayloadTooLarge.
    """
    if not isinstance(value, dict):
        raise BadRequest(f"The metadata must be a JSON object, not {kind_of(value)}")
    found: dict[str, Any] = {name: _text(name, value[name]) for name in _TEXTS if value.get(name) is not None}
    if value.get("properties") is not None:
        found["properties"] = texts(value["properties"], "properties")
    if len(compact(found)) > METADATA_BYTES_MAX:
        raise PayloadTooLarge(f"The metadata of a package is larger than {METADATA_BYTES_MAX:,} bytes")
    return found


def shown_metadata(row: dict[str, Any]) -> dict[str, Any]:
    """Return the metadata in the order in which Pulsar returns it."""
    order = ("description", "contact", "createTime", "modificationTime", "properties")
    return {name: row[name] for name in order if name in row}


def _text(name: str, value: Any) -> str:
    if isinstance(value, dict | list):
        raise BadRequest(f"{name} must be text, not {kind_of(value)}")
    return value if isinstance(value, str) else compact(value)
