"""Keys of which a part in braces decides: ``{customer-17}/order-5`` goes where ``{customer-17}/order-6`` goes.

All keys of one customer then have one partition, and one consumer of a Key_Shared subscription, while each key still
compacts by itself. A key without braces, or with nothing between them, counts as a whole, as in Pulsar. Use:
``pulsarbox produce orders --hash hash-tag``, and ``keySharedHashing = hash-tag`` as a setting or as a property of the
subscription.
"""

from pulsarbox.plugins.hashing.murmur3 import Murmur3


class Plugin:
    """See Hashing."""

    kind = "hashing"
    name = "hash-tag"
    api = 1

    def __init__(self) -> None:
        self._whole = Murmur3().hash32

    def hash32(self, key: bytes) -> int:
        """Murmur3 of what stands between the first braces, or of the key."""
        start = key.find(b"{") + 1
        end = key.find(b"}", start)
        return self._whole(key[start:end] if start and end > start else key)
