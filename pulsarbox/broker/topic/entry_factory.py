"""Construction of stored entries: the message's bytes unchanged, with the metadata that the broker needs later."""

from typing import Final

from mmh3 import hash as murmur3_32

from pulsarbox.clock import Now
from pulsarbox.errors import MetadataError
from pulsarbox.protocol.checksum import crc32c
from pulsarbox.protocol.metadata import ParsedEntry, batch_fits, sticky_key
from pulsarbox.storage.format import EntryFlag
from pulsarbox.storage.ledger import LedgerInfo, ManagedLedger
from pulsarbox.storage.record import Entry

# Names of the hot path, bound once.
BATCH, CHECKSUM, CHUNK, ENCRYPTED = EntryFlag.BATCH, EntryFlag.CHECKSUM, EntryFlag.CHUNK, EntryFlag.ENCRYPTED
KEY, MARKER = EntryFlag.KEY, EntryFlag.MARKER
OWN_CHECKSUM = EntryFlag.OWN_CHECKSUM
new_entry: Final = tuple.__new__


def make_entry(
    ledger: ManagedLedger, info: LedgerInfo, parsed: ParsedEntry, payload: bytes, now: Now, more: int = 0
) -> Entry:
    """Return the next entry of a ledger; ``more`` are additional flags.

    Raises MetadataError for a batch without messages, or with more than fit into its bytes.
    """
    metadata, checksum = parsed[0], parsed[1]
    has = metadata.HasField
    flags = CHECKSUM
    if checksum is None:
        flags, checksum = OWN_CHECKSUM, crc32c(payload)
    key_hash = 0
    num_messages = 1
    if has("num_messages_in_batch"):
        flags |= BATCH
        num_messages = metadata.num_messages_in_batch
        if not batch_fits(metadata, len(payload)):
            raise MetadataError(f"A batch of {num_messages} messages cannot be one of {len(payload)} bytes")
    if has("partition_key") or has("ordering_key"):
        flags |= KEY
        key_hash = murmur3_32(sticky_key(metadata) or b"", signed=False)
    if has("marker_type"):
        flags |= MARKER
    if metadata.num_chunks_from_msg:
        flags |= CHUNK
    if metadata.encryption_keys:
        flags |= ENCRYPTED
    publish_time, deliver_at = metadata.publish_time, metadata.deliver_at_time
    if now.offset:
        publish_time = now.of_client(publish_time)
        deliver_at = now.of_client(deliver_at) if deliver_at else 0
    # tuple.__new__ directly: the NamedTuple constructor costs twice as much.
    return new_entry(
        Entry,
        (
            info.ledger_id,
            info.entries,
            flags | more,
            num_messages,
            ledger.total_messages + num_messages,
            ledger.total_bytes + len(payload),
            key_hash,
            publish_time,
            now.wall,
            deliver_at,
            checksum,
            payload,
        ),
    )
