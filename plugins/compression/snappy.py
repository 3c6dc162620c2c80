"""Snappy as Pulsar writes it: a raw block. Needs cramjam (``pulsarbox[codecs]``)."""

from collections.abc import Sequence
from typing import ClassVar

from pulsarbox.plugins.contracts import Codec


class Snappy:
    """Snappy. Stateless: the plugin is its own codec."""

    api: ClassVar = 1
    name: ClassVar = "snappy"
    wire_id: ClassVar = 4
    rest_tag: ClassVar = b"snap"

    def __init__(self) -> None:
        """Raises ImportError if cramjam is not installed."""
        import cramjam

        self._snappy = cramjam.snappy

    def open(self) -> Codec:
        """See Compression."""
        return self

    def trained(self, dictionary: bytes) -> None:
        """Return None: dictionaries are not supported."""

    def train(self, samples: Sequence[bytes], size: int) -> None:
        """Return None: dictionaries are not supported."""

    def compress(self, data: bytes) -> bytes:
        """See Codec."""
        return bytes(self._snappy.compress_raw(data))

    def decompress(self, data: bytes, size: int) -> bytes:
        """See Codec."""
        told = self._snappy.decompress_raw_len(data)
        if told > size:
            raise ValueError(f"expected {size} decompressed bytes, but the block has {told}")
        return bytes(self._snappy.decompress_raw(data))
