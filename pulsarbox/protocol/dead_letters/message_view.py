"""Attributes of one message for filters and fingerprints, whoever has read it."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, Protocol

from pulsarbox.protocol.dead_letters.properties import (
    ORIGIN_MESSAGE_ID,
    ORIGIN_MESSAGE_ID_OLD,
    REAL_SUBSCRIPTION,
    REAL_TOPIC,
    replays_of,
)


class MessageView(Protocol):
    """One message. The broker's view is ``broker.replay.entry_messages.InspectedMessage``; the CLI has its own."""

    __slots__ = ()

    @property
    @abstractmethod
    def topic(self) -> str:
        """The topic or partition it is stored in."""

    @property
    @abstractmethod
    def partition(self) -> int:
        """Partition index of the topic; -1 if the topic is not a partition."""

    @property
    @abstractmethod
    def message_id(self) -> str:
        """``ledger:entry:partition:index``; -1 without a partition or batch."""

    @property
    @abstractmethod
    def key(self) -> str | None:
        """The key, in base64 if the client sent it so."""

    @property
    @abstractmethod
    def payload(self) -> bytes | None:
        """Payload as sent by the producer, decompressed; None if it cannot be opened. Meaningless for a tombstone."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Bytes of the payload; of the stored message if it cannot be opened."""

    @property
    @abstractmethod
    def publish_time(self) -> int:
        """Milliseconds since 1970, by the producer's clock."""

    @property
    @abstractmethod
    def event_time(self) -> int:
        """Milliseconds since 1970; 0 for none."""

    @property
    @abstractmethod
    def deliver_at(self) -> int:
        """Milliseconds since 1970; 0 for immediate delivery."""

    @property
    @abstractmethod
    def sequence_id(self) -> int:
        """Sequence ID assigned by the producer."""

    @property
    @abstractmethod
    def producer_name(self) -> str:
        """Name of the producer."""

    @property
    @abstractmethod
    def tombstone(self) -> bool:
        """Whether it has a null value."""

    @property
    @abstractmethod
    def encrypted(self) -> bool:
        """Whether it is encrypted, so that only its consumers can read it."""

    @property
    @abstractmethod
    def properties(self) -> Mapping[str, str]:
        """The message properties; of a repeated name, the last one."""

    @property
    @abstractmethod
    def decoded(self) -> Any:
        """The payload decoded by its schema, else as JSON; None if neither is possible."""

    @property
    def origin(self) -> str | None:
        """The topic it was originally published to, if it is a dead letter."""
        return self.properties.get(REAL_TOPIC)

    @property
    def subscription(self) -> str | None:
        """The subscription whose dead letter it is, if known."""
        return self.properties.get(REAL_SUBSCRIPTION)

    @property
    def origin_id(self) -> str | None:
        """Its message ID in the topic it was originally published to."""
        return self.properties.get(ORIGIN_MESSAGE_ID) or self.properties.get(ORIGIN_MESSAGE_ID_OLD)

    @property
    def replays(self) -> int:
        """How often it has been replayed."""
        return replays_of(self.properties)
