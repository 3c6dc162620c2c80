"""``--filter``: select messages by an expression such as ``key == "a" and size > 100 and json.user.age >= 18``.

The names are those of ``protocol.dead_letters.message_filter`` and ``redelivery``, which only a consumer knows.
"""

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from pulsarbox.cli.common.time_arguments import wall_now
from pulsarbox.client.message_decoder import ReceivedMessage
from pulsarbox.protocol.dead_letters.message_filter import Value, message_language
from pulsarbox.protocol.dead_letters.message_view import MessageView

if TYPE_CHECKING:
    from pulsarbox.cli.messages.schema_decoding import Decoding

Filter = Callable[[ReceivedMessage], bool]

_MORE: Final[dict[str, Value]] = {"redelivery": lambda message: message.redelivery}
_UNREAD: Final = object()


class ReceivedView(MessageView):
    """A received message, as filters and fingerprints see it."""

    __slots__ = ("_decoding", "_message", "_properties", "_said")

    def __init__(self, message: ReceivedMessage, decoding: "Decoding | None" = None) -> None:
        """``decoding`` decodes the payload by its schema; without it, only JSON is decoded."""
        self._message = message
        self._decoding = decoding
        self._properties: dict[str, str] | None = None
        self._said: Any = _UNREAD

    @property
    def topic(self) -> str:
        """The topic or partition of the message."""
        return self._message.topic

    @property
    def partition(self) -> int:
        """The partition index, -1 for none."""
        return self._message.partition

    @property
    def message_id(self) -> str:
        """The message ID."""
        return str(self._message.id)

    @property
    def key(self) -> str | None:
        """The partition key as text."""
        return self._message.key

    @property
    def payload(self) -> bytes | None:
        """The payload as published; None for a null value and if it is encrypted."""
        return None if self._message.encrypted else self._message.payload

    @property
    def size(self) -> int:
        """Bytes of the payload."""
        return len(self._message.payload or b"")

    @property
    def publish_time(self) -> int:
        """Milliseconds since 1970, by the producer's clock."""
        return self._message.publish_time

    @property
    def event_time(self) -> int:
        """Milliseconds since 1970, 0 for none."""
        return self._message.event_time

    @property
    def deliver_at(self) -> int:
        """Milliseconds since 1970, 0 for immediate delivery."""
        return self._message.deliver_at

    @property
    def sequence_id(self) -> int:
        """The sequence ID assigned by the producer."""
        return self._message.sequence_id

    @property
    def producer_name(self) -> str:
        """The name of the producer."""
        return self._message.producer_name

    @property
    def redelivery(self) -> int:
        """How often the broker has delivered the message before."""
        return self._message.entry.redelivery

    @property
    def tombstone(self) -> bool:
        """Whether the message has a null value."""
        return self._message.payload is None

    @property
    def encrypted(self) -> bool:
        """Whether the payload is encrypted."""
        return self._message.encrypted

    @property
    def properties(self) -> dict[str, str]:
        """The properties; of a repeated name, the last one."""
        if self._properties is None:
            self._properties = dict(self._message.properties)
        return self._properties

    @property
    def decoded(self) -> Any:
        """The payload decoded by its schema, else as JSON; None if neither is possible."""
        if self._said is _UNREAD:
            self._said = self._read()
        return self._said

    def _read(self) -> Any:
        if self._decoding is not None:
            value = self._decoding.value(self._message)
            if value is not self._decoding.NOTHING and value is not None:
                return value
        try:
            return json.loads(self.payload or b"")
        except (ValueError, RecursionError):
            return None


def parse_filter(text: str, decoding: "Decoding | None" = None) -> Filter:
    """Compile an expression into a predicate of messages. ``decoding``: see ``ReceivedView``. Raises ValueError."""
    holds = message_language(_MORE).parse(text, wall_now())
    return lambda message: holds(ReceivedView(message, decoding))
