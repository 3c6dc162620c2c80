"""The codecs of what stands on the disk, by name and by the tag before what they have written.

The tags of the built-in ones are never used again for another form; tests/data/compressed has bytes of each, which
every later version has to read. A plugin's tag is its own (``rest_tag``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from pulsarbox.plugins.compression.wire import CodecMissing
from pulsarbox.plugins.contracts import Compression
from pulsarbox.plugins.registry import PluginError, get

TAGS: Final = {"lz4": b"lz4 ", "zlib": b"zlib", "zstd": b"zstd", "snappy": b"snap"}
"""Of the built-in ones. That of ``none`` never stands anywhere: what is not compressed has no tag."""
NONE: Final = "none"
_BY_TAG: Final = {tag: name for name, tag in TAGS.items()}
_NEEDS_CRAMJAM: Final = ("lz4", "snappy")

Load = Callable[[str, str], Any]
"""The plugin of a kind and name. Raises PluginError."""


class RestCodecs:
    """The codecs that a store may use, got when they are first asked for."""

    def __init__(self, load: Load = get) -> None:
        self.load = load
        """Where codecs come from. The owner of a store may replace it before the store is opened."""
        self._known: dict[str, Compression] = {}

    def named(self, name: str) -> Compression:
        """The codec of that name. Raises CodecMissing, which says what to do."""
        found = self._known.get(name)
        if found is None:
            try:
                found = self.load("compression", name)
            except PluginError as error:
                advice = ": pip install 'pulsarbox[codecs]'" if name in _NEEDS_CRAMJAM else ""
                raise CodecMissing(f"the codec {name!r} cannot be used: {error}{advice}") from None
            assert found is not None
            if found.rest_tag is None or _BY_TAG.get(found.rest_tag, name) != name:
                raise CodecMissing(f"the codec {name!r} is not for use on the disk: its rest_tag is {found.rest_tag!r}")
            self._known[name] = found
        return found

    def tagged(self, tag: bytes, name: str) -> Compression:
        """The codec that writes ``tag``, which was called ``name`` when it did. Raises CodecMissing."""
        found = self.named(_BY_TAG.get(tag, name))
        if found.rest_tag != tag:
            raise CodecMissing(f"the codec {name!r} writes the tag {found.rest_tag!r} now, the disk has {tag!r}")
        return found
