"""LZ4: a raw block without a size before it, as Pulsar writes it. Needs cramjam (``pulsarbox[codecs]``)."""

from collections.abc import Sequence
from typing import ClassVar, Final

from pulsarbox.plugins.contracts import Codec

_RATIO: Final = 255
"""No block gets larger than so many times its size, so that little can be claimed to be much."""


class Lz4:
    """The quickest; a plugin and its own codec."""

    api: ClassVar = 1
    name: ClassVar = "lz4"
    wire_id: ClassVar = 1
    rest_tag: ClassVar = b"lz4 "

    def __init__(self) -> None:
        """Raises ImportError where its library is not installed."""
        import cramjam

        self._lz4 = cramjam.lz4

    def open(self) -> Codec:
        """See Compression."""
        return self

    def trained(self, dictionary: bytes) -> None:
        """There are no dictionaries."""

    def train(self, samples: Sequence[bytes], size: int) -> None:
        """There are no dictionaries."""

    def compress(self, data: bytes) -> bytes:
        """See Codec."""
        return bytes(self._lz4.compress_block(data, store_size=False))

    def decompress(self, data: bytes, size: int) -> bytes:
        """See Codec."""
        if size > _RATIO * len(data):
            raise ValueError(f"{len(data)} bytes cannot be {size}")
        unpacked = bytearray(size)  # decompress_block gives as many bytes as it is told, with zeros at the end
        written = self._lz4.decompress_block_into(data, unpacked, output_len=size)
        return bytes(unpacked[:written])
