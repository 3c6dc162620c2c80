"""Filters of stored messages for jobs, in the common filter language.

Names are those of ``consume --filter``; ``json`` is the payload decoded by its schema, else as JSON.
"""

from collections.abc import Callable
from typing import Any, Final

from pulsarbox.broker.replay.entry_messages import Looked
from pulsarbox.broker.replay.fingerprint import fingerprint, reason_of
from pulsarbox.errors import Unprocessable
from pulsarbox.expressions import Language, inside
from pulsarbox.protocol.topics_pattern import linear

Wanted = Callable[[Looked], bool]
_Value = Callable[[Looked], Any]

NAMES: Final[dict[str, _Value]] = {
    "topic": lambda message: message.source,
    "partition": lambda message: message.partition,
    "id": lambda message: message.message_id,
    "key": lambda message: message.key,
    "payload": lambda message: None if message.payload is None else message.payload.decode("utf-8", "replace"),
    "size": lambda message: len(message.entry.body if message.payload is None else message.payload),
    "publish_time": lambda message: message.entry.publish_time,
    "event_time": lambda message: message.own.event_time or None,
    "deliver_at": lambda message: message.entry.deliver_at or None,
    "seq": lambda message: message.own.sequence_id,
    "producer": lambda message: message.metadata.producer_name,
    "tombstone": lambda message: message.tombstone,
    "encrypted": lambda message: message.encrypted,
    "origin": lambda message: message.origin,
    "origin_id": lambda message: message.origin_id,
    "subscription": lambda message: message.subscription,
    "reason": lambda message: reason_of(message.properties) or None,
    "fingerprint": lambda message: fingerprint(message).digest,
    "replays": lambda message: message.replays,
}


def _named(name: str) -> _Value | None:
    if name == "props":
        return lambda message: message.properties
    if name == "json":
        return lambda message: message.said
    return NAMES.get(name)


def _member(name: str, path: list[str]) -> _Value | None:
    if name == "json":
        return lambda message: inside(message.said, path)
    if name == "props" and len(path) == 1:
        return lambda message: message.properties.get(path[0])
    return None


def _searched(message: Looked) -> list[str]:
    """Return the texts that ``/pattern`` searches: payload, key and properties."""
    payload = "" if message.payload is None else message.payload.decode("utf-8", "replace")
    return [payload, message.key or "", *(f"{name}={value}" for name, value in message.properties.items())]


_LANGUAGE: Final = Language(
    _named,
    _member,
    ", ".join([*NAMES, "props.name", "json.path"]),
    searched=_searched,
    compiled=linear,
)


def parse_filter(text: str, now: int) -> Wanted | None:
    """Return the predicate for a filter, None for an empty one, which matches all messages.

    ``now`` (ms since 1970) is the base of relative times such as time("-1h"). Raises Unprocessable.
    """
    if not text.strip():
        return None
    try:
        return _LANGUAGE.parse(text, now)
    except ValueError as error:
        raise Unprocessable(f"filter: {error}") from None
