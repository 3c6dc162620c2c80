"""The codecs of message bodies, by their numbers on the wire: ZLIB and ZSTD always, LZ4 and SNAPPY where cramjam is.

Wire forms (Pulsar's CompressionType): LZ4 is a raw block without a size before it, ZLIB has its header, ZSTD is a
frame, SNAPPY is raw. The metadata tells the uncompressed size; nothing longer is ever unpacked.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final, Protocol

CODECS: Final = {"none": 0, "lz4": 1, "zlib": 2, "zstd": 3, "snappy": 4}
_NAMES: Final = {number: name for name, number in CODECS.items()}

UNCOMPRESSED_MAX: Final = 1 << 28
"""Bytes of a body that is unpacked at most, whatever its metadata says."""
_LZ4_RATIO: Final = 255
"""No LZ4 block gets larger than so many times its size, so that little can be claimed to be much."""


class CodecMissing(Exception):
    """The codec is not known, or its library is not installed; the text says what to do."""


class NotUnpacked(Exception):
    """The body is not what its metadata says."""


class Codec(Protocol):
    """Bytes to fewer bytes and back."""

    def compress(self, data: bytes) -> bytes:
        """``data`` in fewer bytes, or a few more."""

    def decompress(self, data: bytes, size: int) -> bytes:
        """``size`` bytes at most; any exception where the data is something else."""


class _Zlib:
    def compress(self, data: bytes) -> bytes:
        import zlib

        return zlib.compress(data)

    def decompress(self, data: bytes, size: int) -> bytes:
        import zlib

        unpacker = zlib.decompressobj()
        unpacked = unpacker.decompress(data, max(1, size))
        # No flush(): it would unpack all that is left, however much that is.
        if unpacker.unconsumed_tail and unpacker.decompress(unpacker.unconsumed_tail, 1):
            raise ValueError(f"there are more than {size} bytes")
        if not unpacker.eof:
            raise ValueError("its end is missing")
        return unpacked


class _Zstd:
    def __init__(self) -> None:
        import zstandard

        self._frame_size = zstandard.frame_content_size
        self._compressor = zstandard.ZstdCompressor()  # one each for all: making them costs more than small bodies
        self._decompressor = zstandard.ZstdDecompressor()

    def compress(self, data: bytes) -> bytes:
        return self._compressor.compress(data)

    def decompress(self, data: bytes, size: int) -> bytes:
        told = self._frame_size(data)
        if told > size:
            raise ValueError(f"the frame has {told} bytes")
        return self._decompressor.decompress(data, max_output_size=size)


class _Lz4:
    def __init__(self, library: Any) -> None:
        self._lz4 = library.lz4

    def compress(self, data: bytes) -> bytes:
        return bytes(self._lz4.compress_block(data, store_size=False))

    def decompress(self, data: bytes, size: int) -> bytes:
        if size > _LZ4_RATIO * len(data):
            raise ValueError(f"{len(data)} bytes cannot be {size}")
        unpacked = bytearray(size)  # decompress_block gives as many bytes as it is told, with zeros at the end
        written = self._lz4.decompress_block_into(data, unpacked, output_len=size)
        return bytes(unpacked[:written])


class _Snappy:
    def __init__(self, library: Any) -> None:
        self._snappy = library.snappy

    def compress(self, data: bytes) -> bytes:
        return bytes(self._snappy.compress_raw(data))

    def decompress(self, data: bytes, size: int) -> bytes:
        told = self._snappy.decompress_raw_len(data)
        if told > size:
            raise ValueError(f"the block has {told} bytes")
        return bytes(self._snappy.decompress_raw(data))


@cache
def codec(number: int) -> Codec:
    """The codec of a CompressionType other than NONE. Raises CodecMissing."""
    name = _NAMES.get(number)
    if name == "zlib":
        return _Zlib()
    if name == "zstd":
        return _Zstd()
    if name not in ("lz4", "snappy"):
        raise CodecMissing(f"compression {number} is not known: a newer client sent this")
    try:
        import cramjam
    except ImportError:
        raise CodecMissing(f"{name.upper()} needs the package cramjam: pip install 'pulsarbox[codecs]'") from None
    return _Lz4(cramjam) if name == "lz4" else _Snappy(cramjam)


def compress(number: int, data: bytes) -> bytes:
    """``data``, compressed as CompressionType ``number`` says. Raises CodecMissing."""
    return codec(number).compress(data) if number else data


def decompress(number: int, data: bytes, size: int, most: int = UNCOMPRESSED_MAX) -> bytes:
    """The ``size`` bytes that were compressed, ``most`` at most. Raises CodecMissing, NotUnpacked."""
    if not number:
        return data
    if size > most:
        raise NotUnpacked(f"a body of {size} bytes is more than {most} bytes")
    found = codec(number)
    try:
        unpacked = found.decompress(data, size)
    except Exception as error:  # each library has its own
        raise NotUnpacked(f"a body cannot be decompressed ({_NAMES[number]}): {error}") from None
    if len(unpacked) != size:
        raise NotUnpacked(f"a body of {len(unpacked)} bytes says that it has {size} ({_NAMES[number]})")
    return unpacked
