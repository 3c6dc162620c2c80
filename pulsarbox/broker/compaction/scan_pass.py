"""What compaction has to know of entries: whose latest message might be in them. Pure; done where entries are read.

Sources: https://pulsar.apache.org/docs/4.2.x/concepts-topic-compaction/, PIP-14, and the messages that Pulsar's own
compaction keeps: without a key none, unless that is wanted; without a payload none, and none of their key before them;
batches that cannot be opened as they are.
"""

import logging
from hashlib import blake2b
from typing import Any, Final, NamedTuple

from pulsarbox.plugins.compression.wire import NotUnpacked, decompress
from pulsarbox.protocol.batch import iterate_batch
from pulsarbox.protocol.metadata import ParsedEntry, parse_entry
from pulsarbox.protocol.PulsarApi_pb2 import MessageMetadata, SingleMessageMetadata
from pulsarbox.protocol.violations import MalformedMetadata
from pulsarbox.storage.compacted_ledger import unpack_compacted
from pulsarbox.storage.format import EntryFlag
from pulsarbox.storage.record import Entry

log = logging.getLogger(__name__)

# What can be said of an entry; each stands first in a tuple.
DROPPED: Final = 0
"""Of no key: (DROPPED, messages in it)."""
WHOLE: Final = 1
"""It stays as it is: (WHOLE, messages in it)."""
SINGLE: Final = 2
"""(SINGLE, key, whether it has a value)."""
BATCH: Final = 3
"""(BATCH, [(key or None, whether it has a value), or None for one that is compacted out already])."""
CHUNK: Final = 4
"""(CHUNK, uuid, number of the chunk, of the last one, key, whether it has a value)."""

Seen = tuple[Any, ...]

_BATCH, _CHUNK, _ENCRYPTED, _KEY, _MARKER = (
    EntryFlag.BATCH, EntryFlag.CHUNK, EntryFlag.ENCRYPTED, EntryFlag.KEY, EntryFlag.MARKER,
)  # fmt: skip

_PLAIN_KEY: Final = 15
"""Bytes of a key that stands for itself; a longer one is its digest, which has one more, so that none is both."""


class Rules(NamedTuple):
    """How entries are understood."""

    retain_null_key: bool = False
    """Messages without a key stay."""
    most_unpacked: int = 1 << 23
    """Bytes that a batch is unpacked to at most; one that would be more stays whole."""


class Examined(NamedTuple):
    """What was read in one go."""

    next_entry: int
    size: int
    seen: list[Seen]


def examine(rules: Rules, entries: list[Entry], *, compacted: bool) -> Examined:
    """What is to be known of entries, ``compacted`` where they come from a compacted ledger. Raises CodecMissing."""
    size = sum([len(entry.body) for entry in entries])
    seen = [_look(unpack_compacted(entry).entry if compacted else entry, rules) for entry in entries]
    return Examined(entries[-1].entry_id + 1, size, seen)


def _look(entry: Entry, rules: Rules) -> Seen:
    flags = entry.flags
    if flags & _MARKER:
        return DROPPED, entry.num_messages
    if flags & _BATCH:
        return _look_into_batch(entry, rules)
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


def _look_into_batch(entry: Entry, rules: Rules) -> Seen:
    if entry.flags & _ENCRYPTED:
        return WHOLE, entry.num_messages
    try:
        messages = open_batch(entry, parse_entry(entry.body, verify=False), rules)
    except (NotUnpacked, MalformedMetadata) as error:
        log.warning("entry %d:%d stays as it is in the compacted view: %s", entry.ledger_id, entry.entry_id, error)
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


def open_batch(entry: Entry, parsed: ParsedEntry, rules: Rules) -> list[tuple[SingleMessageMetadata, bytes]]:
    """The messages of a batch. Raises NotUnpacked, MalformedMetadata, CodecMissing."""
    metadata = parsed.metadata
    body = entry.body[parsed.body_offset :]
    body = decompress(metadata.compression, body, metadata.uncompressed_size, rules.most_unpacked)
    return list(iterate_batch(body, entry.num_messages))


def key_of(metadata: MessageMetadata | SingleMessageMetadata) -> bytes:
    """What stands for the key of a message: no two keys have the same, as far as BLAKE2 goes."""
    text: str | bytes = metadata.partition_key
    key = text.encode() if isinstance(text, str) else text
    return key if len(key) <= _PLAIN_KEY else blake2b(key, digest_size=_PLAIN_KEY + 1).digest()
