"""The hash of the key by which Key_Shared gives an entry to a consumer."""

from pulsarbox.broker.dispatch.selectors.selector import key_hash
from pulsarbox.protocol.metadata import dispatch_key, parse_entry
from pulsarbox.storage.format import EntryFlag
from pulsarbox.storage.record import Entry

KEY = EntryFlag.KEY


def sticky_hash(entry: Entry) -> int:
    """Murmur3 of the entry's ordering or partition key, as its header has it.

    Of an entry without a key it is that of ``dispatch_key``.
    """
    if entry[2] & KEY:
        return entry[6]
    return key_hash(key_of(entry))


def key_of(entry: Entry) -> bytes:
    """The entry's ordering or partition key; where it has none, what stands for one (``dispatch_key``)."""
    return dispatch_key(parse_entry(entry[11], verify=False).metadata)  # it was, when it was published or read
