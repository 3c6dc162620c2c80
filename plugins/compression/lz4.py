"""LZ4 as Pulsar writes it: a raw block without a size prefix. Needs cramjam (``pulsarbox[codecs]``)."""

from collections.abc import Sequence
from typing import ClassVar, Final

from pulsarbox.plugins.contracts import Codec

_RATIO: Final = 255
"""Maximum compression ratio of a block; a larger claimed size is rejected before memory is allocated."""


class Lz4:
    """The fastest built-in codec. Stateless: the plugin is its own codec."""

    api: ClassVar = 1
    name: ClassVar = "lz4"
    wire_id: ClassVar = 1
    rest_tag: ClassVar = b"lz4 "

    def __init__(self) -> None:
        """Raises ImportError if cramjam is not installed."""
        import cramjam

        self._lz4 = cramjam.lz4

    def open(self) -> Codec:
        """See Compression."""
        return self

    def trained(self, dictionary: bytes) -> None:
        """Return None: dictionaries are not supported."""

    def train(self, samples: Sequence[bytes], size: int) -> None:
        """Return None: dictionaries are not supported."""

    def compress(self, data: bytes) -> bytes:
        """See Codec."""
        return bytes(self._lz4.compress_block(data, store_size=False))

    def decompress(self, data: bytes, size: int) -> bytes:
        """See Codec."""
        if size > _RATIO * len(data):
            raise ValueError(f"{len(data)} bytes cannot decompress to {size}")
        unpacked = bytearray(size)  # decompress_block pads its result with zeros to the requested size
        written = self._lz4.decompress_block_into(data, unpacked, output_len=size)
        return bytes(unpacked[:written])
