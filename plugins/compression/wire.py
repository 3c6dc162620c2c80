"""The codecs of message bodies, by their numbers on the wire: ZLIB and ZSTD always, LZ4 and SNAPPY where cramjam is.

The metadata tells the uncompressed size; nothing longer is ever unpacked. Source: Pulsar's CompressionType.
"""

from __future__ import annotations

from importlib import import_module
from threading import local
from typing import Final

from pulsarbox.plugins.contracts import Codec, Compression

CODECS: Final = {"none": 0, "lz4": 1, "zlib": 2, "zstd": 3, "snappy": 4}
_CLASSES: Final = {1: "lz4.Lz4", 2: "zlib.Zlib", 3: "zstd.Zstd", 4: "snappy.Snappy"}
_NAMES: Final = {number: name for name, number in CODECS.items()}

UNCOMPRESSED_MAX: Final = 1 << 28
"""Bytes of a body that is unpacked at most, whatever its metadata says."""


class CodecMissing(Exception):
    """The codec is not known, or its library is not installed; the text says what to do."""


class NotUnpacked(Exception):
    """The body is not what its metadata says."""


class _OfThread(local):
    """What a thread has opened: codecs keep state while they work, so no two threads share one."""

    def __init__(self) -> None:
        self.codecs: dict[int, Codec] = {}


_of_thread = _OfThread()


def codec(number: int) -> Codec:
    """The codec of a CompressionType other than NONE, this thread's own. Raises CodecMissing."""
    found = _of_thread.codecs.get(number)
    if found is None:
        found = _of_thread.codecs[number] = _opened(number)
    return found


def _opened(number: int) -> Codec:
    if number not in _CLASSES:
        raise CodecMissing(f"compression {number} is not known: a newer client sent this")
    module, _, name = _CLASSES[number].partition(".")
    try:
        found: Compression = getattr(import_module(f"pulsarbox.plugins.compression.{module}"), name)()
    except ImportError:
        said = f"{_NAMES[number].upper()} needs the package cramjam: pip install 'pulsarbox[codecs]'"
        raise CodecMissing(said) from None
    return found.open()


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
