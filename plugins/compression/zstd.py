"""ZSTD frames, and dictionaries: what many small messages have in common is kept once."""

from collections.abc import Sequence
from typing import ClassVar, Final

import zstandard

from pulsarbox.plugins.contracts import Codec

LEVEL: Final = 3


class _Context:
    """Compressor and decompressor are made once: making them costs more than small bodies."""

    def __init__(self, dictionary: zstandard.ZstdCompressionDict | None = None) -> None:
        self._compressor = zstandard.ZstdCompressor(level=LEVEL, dict_data=dictionary)
        self._decompressor = zstandard.ZstdDecompressor(dict_data=dictionary)

    def compress(self, data: bytes) -> bytes:
        """See Codec."""
        return self._compressor.compress(data)

    def decompress(self, data: bytes, size: int) -> bytes:
        """See Codec."""
        told = zstandard.frame_content_size(data)
        if told > size:
            raise ValueError(f"the frame has {told} bytes")
        return self._decompressor.decompress(data, max_output_size=size)


class Zstd:
    """At level 3, as Pulsar's clients use it."""

    api: ClassVar = 1
    name: ClassVar = "zstd"
    wire_id: ClassVar = 3
    rest_tag: ClassVar = b"zstd"

    def open(self) -> Codec:
        """See Compression."""
        return _Context()

    def trained(self, dictionary: bytes) -> Codec:
        """See Compression."""
        return _Context(zstandard.ZstdCompressionDict(dictionary))

    def train(self, samples: Sequence[bytes], size: int) -> bytes | None:
        """See Compression. None where there is too little to learn from."""
        try:
            return zstandard.train_dictionary(size, list(samples), level=LEVEL).as_bytes()
        except zstandard.ZstdError:
            return None
