"""What dead letters have in common: a fingerprint of why each failed, where, and what it looks like.

The reason is what its properties say of an error, without the numbers, ids and quoted texts in it, so that a thousand
orders which fail in one way are one group. Pure; done where entries are read.
"""

import re
from hashlib import blake2b
from typing import Any, Final, NamedTuple, Protocol

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


class Failed(Protocol):
    """What a fingerprint is taken of: see ``messages.Looked``."""

    @property
    def properties(self) -> dict[str, str]:
        """Its properties."""

    @property
    def origin(self) -> str | None:
        """The topic that it was published to first."""

    @property
    def subscription(self) -> str | None:
        """The subscription that gave it up."""

    @property
    def encrypted(self) -> bool:
        """Whether nobody here can read it."""

    @property
    def tombstone(self) -> bool:
        """Whether it was sent without a payload on purpose."""

    @property
    def payload(self) -> bytes | None:
        """None where it cannot be opened."""

    @property
    def said(self) -> Any:
        """What its payload says by its schema, else as JSON; None where it is neither."""


def fingerprint(message: Failed) -> Fingerprint:
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


def shape_of(message: Failed) -> str:
    """What a payload looks like: the fields of what its schema, or JSON, makes of it, or the kind of bytes."""
    if message.encrypted:
        return "encrypted"
    if message.tombstone:
        return "none"
    payload = message.payload
    if not payload:
        return "empty" if payload is not None else "closed"
    value = message.said
    if value is not None:
        return _outline(value, 0)
    try:
        payload[:1000].decode()
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
