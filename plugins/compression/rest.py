"""Codecs for compression at rest, by name and by the tag stored before compressed data.

A built-in codec's tag is never reused for another format: tests/data/compressed has samples that every later version
must read. A plugin chooses its own tag (``rest_tag``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from pulsarbox.plugins.compression.wire import CodecMissing
from pulsarbox.plugins.contracts import Compression
from pulsarbox.plugins.registry import PluginError, get

TAGS: Final = {"lz4": b"lz4 ", "zlib": b"zlib", "zstd": b"zstd", "snappy": b"snap"}
"""Tags of the built-in codecs. ``none`` has no entry: uncompressed data has no tag."""
NONE: Final = "none"
_BY_TAG: Final = {tag: name for name, tag in TAGS.items()}
_NEEDS_CRAMJAM: Final = ("lz4", "snappy")

Load = Callable[[str, str], Any]
"""Returns the plugin of a kind and name. Raises PluginError."""


class RestCodecs:
    """The codecs available to a store, loaded on first use."""

    def __init__(self, load: Load = get) -> None:
        self.load = load
        """Loader of codecs. The owner of a store may replace it before opening the store."""
        self._known: dict[str, Compression] = {}

    def named(self, name: str) -> Compression:
        """Return the codec with that name. Raises CodecMissing with a suggested fix."""
        found = self._known.get(name)
        if found is None:
            try:
                found = self.load("compression", name)
            except PluginError as error:
                advice = ": pip install 'pulsarbox[codecs]'" if name in _NEEDS_CRAMJAM else ""
                raise CodecMissing(f"cannot use the codec {name!r}: {error}{advice}") from None
            assert found is not None
            if found.rest_tag is None or _BY_TAG.get(found.rest_tag, name) != name:
                raise CodecMissing(f"the codec {name!r} cannot be used on disk: its rest_tag is {found.rest_tag!r}")
            self._known[name] = found
        return found

    def tagged(self, tag: bytes, name: str) -> Compression:
        """Return the codec that writes ``tag``; ``name`` is its name at the time of writing. Raises CodecMissing."""
        found = self.named(_BY_TAG.get(tag, name))
        if found.rest_tag != tag:
            raise CodecMissing(f"the codec {name!r} writes the tag {found.rest_tag!r}, but the stored data has {tag!r}")
        return found
