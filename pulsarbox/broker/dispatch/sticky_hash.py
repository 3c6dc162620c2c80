"""The hash of the key by which Key_Shared gives an entry to a consumer."""

from pulsarbox.broker.dispatch.selectors.selector import key_hash
from pulsarbox.protocol.metadata import parse_entry
from pulsarbox.storage.format import EntryFlag
from pulsarbox.storage.record import Entry

KEY = EntryFlag.KEY


def sticky_hash(entry: Entry) -> int:
    """Murmur3 of the entry's ordering or partition key, as its header has it.

    An entry without a key has one made of its producer's name and its sequence id, as in Pulsar 4: so entries without
    keys spread over all consumers.
    """
    if entry[2] & KEY:
        return entry[6]
    metadata = parse_entry(entry[11]).metadata
    return key_hash(f"{metadata.producer_name}-{metadata.sequence_id}".encode())
