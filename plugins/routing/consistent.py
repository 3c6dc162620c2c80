"""Consistent routing by key: adding a partition to n moves only one key in n + 1."""

from typing import ClassVar, Final

from pulsarbox.plugins.contracts import Choose, Producing, Unrouted

_WORD: Final = (1 << 64) - 1
_GENERATOR: Final = 2862933555777941757


def jump(key: int, buckets: int) -> int:
    """Jump consistent hashing (Lamping and Veach, 2014): return a bucket from 0, for ``buckets`` of at least 1."""
    bucket, after = 0, 0
    while after < buckets:
        bucket = after
        key = (key * _GENERATOR + 1) & _WORD
        after = int((bucket + 1) * ((1 << 31) / ((key >> 33) + 1)))
    return bucket


class Consistent:
    """Consistent hashing; messages without a key are routed round robin."""

    api: ClassVar = 1
    name: ClassVar = "consistent"

    def open(self, producing: Producing) -> Choose:
        """See Routing."""
        hash32 = producing.hash32

        def choose(message: Unrouted, partitions: int) -> int:
            key = message.key
            return message.batch % partitions if key is None else jump(hash32(key), partitions)

        return choose
