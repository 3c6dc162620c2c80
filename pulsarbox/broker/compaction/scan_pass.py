"""The first part of compaction: extracts the message keys of entries. Pure; runs in the reading thread.

Sources: https://pulsar.apache.org/docs/4.2.x/concepts-topic-compaction/, PIP-14, and the behaviour of Pulsar's own
compaction. It drops messages without a key unless configured otherwise. A message without a payload deletes its key.
Batches that cannot be opened are kept whole.
"""

import logging
from hashlib import blake2b
from typing import Any, Final, NamedTuple

from pulsarbox.plugins.compression.entry_body import unpack_batch
from pulsarbox.plugins.compression.wire import NotUnpacked
from pulsarbox.protocol.metadata import parse_entry
from pulsarbox.protocol.PulsarApi_pb2 import MessageMetadata, SingleMessageMetadata
from pulsarbox.protocol.violations import MalformedMetadata
from pulsarbox.storage.compacted_ledger import unpack_compacted
from pulsarbox.storage.format import EntryFlag
from pulsarbox.storage.record import Entry

log = logging.getLogger(__name__)

# Kinds of results for an entry; the first item of each tuple.
DROPPED: Final = 0
"""Not kept: (DROPPED, messages in it)."""
WHOLE: Final = 1
"""Kept as it is: (WHOLE, messages in it)."""
SINGLE: Final = 2
"""(SINGLE, key, whether it has a value)."""
BATCH: Final = 3
"""(BATCH, [(key or None, whether it has a value), or None if already compacted out])."""
CHUNK: Final = 4
"""(CHUNK, UUID, chunk number, last chunk number, key, whether it has a value)."""

Seen = tuple[Any, ...]

_BATCH, _CHUNK, _ENCRYPTED, _KEY, _MARKER = (
    EntryFlag.BATCH, EntryFlag.CHUNK, EntryFlag.ENCRYPTED, EntryFlag.KEY, EntryFlag.MARKER,
)  # fmt: skip

_PLAIN_KEY: Final = 15
"""Longest key stored as it is. A longer one is stored as a digest with one byte more, so the two never collide."""


class EntryRules(NamedTuple):
    """How compaction treats entries."""

    retain_null_key: bool = False
    """Whether to keep messages without a key."""
    most_unpacked: int = 1 << 23
    """Maximum uncompressed bytes of a batch; a larger batch is kept whole."""


class Examined(NamedTuple):
    """The result of one read."""

    next_entry: int
    size: int
    seen: list[Seen]


def examine(rules: EntryRules, entries: list[Entry], *, compacted: bool) -> Examined:
    """Return the keys of entries; ``compacted`` if they are from a compacted ledger. Raises CodecMissing."""
    size = sum([len(entry.body) for entry in entries])
    seen = [_scan_entry(unpack_compacted(entry).entry if compacted else entry, rules) for entry in entries]
    return Examined(entries[-1].entry_id + 1, size, seen)


def _scan_entry(entry: Entry, rules: EntryRules) -> Seen:
    flags = entry.flags
    if flags & _MARKER:
        return DROPPED, entry.num_messages
    if flags & _BATCH:
        return _scan_batch(entry, rules)
    if flags & _KEY:
        metadata, _, _, _, body_offset = parse_entry(entry.body, verify=False)
        if metadata.HasField("partition_key"):
            key = key_of(metadata)
            told = metadata.HasField("uncompressed_size")
            size = metadata.uncompressed_size if told else len(entry.body) - body_offset
            alive = size > 0 and not metadata.null_value
            if flags & _CHUNK:
                return CHUNK, metadata.uuid, metadata.chunk_id, metadata.num_chunks_from_msg - 1, key, alive
            return SINGLE, key, alive
    return WHOLE if rules.retain_null_key else DROPPED, entry.num_messages


def _scan_batch(entry: Entry, rules: EntryRules) -> Seen:
    if entry.flags & _ENCRYPTED:
        return WHOLE, entry.num_messages
    try:
        parsed = parse_entry(entry.body, verify=False)
        messages = unpack_batch(parsed.metadata, entry.body[parsed.body_offset :], rules.most_unpacked)
    except (NotUnpacked, MalformedMetadata) as error:
        log.warning("entry %d:%d is copied unchanged to the compacted view: %s", entry.ledger_id, entry.entry_id, error)
        return WHOLE, entry.num_messages
    found: list[tuple[bytes | None, bool] | None] = []
    for metadata, payload in messages:
        if metadata.compacted_out:
            found.append(None)
        elif metadata.HasField("partition_key"):
            found.append((key_of(metadata), bool(payload) and not metadata.null_value))
        else:
            found.append((None, rules.retain_null_key))
    return BATCH, found


def key_of(metadata: MessageMetadata | SingleMessageMetadata) -> bytes:
    """Return a bounded key for a message's key, unique except for BLAKE2 collisions."""
    text: str | bytes = metadata.partition_key
    key = text.encode() if isinstance(text, str) else text
    return key if len(key) <= _PLAIN_KEY else blake2b(key, digest_size=_PLAIN_KEY + 1).digest()
