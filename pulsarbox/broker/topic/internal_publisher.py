"""Publishing without a connected producer: dead letters and messages produced over HTTP.

Producer names, publish rates and deduplication do not apply. The topic's own checks do: termination, backlog quota,
message size, encryption and delays.
"""

from collections.abc import Callable
from typing import Final

from pulsarbox.broker.policies.kinds.delayed_delivery import check_delay
from pulsarbox.broker.topic.topic import PersistentTopic
from pulsarbox.clock import Now
from pulsarbox.errors import NotAllowed, PersistenceError, PulsarBoxError, ServiceNotReady
from pulsarbox.protocol.frames import MESSAGE_SIZE_FRAME_PADDING
from pulsarbox.protocol.metadata import encode_entry, parse_entry
from pulsarbox.protocol.PulsarApi_pb2 import MessageMetadata
from pulsarbox.storage.record import Entry, Position

_COMMAND_BYTES: Final = 1024
"""Room in a frame for the command before a message."""


class QuotaReached(ServiceNotReady):
    """The backlog quota is reached; the topic accepts no messages until its backlog shrinks."""


def checked(topic: PersistentTopic, metadata: MessageMetadata, body: bytes, now: Now) -> bytes:
    """Return a message encoded for storage. Raise PulsarBoxError if the topic rejects it."""
    core = topic.core
    topic.check_not_terminated()
    refusal = topic.room.refusal
    if refusal is not None:
        raise PersistenceError(refusal)
    payload = encode_entry(metadata, body)
    most = core.settings.maxMessageSize + MESSAGE_SIZE_FRAME_PADDING - _COMMAND_BYTES
    if len(payload) > most:
        raise NotAllowed(f"with its properties it has {len(payload)} bytes, more than the frame limit of {most}")
    if topic.admission.measures:
        topic.admission.check_message(len(payload), metadata)
    if topic.ledger.total_bytes >= topic.backlog.full_at and topic.backlog.refuses(now):
        raise QuotaReached(f"{topic.name} has reached its backlog quota")
    if metadata.deliver_at_time:
        check_delay(metadata, topic.policies)
    return payload


def put(topic: PersistentTopic, metadata: MessageMetadata, body: bytes, now: Now) -> Entry:
    """Add a message to the open batch. Raise PulsarBoxError, and add nothing, if the topic rejects it."""
    payload = checked(topic, metadata, body, now)
    return topic.append(parse_entry(payload), payload, now)


class Posted:
    """Receives the outcome of one message in place of a producer, and passes it to ``told`` once."""

    def __init__(self, told: Callable[[Position | PulsarBoxError, Now], None]) -> None:
        self._done = told

    def receipt(self, sequence_id: int, highest_sequence_id: int, ledger_id: int, entry_id: int, now: Now) -> None:
        """Report the position of the stored message."""
        self._done(Position(ledger_id, entry_id), now)

    def refuse(self, sequence_id: int, error: PulsarBoxError, now: Now) -> None:
        """Report that the message could not be stored."""
        self._done(error, now)

    def published(self, messages: int, size: int, *, is_chunk: bool = False) -> None:
        """Ignore the count; there is no producer with statistics."""

    def disconnect(self, now: Now) -> None:
        """Do nothing; there is no connection."""


def post(topic: PersistentTopic, metadata: MessageMetadata, body: bytes, posted: Posted, now: Now) -> None:
    """Add a message as ``put`` does; ``posted`` gets the outcome of its commit."""
    entry = put(topic, metadata, body, now)
    topic.core.commits.open.receipts.append((posted, 0, 0, entry.ledger_id, entry.entry_id))
