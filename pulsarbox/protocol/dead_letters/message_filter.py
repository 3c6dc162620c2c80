"""Message filters, such as ``key == "a" and size > 100 and json.user.age >= 18``, in the language of ``expressions``.

``json`` is the payload decoded by its schema, else as JSON. ``/pattern`` searches payload, key and properties. Patterns
are those of RE2, for every user of a filter, because a job must select the messages that a command has shown.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from pulsarbox.expressions import Language, inside
from pulsarbox.protocol.dead_letters.fingerprint import fingerprint, reason_of
from pulsarbox.protocol.dead_letters.message_view import MessageView
from pulsarbox.protocol.topics_pattern import linear

Value = Callable[[Any], Any]
"""Function from a ``MessageView`` to the value of a name."""

NAMES: Final[Mapping[str, Callable[[MessageView], Any]]] = {
    "topic": lambda message: message.topic,
    "partition": lambda message: message.partition,
    "id": lambda message: message.message_id,
    "key": lambda message: message.key,
    "payload": lambda message: None if message.tombstone or message.payload is None else _text(message),
    "size": lambda message: message.size,
    "publish_time": lambda message: message.publish_time,
    "event_time": lambda message: message.event_time or None,
    "deliver_at": lambda message: message.deliver_at or None,
    "seq": lambda message: message.sequence_id,
    "producer": lambda message: message.producer_name,
    "tombstone": lambda message: message.tombstone,
    "encrypted": lambda message: message.encrypted,
    # Of dead letters
    "origin": lambda message: message.origin,
    "origin_id": lambda message: message.origin_id,
    "subscription": lambda message: message.subscription,
    "reason": lambda message: reason_of(message.properties) or None,
    "replays": lambda message: message.replays,
    "fingerprint": lambda message: fingerprint(message).digest,
}


def message_language(more: Mapping[str, Value] | None = None) -> Language:
    """Return the language of message filters. ``more``: names beyond ``NAMES``, for views that have more attributes."""
    names = {**NAMES, **(more or {})}

    def named(name: str) -> Value | None:
        if name == "props":
            return lambda message: message.properties
        if name == "json":
            return lambda message: message.decoded
        return names.get(name)

    return Language(
        named,
        _member,
        ", ".join([*names, "props.name", "json.path"]),
        searched=_searched,
        compiled=linear,
    )


def _member(name: str, path: list[str]) -> Value | None:
    if name == "json":
        return lambda message: inside(message.decoded, path)
    if name == "props" and len(path) == 1:
        return lambda message: message.properties.get(path[0])
    return None


def _text(message: MessageView) -> str:
    return (message.payload or b"").decode("utf-8", "replace")


def _searched(message: MessageView) -> list[str]:
    return [_text(message), message.key or "", *(f"{name}={value}" for name, value in message.properties.items())]
