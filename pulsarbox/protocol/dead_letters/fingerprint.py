"""Fingerprints of dead letters: the reason, origin and payload shape by which they are grouped.

The reason is the error text from a message's properties without numbers, ids and quoted values, so a thousand orders
that fail in the same way form one group.
"""

import re
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, Final, NamedTuple

from pulsarbox.protocol.dead_letters.message_view import MessageView
from pulsarbox.protocol.dead_letters.properties import DEAD_LETTER_REASON

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
"""Maximum number of properties used for the reason."""
_FIELDS_MAX: Final = 40
_DEPTH_MAX: Final = 3


class Fingerprint(NamedTuple):
    """The cause of a failure, as far as the message shows it."""

    digest: str
    """Digest of the other fields: 12 hex digits."""
    reason: str
    origin: str
    subscription: str
    shape: str


def fingerprint(message: MessageView) -> Fingerprint:
    """Return the fingerprint of a message."""
    reason, shape = reason_of(message.properties), shape_of(message)
    origin, subscription = message.origin or "", message.subscription or ""
    told = "\0".join((reason, origin, subscription, shape)).encode("utf-8", "replace")
    return Fingerprint(blake2b(told, digest_size=6).hexdigest(), reason, origin, subscription, shape)


def reason_of(properties: Mapping[str, str]) -> str:
    """Return the error text in the properties without variable parts; empty if there is none."""
    names = [name for name in sorted(properties) if _TELLING.search(name) and not _STACKS.search(name)]
    if len(names) > 1 and DEAD_LETTER_REASON in names:
        names.remove(DEAD_LETTER_REASON)  # the others are more specific
    return "; ".join(filter(None, [_alike(properties[name]) for name in names[:_TOLD_MAX]]))


def _alike(text: str) -> str:
    line = text.strip().partition("\n")[0][: 4 * _TEXT_MAX]
    return _OFTEN.sub("#", line).strip()[:_TEXT_MAX]


def shape_of(message: MessageView) -> str:
    """Return the shape of a payload: the field names and types of its value, or the kind of its bytes."""
    if message.encrypted:
        return "encrypted"
    if message.tombstone:
        return "none"
    payload = message.payload
    if not payload:
        return "empty" if payload is not None else "closed"
    value = message.decoded
    if value is not None:
        return _outline(value, 0)
    try:
        payload[:1000].decode()
    except UnicodeDecodeError as error:
        if error.start < 997:  # later errors may come from a character cut off at the end
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
