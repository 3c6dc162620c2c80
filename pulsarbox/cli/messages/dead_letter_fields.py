"""Dead letter fields of a message for filters: its origin and why it failed."""

import json
from typing import Any

from pulsarbox.broker.dead_letter.message import (
    ORIGIN_MESSAGE_ID,
    ORIGIN_MESSAGE_ID_OLD,
    REAL_SUBSCRIPTION,
    REAL_TOPIC,
)
from pulsarbox.client.message_decoder import ReceivedMessage


class DeadLetter:
    """A dead letter, as read by a client. The counterpart in the box is ``broker.jobs.messages.Looked``."""

    def __init__(self, message: ReceivedMessage) -> None:
        self._message = message
        self.properties = dict(message.properties)

    @property
    def origin(self) -> str | None:
        """Topic of the original message."""
        return self.properties.get(REAL_TOPIC)

    @property
    def subscription(self) -> str | None:
        """Subscription that gave up the message, if known."""
        return self.properties.get(REAL_SUBSCRIPTION)

    @property
    def origin_id(self) -> str | None:
        """ID of the original message."""
        return self.properties.get(ORIGIN_MESSAGE_ID) or self.properties.get(ORIGIN_MESSAGE_ID_OLD)

    @property
    def reason(self) -> str | None:
        """Normalized failure reason."""
        from pulsarbox.broker.replay.fingerprint import reason_of

        return reason_of(self.properties) or None

    @property
    def replays(self) -> int:
        """Number of replays."""
        from pulsarbox.broker.replay.entry_messages import replays_of

        return replays_of(self.properties)

    @property
    def fingerprint(self) -> str:
        """Digest shared by messages that fail in the same way."""
        from pulsarbox.broker.replay.fingerprint import fingerprint

        return fingerprint(self).digest

    @property
    def encrypted(self) -> bool:
        """Whether the payload is encrypted."""
        return self._message.encrypted

    @property
    def tombstone(self) -> bool:
        """Whether the message has a null value."""
        return self._message.payload is None

    @property
    def payload(self) -> bytes | None:
        """The payload, as JSON if decoded."""
        return self._message.payload

    @property
    def said(self) -> Any:
        """The payload as a JSON value, None if it is not JSON."""
        try:
            return json.loads(self.payload or b"")
        except (ValueError, RecursionError):
            return None
