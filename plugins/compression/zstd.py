"""ZSTD frames, optionally with dictionaries, which store what many small messages have in common once."""

import struct
from collections.abc import Sequence
from typing import ClassVar, Final

import zstandard

from pulsarbox.plugins.contracts import Codec

LEVEL: Final = 3


class _Context:
    """A reusable compressor and decompressor: creating them costs more than compressing a small body."""

    def __init__(self, dictionary: zstandard.ZstdCompressionDict | None = None) -> None:
        # The dictionary is known from the context, so its ID is omitted: four bytes less for each body.
        size = len(dictionary) if dictionary is not None else 0
        parameters = zstandard.ZstdCompressionParameters.from_level(LEVEL, dict_size=size, write_dict_id=False)
        self._compressor = zstandard.ZstdCompressor(compression_params=parameters, dict_data=dictionary)
        self._decompressor = zstandard.ZstdDecompressor(dict_data=dictionary)

    def compress(self, data: bytes) -> bytes:
        """See Codec."""
        return self._compressor.compress(data)

    def decompress(self, data: bytes, size: int) -> bytes:
        """See Codec."""
        told = zstandard.frame_content_size(data)
        if told > size:
            raise ValueError(f"expected {size} decompressed bytes, but the frame has {told}")
        return self._decompressor.decompress(data, max_output_size=size)

    def compress_many(self, bodies: Sequence[bytes]) -> list[bytes]:
        """See ManyAtOnce."""
        if not any(bodies):  # the library rejects input that is empty altogether
            return [self.compress(body) for body in bodies]
        return _all_of(self._compressor.multi_compress_to_buffer(list(bodies), threads=1))

    def decompress_many(self, packed: Sequence[bytes], sizes: Sequence[int]) -> list[bytes]:
        """See ManyAtOnce."""
        for data, size in zip(packed, sizes, strict=True):
            if zstandard.frame_content_size(data) != size:
                raise ValueError(f"expected a frame of {size} decompressed bytes")
        told = struct.pack(f"={len(sizes)}Q", *sizes)
        return _all_of(self._decompressor.multi_decompress_to_buffer(list(packed), decompressed_sizes=told, threads=1))


def _all_of(found: zstandard.BufferWithSegmentsCollection) -> list[bytes]:
    return [found[at].tobytes() for at in range(len(found))]


class Zstd:
    """zstd at level 3, as in Pulsar's clients."""

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
        """See Compression. None if there are too few samples."""
        try:
            return zstandard.train_dictionary(size, list(samples), level=LEVEL).as_bytes()
        except zstandard.ZstdError:
            return None
