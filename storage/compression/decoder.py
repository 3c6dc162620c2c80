"""Decompression of entries compressed at rest. Pure.

Codecs and dictionaries are opened on first use and evicted least recently used first: a reader of a thousand topics
needs no more memory than a reader of a few. Each thread has a separate unpacker.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, Protocol

from pulsarbox.plugins.compression.wire import CodecMissing
from pulsarbox.plugins.contracts import Codec, Compression
from pulsarbox.storage.record import DecompressionError, NotNow

OPEN_MAX: Final = 32
"""Codecs open at once; with a dictionary each takes some 200 KiB."""
MANY: Final = 32
"""Number of bodies from which a bulk call is worthwhile, despite its setup cost."""
BYTES_MAX: Final = 1 << 28
"""Upper bound of an entry's size, whatever its header claims."""


class Dictionary(NamedTuple):
    """A compression dictionary of a topic, for one codec."""

    number: int
    tag: bytes
    topic_id: int
    ratio: int
    """Compression ratio when last measured, in thousandths."""
    bytes: bytes


class Codecs(Protocol):
    """The codecs that a store may use. Both methods raise CodecMissing, whose message includes advice."""

    def named(self, name: str) -> Compression:
        """Return the codec with this name in policies."""

    def tagged(self, tag: bytes, name: str) -> Compression:
        """Return the codec that writes a tag; ``name`` is its name at the time of writing."""


class StoredCodecs(Protocol):
    """Metadata about a store's compressed entries."""

    def name_of(self, tag: bytes) -> str:
        """Return the name that a tag's codec had; empty if unknown."""

    def dictionary(self, number: int) -> Dictionary | None:
        """Return a dictionary by its number, or None."""


class RestUnpacker:
    """An Unpacker with a bounded cache of open codecs."""

    def __init__(self, codecs: Codecs, stored: StoredCodecs) -> None:
        self._codecs = codecs
        self._stored = stored
        self._open: OrderedDict[tuple[bytes, int], Codec] = OrderedDict()

    def unpack(self, tag: bytes, dictionary: int, packed: Sequence[bytes], sizes: Sequence[int]) -> list[bytes]:
        """See Unpacker."""
        if max(sizes) > BYTES_MAX:
            raise DecompressionError(f"its stored size of {max(sizes)} bytes exceeds the maximum of {BYTES_MAX}")
        return unpack_with(self._codec(tag, dictionary), packed, sizes)

    def _codec(self, tag: bytes, number: int) -> Codec:
        known = self._open.get((tag, number))
        if known is None:
            known = self._open_now(tag, number)
            while len(self._open) >= OPEN_MAX:
                self._open.popitem(last=False)
            self._open[tag, number] = known
        else:
            self._open.move_to_end((tag, number))
        return known

    def _open_now(self, tag: bytes, number: int) -> Codec:
        try:
            plugin = self._codecs.tagged(tag, self._stored.name_of(tag))
        except CodecMissing as error:
            raise NotNow(str(error)) from error
        if not number:
            return plugin.open()
        dictionary = self._stored.dictionary(number)
        codec = plugin.trained(dictionary.bytes) if dictionary is not None else None
        if codec is None:
            raise DecompressionError(f"dictionary {number}, with which it was compressed, is missing")
        return codec


def unpack_with(codec: Codec, packed: Sequence[bytes], sizes: Sequence[int]) -> list[bytes]:
    """Return the decompressed bodies, ``sizes`` bytes each. Raises NotUnpacked if one is invalid."""
    many: Any = getattr(codec, "decompress_many", None)
    try:
        if many is not None and len(packed) >= MANY:
            bodies: list[bytes] = many(packed, sizes)
        else:
            bodies = [codec.decompress(data, size) for data, size in zip(packed, sizes, strict=True)]
    except Exception as error:  # each library has its own exceptions
        raise DecompressionError(f"its bytes cannot be decompressed: {error}") from error
    if [len(body) for body in bodies] != list(sizes):
        raise DecompressionError("its decompressed size is wrong")
    return bodies


def pack_with(codec: Codec, bodies: Sequence[bytes]) -> list[bytes]:
    """Compress each body separately; raises the codec's exceptions."""
    many: Callable[[Sequence[bytes]], list[bytes]] | None = getattr(codec, "compress_many", None)
    if many is not None and len(bodies) >= MANY:
        return many(bodies)
    return [codec.compress(body) for body in bodies]
