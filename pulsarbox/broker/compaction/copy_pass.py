"""The second part of compaction: copies the messages to keep. Pure; runs in the reading thread.

A batch of which only some messages are kept is rewritten: the others become empty and marked as compacted out, so that
batch indexes are unchanged. Its metadata lists the indexes kept (Pulsar 4.2).
"""

from typing import NamedTuple

from pulsarbox.broker.compaction.scan_pass import EntryRules
from pulsarbox.plugins.compression.entry_body import unpack_batch
from pulsarbox.plugins.compression.wire import compress
from pulsarbox.protocol.batch import encode_batch
from pulsarbox.protocol.metadata import encode_entry, parse_entry
from pulsarbox.protocol.PulsarApi_pb2 import SingleMessageMetadata
from pulsarbox.storage.compacted_ledger import Original, unpack_compacted
from pulsarbox.storage.format import EntryFlag
from pulsarbox.storage.record import Entry


class Copied(NamedTuple):
    """The result of one read."""

    next_entry: int
    size: int
    messages: int
    """Messages passed."""
    kept: list[Original]
    last: tuple[int, int, int] | None
    """The last message kept: ledger ID, entry ID, batch index or -1."""


def copy(rules: EntryRules, bits: bytearray, at: int, entries: list[Entry], *, compacted: bool) -> Copied:
    """Return what to keep of entries whose first message is number ``at`` in ``bits``. Raises CodecMissing."""
    kept: list[Original] = []
    last: tuple[int, int, int] | None = None
    size, number = 0, at
    for entry in entries:
        size += len(entry.body)
        count = entry.num_messages
        if count == 1:
            wanted = [0] if bits[number >> 3] >> (number & 7) & 1 else []
        else:
            wanted = [i for i in range(count) if bits[number + i >> 3] >> (number + i & 7) & 1]
        number += count
        if wanted:
            original = unpack_compacted(entry) if compacted else Original(entry, len(entry.body))
            kept.append(original if len(wanted) == count else _without(original, wanted, rules))
            last = original.entry.ledger_id, original.entry.entry_id, wanted[-1] if count > 1 else -1
    return Copied(entries[-1].entry_id + 1, size, number - at, kept, last)


def _without(original: Original, wanted: list[int], rules: EntryRules) -> Original:
    """Return a batch reduced to the given messages."""
    entry = original.entry
    parsed = parse_entry(entry.body, verify=False)
    metadata = parsed.metadata
    if list(metadata.compacted_batch_indexes) == wanted:
        return original
    messages = unpack_batch(metadata, entry.body[parsed.body_offset :], rules.most_unpacked)
    keeping = set(wanted)
    empty = SingleMessageMetadata(compacted_out=True)
    body = encode_batch(message if i in keeping else (empty, b"") for i, message in enumerate(messages))
    metadata.uncompressed_size = len(body)
    metadata.compacted_batch_indexes[:] = wanted
    rewritten = entry.body[: parsed.start] + encode_entry(metadata, compress(metadata.compression, body))
    flags = entry.flags & ~EntryFlag.OWN_CHECKSUM | EntryFlag.CHECKSUM
    return Original(entry._replace(flags=flags, body=rewritten), original.size)
