"""Dead letter messages: the original message plus properties with its origin and the reason.

Existing properties are not overwritten, so a message from a retry topic keeps its first origin. All other metadata is
unchanged, except that the publish time is that of the move, and the delivery time and transaction are removed.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Final, NamedTuple

from pulsarbox.plugins.compression.entry_body import pack_batch, unpack_batch
from pulsarbox.plugins.compression.wire import CodecMissing, NotUnpacked
from pulsarbox.protocol.ack_sets import indexes_of
from pulsarbox.protocol.dead_letters.properties import (
    DEAD_LETTER_REASON,
    DEAD_LETTER_REDELIVERIES,
    ORIGIN_MESSAGE_ID,
    ORIGIN_MESSAGE_ID_OLD,
    ORIGIN_PUBLISH_TIME,
    REAL_SUBSCRIPTION,
    REAL_TOPIC,
    RECONSUMETIMES,
)
from pulsarbox.protocol.metadata import encode_entry, parse_entry
from pulsarbox.protocol.PulsarApi_pb2 import MessageMetadata, SingleMessageMetadata
from pulsarbox.protocol.violations import MalformedMetadata

_IN_TRANSACTION: Final = ("txnid_least_bits", "txnid_most_bits")


class IndexAcks(Enum):
    """Evidence of whether consumers acknowledge single messages of a batch."""

    KEPT = "kept"
    """Consumers acknowledge by batch index."""
    NONE = "none"
    """No consumer of the subscription did: clients may acknowledge whole batches only."""
    OFF = "off"
    """The broker keeps none (``acknowledgmentAtBatchIndexLevelEnabled``)."""


class Origin(NamedTuple):
    """Origin of a dead letter, and its reason."""

    topic: str
    subscription: str
    message_id: str
    """``ledger:entry:partition`` as clients write it; partition -1 if the topic is not a partition."""
    redeliveries: int
    allowed: int
    messages: int = 1
    """Messages in its entry."""
    acknowledged: int = 0
    """Messages of its entry acknowledged by batch index."""
    index_acks: IndexAcks = IndexAcks.KEPT

    def reason(self, *, is_opened: bool = True) -> str:
        """Return the reason as text. ``is_opened``: acknowledged messages of its batch were left out."""
        times = "once" if self.redeliveries == 1 else f"{self.redeliveries} times"
        said = f"redelivered {times} without being acknowledged, {self.allowed} allowed"
        if self.messages == 1 or (self.acknowledged and is_opened):
            return said
        whole = f"{said}; all {self.messages} messages of its batch were moved"
        if self.acknowledged:
            return f"{whole}, including {self.acknowledged} acknowledged ones: the broker cannot open the batch"
        if self.index_acks is IndexAcks.OFF:
            return f"{whole}: the broker does not track acknowledgements by batch index"
        if self.index_acks is IndexAcks.NONE:
            return f"{whole}: no consumer has acknowledged by batch index, so some may have been processed"
        return f"{said}; no message of its batch of {self.messages} was acknowledged"

    def properties(self, publish_time: int, *, is_opened: bool = True) -> dict[str, str]:
        """Return the properties except the message id. ``publish_time``: that of the message (ms since 1970)."""
        return {
            REAL_TOPIC: self.topic,
            REAL_SUBSCRIPTION: self.subscription,
            RECONSUMETIMES: str(self.redeliveries),
            ORIGIN_PUBLISH_TIME: str(publish_time),
            DEAD_LETTER_REDELIVERIES: str(self.redeliveries),
            DEAD_LETTER_REASON: self.reason(is_opened=is_opened),
        }


class Letter(NamedTuple):
    """A dead letter: its metadata and its body."""

    metadata: MessageMetadata
    body: bytes

    def payload(self) -> bytes:
        """Return the encoded message to publish."""
        return encode_entry(self.metadata, self.body)


def make_letter(entry: bytes, unacked: int | None, origin: Origin, publish_time: int, most: int) -> Letter:
    """Return the dead letter for an entry, with those messages of a batch that have a bit in ``unacked`` (None: all).

    It is published at ``publish_time`` (ms since 1970). A batch is opened to add the properties to each message. If
    that is not possible (it is encrypted, its codec is missing, or it is larger than ``most`` bytes), the whole batch
    is moved with the properties in its own metadata.
    """
    parsed = parse_entry(entry, verify=False)
    metadata = MessageMetadata()
    metadata.CopyFrom(parsed.metadata)
    body = entry[parsed.body_offset :]
    published = metadata.publish_time
    metadata.publish_time = publish_time
    for field in ("deliver_at_time", *_IN_TRANSACTION):
        metadata.ClearField(field)
    if metadata.HasField("num_messages_in_batch") and not metadata.encryption_keys:
        told = origin.properties(published)
        try:
            return Letter(metadata, _rewritten(metadata, body, unacked, told, origin.message_id, most))
        except (CodecMissing, NotUnpacked, MalformedMetadata):
            pass
    _log(metadata, _with_id(origin.properties(published, is_opened=False), origin.message_id))
    return Letter(metadata, body)


def _rewritten(
    metadata: MessageMetadata, body: bytes, unacked: int | None, told: dict[str, str], message_id: str, most: int
) -> bytes:
    """Return the body of a batch with the unacknowledged messages only; updates the counts in ``metadata``."""
    opened = unpack_batch(metadata, body, most)
    count = len(opened)
    left = list(range(count)) if unacked is None else [i for i in indexes_of(unacked) if i < count]
    for i in left:
        _log(opened[i][0], _with_id(told, f"{message_id}:{i}"))
    return pack_batch(metadata, [opened[i] for i in left])


def _with_id(told: dict[str, str], message_id: str) -> dict[str, str]:
    return told | {ORIGIN_MESSAGE_ID: message_id, ORIGIN_MESSAGE_ID_OLD: message_id}


def _log(metadata: MessageMetadata | SingleMessageMetadata, told: Mapping[str, str]) -> None:
    present = {each.key for each in metadata.properties}
    for key, value in told.items():
        if key not in present:
            metadata.properties.add(key=key, value=value)
