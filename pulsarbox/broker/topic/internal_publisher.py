"""Messages that no producer of a connection has brought: dead letters, and what is produced by HTTP.

No name, no rate and no deduplication stands before them. What the topic itself asks for (room, size, encryption,
delays) holds for them too.
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
"""What the command before a message may take of a frame."""


class QuotaReached(ServiceNotReady):
    """The topic takes nothing before its backlog is smaller."""


def checked(topic: PersistentTopic, metadata: MessageMetadata, body: bytes, now: Now) -> bytes:
    """A message as it is to be stored. Raises PulsarBoxError where it is not taken."""
    core = topic.core
    topic.check_takes()
    refusal = core.commits.housekeeping.refusal
    if refusal is not None:
        raise PersistenceError(refusal)
    payload = encode_entry(metadata, body)
    most = core.settings.maxMessageSize + MESSAGE_SIZE_FRAME_PADDING - _COMMAND_BYTES
    if len(payload) > most:
        raise NotAllowed(f"no frame takes more than {most} bytes, and it has more with its properties")
    if topic.admission.measures:
        topic.admission.check_message(len(payload), metadata)
    if topic.ledger.total_bytes >= topic.backlog.full_at and topic.backlog.refuses(now):
        raise QuotaReached(f"the backlog quota of {topic.name} is reached")
    if metadata.deliver_at_time:
        check_delay(metadata, topic.policies)
    return payload


def put(topic: PersistentTopic, metadata: MessageMetadata, body: bytes, now: Now) -> Entry:
    """Put a message into the open batch. Raises PulsarBoxError, and puts nothing there, where it is not taken."""
    payload = checked(topic, metadata, body, now)
    return topic.append(parse_entry(payload), payload, now)


class Posted:
    """Hears what becomes of one message, in place of a producer: ``told`` is called once."""

    def __init__(self, told: Callable[[Position | PulsarBoxError, Now], None]) -> None:
        self._told = told

    def receipt(self, sequence_id: int, highest_sequence_id: int, ledger_id: int, entry_id: int, now: Now) -> None:
        """It is stored."""
        self._told(Position(ledger_id, entry_id), now)

    def refuse(self, sequence_id: int, error: PulsarBoxError, now: Now) -> None:
        """It could not be stored."""
        self._told(error, now)

    def published(self, messages: int, size: int, *, is_chunk: bool = False) -> None:
        """It is on its way: nobody counts."""

    def disconnect(self, now: Now) -> None:
        """It has no connection."""


def post(topic: PersistentTopic, metadata: MessageMetadata, body: bytes, posted: Posted, now: Now) -> None:
    """The same as ``put``; ``posted`` hears of it once it is durable, or is not."""
    entry = put(topic, metadata, body, now)
    topic.core.commits.open.receipts.append((posted, 0, 0, entry.ledger_id, entry.entry_id))
