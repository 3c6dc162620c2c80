"""What dead letters have in common: a fingerprint of why each failed, where, and what it looks like.

The reason is what its properties say of an error, without the numbers, ids and quoted texts in it, so that a thousand
orders which fail in one way are one group. Pure; done where entries are read.
"""

import re
from hashlib import blake2b
from typing import Any, Final, NamedTuple

from pulsarbox.broker.jobs.messages import Looked
from pulsarbox.protocol.schema.types import spelling

_TELLING: Final = re.compile(r"exception|error|reason|cause|failure", re.IGNORECASE)
_STACKS: Final = re.compile(r"stack|trace", re.IGNORECASE)
_OFTEN: Final = re.compile(
    r"""\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b    # a UUID
    | "[^"]*" | '[^']*'                                              # what is quoted is a value
    | \b0x[0-9a-fA-F]+\b | @[0-9a-fA-F]{5,}\b | \b(?=[0-9a-fA-F]*\d)[0-9a-fA-F]{8,}\b
    | [-+]?\d+(?:[.:,/\-]\d+)*""",
    re.VERBOSE,
)
_TEXT_MAX: Final = 200
_TOLD_MAX: Final = 4
"""Properties that are taken for the reason, at most."""
_FIELDS_MAX: Final = 40
_DEPTH_MAX: Final = 3


class Fingerprint(NamedTuple):
    """Why a message failed, as far as that can be seen."""

    digest: str
    """Twelve hex digits that stand for all the others."""
    reason: str
    origin: str
    subscription: str
    shape: str


def fingerprint(message: Looked) -> Fingerprint:
    """Of one message."""
    reason, shape = reason_of(message.properties), shape_of(message)
    origin, subscription = message.origin or "", message.subscription or ""
    told = "\0".join((reason, origin, subscription, shape)).encode("utf-8", "replace")
    return Fingerprint(blake2b(told, digest_size=6).hexdigest(), reason, origin, subscription, shape)


def reason_of(properties: dict[str, str]) -> str:
    """What the properties say of an error, without what differs from one time to the next; empty where nothing does."""
    names = [name for name in sorted(properties) if _TELLING.search(name) and not _STACKS.search(name)]
    if len(names) > 1 and "DEAD_LETTER_REASON" in names:
        names.remove("DEAD_LETTER_REASON")  # the others say why it was given back
    return "; ".join(filter(None, [_alike(properties[name]) for name in names[:_TOLD_MAX]]))


def _alike(text: str) -> str:
    line = text.strip().partition("\n")[0][: 4 * _TEXT_MAX]
    return _OFTEN.sub("#", line).strip()[:_TEXT_MAX]


def shape_of(message: Looked) -> str:
    """What a payload looks like: its schema, the fields of a JSON object, or the kind of bytes."""
    if message.encrypted:
        return "encrypted"
    if message.tombstone:
        return "none"
    if message.payload is None:
        return "closed"
    schema = message.schema
    if schema is not None:
        value = message.value
        return f"{spelling(schema.type)} {_outline(value, 0) if value is not None else 'that does not fit'}"
    if not message.payload:
        return "empty"
    if message.json is not None:
        return f"JSON {_outline(message.json, 0)}"
    try:
        message.payload[:1000].decode()
    except UnicodeDecodeError as error:
        if error.start < 997:  # else a character that goes on behind the cut
            return "binary"
    return "text"


def _outline(value: Any, depth: int) -> str:
    if isinstance(value, dict):
        if depth >= _DEPTH_MAX:
            return "object"
        fields = sorted(value)[:_FIELDS_MAX]
        return "{" + ", ".join(f"{str(name)[:40]}: {_outline(value[name], depth + 1)}" for name in fields) + "}"
    if isinstance(value, list):
        return f"[{_outline(value[0], depth + 1)}]" if value and depth < _DEPTH_MAX else "list"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    return "null" if value is None else "text"
