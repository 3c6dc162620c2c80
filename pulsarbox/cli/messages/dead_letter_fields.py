"""What a message says as a dead letter, for filters: where it comes from, and why it failed."""

import json
from typing import Any

from pulsarbox.broker.dead_letter.message import (
    ORIGIN_MESSAGE_ID,
    ORIGIN_MESSAGE_ID_OLD,
    REAL_SUBSCRIPTION,
    REAL_TOPIC,
)
from pulsarbox.client.message_decoder import Message


class DeadLetter:
    """One message; see ``broker.jobs.messages.Looked``, which the box has of the same."""

    def __init__(self, message: Message) -> None:
        self._message = message
        self.properties = dict(message.properties)

    @property
    def origin(self) -> str | None:
        """The topic that it was published to first."""
        return self.properties.get(REAL_TOPIC)

    @property
    def subscription(self) -> str | None:
        """The subscription that gave it up, where that is told."""
        return self.properties.get(REAL_SUBSCRIPTION)

    @property
    def origin_id(self) -> str | None:
        """Its id in the topic that it was published to first."""
        return self.properties.get(ORIGIN_MESSAGE_ID) or self.properties.get(ORIGIN_MESSAGE_ID_OLD)

    @property
    def reason(self) -> str | None:
        """Why it failed, without what differs from one time to the next."""
        from pulsarbox.broker.replay.fingerprint import reason_of

        return reason_of(self.properties) or None

    @property
    def replays(self) -> int:
        """How often it was put back."""
        from pulsarbox.broker.replay.entry_messages import replays_of

        return replays_of(self.properties)

    @property
    def fingerprint(self) -> str:
        """What it has in common with others that fail in the same way."""
        from pulsarbox.broker.replay.fingerprint import fingerprint

        return fingerprint(self).digest

    @property
    def encrypted(self) -> bool:
        """Whether nobody here can read it."""
        return self._message.encrypted

    @property
    def tombstone(self) -> bool:
        """Whether it was sent without a payload on purpose."""
        return self._message.payload is None

    @property
    def payload(self) -> bytes | None:
        """What it says; as JSON where it was decoded."""
        return self._message.payload

    @property
    def said(self) -> Any:
        """The same as a value, None where it is no JSON."""
        try:
            return json.loads(self.payload or b"")
        except (ValueError, RecursionError):
            return None
