"""Hashing of the part of a key in braces: ``{customer-17}/order-5`` is routed like ``{customer-17}/order-6``.

All keys of one customer then share a partition, and a consumer of a Key_Shared subscription. Compaction still treats
each key separately. A key without braces, or with empty ones, is hashed whole, as in Pulsar. Use: ``pulsarbox produce
orders --hash hash-tag``, and ``keySharedHashing = hash-tag`` as a setting or as a property of the subscription.
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
        """Return the Murmur3 hash of the text in the first braces, or of the whole key."""
        start = key.find(b"{") + 1
        end = key.find(b"}", start)
        return self._whole(key[start:end] if start and end > start else key)
