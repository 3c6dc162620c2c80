"""``--filter``: select messages by an expression such as ``key == "a" and size > 100 and json.user.age >= 18``.

The language is that of ``expressions``. Names: topic, partition, id, key, payload (text), size, props.name or
props["name"], json.a.b (of the payload), publish_time, event_time, deliver_at, seq, producer, redelivery, tombstone,
encrypted. For dead letters: origin, origin_id, subscription, reason, replays, fingerprint.
"""

from collections.abc import Callable
from typing import Any, Final

from pulsarbox.cli.common.time_arguments import wall_now
from pulsarbox.cli.messages.format_string import json_at
from pulsarbox.client.message_decoder import ReceivedMessage
from pulsarbox.expressions import Language

Filter = Callable[[ReceivedMessage], bool]
_Value = Callable[[ReceivedMessage], Any]

NAMES: Final[dict[str, _Value]] = {
    "topic": lambda message: message.topic,
    "partition": lambda message: message.partition,
    "id": lambda message: str(message.id),
    "key": lambda message: message.key,
    "payload": lambda message: None if message.payload is None else message.payload.decode("utf-8", "replace"),
    "size": lambda message: len(message.payload or b""),
    "publish_time": lambda message: message.publish_time,
    "event_time": lambda message: message.event_time or None,
    "deliver_at": lambda message: message.deliver_at or None,
    "seq": lambda message: message.sequence_id,
    "producer": lambda message: message.producer_name,
    "redelivery": lambda message: message.entry.redelivery,
    "tombstone": lambda message: message.payload is None,
    "encrypted": lambda message: message.encrypted,
}
DEAD_LETTER_NAMES: Final = ("origin", "origin_id", "subscription", "reason", "replays", "fingerprint")


def _of_dead_letter(name: str) -> _Value:
    def value(message: ReceivedMessage) -> Any:
        from pulsarbox.cli.messages.dead_letter_fields import DeadLetter

        return getattr(DeadLetter(message), name)

    return value


def _named(name: str) -> _Value | None:
    if name == "props":
        return lambda message: dict(message.properties)
    if name == "json":
        return lambda message: json_at(message.payload or b"", [])
    return _of_dead_letter(name) if name in DEAD_LETTER_NAMES else NAMES.get(name)


def _member(name: str, path: list[str]) -> _Value | None:
    if name == "json":
        return lambda message: json_at(message.payload or b"", path)
    if name == "props" and len(path) == 1:
        return lambda message: dict(message.properties).get(path[0])
    return None


_LANGUAGE: Final = Language(_named, _member, ", ".join([*NAMES, *DEAD_LETTER_NAMES, "props.name", "json.path"]))


def parse_filter(text: str) -> Filter:
    """Compile an expression into a predicate of messages. Raises ValueError."""
    return _LANGUAGE.parse(text, wall_now())
