"""What a message becomes when it goes to a dead letter topic: itself, with properties that say whence it came and why.

Their names are those of the official clients (RetryMessageUtil of Java, retry_router.go of Go), in both spellings of
ORIGIN_MESSAGE_ID; ORIGIN_PUBLISH_TIME and those that begin with DEAD_LETTER are the box's own. A property that is there
already stays: a message that went by a retry topic tells where it came from first. Everything else stays as it was but
for the publish time, which is that of the move, and the time of delivery, which has passed.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Final, NamedTuple

from pulsarbox.plugins.compression.wire import CodecMissing, NotUnpacked, compress, decompress
from pulsarbox.protocol.ack_sets import indexes_of
from pulsarbox.protocol.batch import encode_batch, iterate_batch
from pulsarbox.protocol.metadata import encode_entry, parse_entry
from pulsarbox.protocol.PulsarApi_pb2 import MessageMetadata, SingleMessageMetadata
from pulsarbox.protocol.violations import MalformedMetadata

REAL_TOPIC: Final = "REAL_TOPIC"
REAL_SUBSCRIPTION: Final = "REAL_SUBSCRIPTION"
ORIGIN_MESSAGE_ID: Final = "ORIGIN_MESSAGE_ID"
ORIGIN_MESSAGE_ID_OLD: Final = "ORIGIN_MESSAGE_IDY_TIME"
"""As clients spelled it first, and still write it beside the other."""
RECONSUMETIMES: Final = "RECONSUMETIMES"
ORIGIN_PUBLISH_TIME: Final = "ORIGIN_PUBLISH_TIME"
DEAD_LETTER_REASON: Final = "DEAD_LETTER_REASON"
DEAD_LETTER_REDELIVERIES: Final = "DEAD_LETTER_REDELIVERIES"

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
    """Where a dead letter comes from, and why it is one."""

    topic: str
    subscription: str
    message_id: str
    """``ledger:entry:partition``, the partition -1 where the topic is none, as clients write it."""
    redeliveries: int
    allowed: int
    messages: int = 1
    """In its entry."""
    acknowledged: int = 0
    """Of these, by batch index."""
    index_acks: IndexAcks = IndexAcks.KEPT

    def reason(self, *, is_opened: bool = True) -> str:
        """Why it is a dead letter. ``is_opened``: the acknowledged messages of its batch were left out."""
        times = "once" if self.redeliveries == 1 else f"{self.redeliveries} times"
        said = f"given back {times} without being acknowledged, {self.allowed} allowed"
        if self.messages == 1 or (self.acknowledged and is_opened):
            return said
        whole = f"{said}; all {self.messages} messages of its batch are moved"
        if self.acknowledged:
            return f"{whole}, {self.acknowledged} acknowledged ones included, as the broker cannot open the batch"
        if self.index_acks is IndexAcks.OFF:
            return f"{whole}, as the broker keeps no acknowledgements by batch index"
        if self.index_acks is IndexAcks.NONE:
            return f"{whole}, as no consumer has acknowledged by batch index: some may have been processed"
        return f"{said}; no message of its batch of {self.messages} was acknowledged"

    def properties(self, publish_time: int, *, is_opened: bool = True) -> dict[str, str]:
        """The properties of a dead letter but for its message id. ``publish_time``: what the message said (ms since
        1970)."""
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
        """As it is published."""
        return encode_entry(self.metadata, self.body)


def make_letter(entry: bytes, unacked: int | None, origin: Origin, publish_time: int, most: int) -> Letter:
    """The dead letter that an entry becomes, of a batch those of its messages that have a bit in ``unacked``.

    ``None`` for all. It is published at ``publish_time`` (ms since 1970). A batch is opened, so that each of its
    messages has the properties; where that cannot be (it is encrypted, its codec is missing, or it has more than
    ``most`` bytes) it goes as a whole, with the properties in its own metadata.
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
    _tell(metadata, _with_id(origin.properties(published, is_opened=False), origin.message_id))
    return Letter(metadata, body)


def _rewritten(
    metadata: MessageMetadata, body: bytes, unacked: int | None, told: dict[str, str], message_id: str, most: int
) -> bytes:
    """The body of a batch of what is left of it; ``metadata`` says how many that are."""
    codec = metadata.compression
    opened = list(
        iterate_batch(decompress(codec, body, metadata.uncompressed_size, most), metadata.num_messages_in_batch)
    )
    count = len(opened)
    left = list(range(count)) if unacked is None else [i for i in indexes_of(unacked) if i < count]
    for i in left:
        _tell(opened[i][0], _with_id(told, f"{message_id}:{i}"))
    plain = encode_batch(opened[i] for i in left)
    packed = compress(codec, plain)
    metadata.num_messages_in_batch = len(left)
    if codec or metadata.HasField("uncompressed_size"):
        metadata.uncompressed_size = len(plain)
    return packed


def _with_id(told: dict[str, str], message_id: str) -> dict[str, str]:
    return told | {ORIGIN_MESSAGE_ID: message_id, ORIGIN_MESSAGE_ID_OLD: message_id}


def _tell(metadata: MessageMetadata | SingleMessageMetadata, told: Mapping[str, str]) -> None:
    present = {each.key for each in metadata.properties}
    for key, value in told.items():
        if key not in present:
            metadata.properties.add(key=key, value=value)
