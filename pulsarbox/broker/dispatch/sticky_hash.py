"""The key hash by which Key_Shared assigns an entry to a consumer."""

from pulsarbox.broker.dispatch.selectors.selector import key_hash
from pulsarbox.protocol.metadata import dispatch_key, parse_entry
from pulsarbox.storage.format import EntryFlag
from pulsarbox.storage.record import Entry

KEY = EntryFlag.KEY


def sticky_hash(entry: Entry) -> int:
    """Return Murmur3 of the entry's ordering or partition key, from its header if it has a key.

    Without a key, hash the substitute that ``dispatch_key`` returns.
    """
    if entry.flags & KEY:
        return entry.key_hash
    return key_hash(key_of(entry))


def key_of(entry: Entry) -> bytes:
    """Return the entry's ordering or partition key, or the substitute that ``dispatch_key`` returns."""
    return dispatch_key(parse_entry(entry.body, verify=False).metadata)  # verified on publish or read
