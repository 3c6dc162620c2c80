"""Guarded compression plugins: any failure becomes ``PluginFailed``, and calls are counted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pulsarbox.plugins.contracts import Codec, Compression
from pulsarbox.plugins.guard import Guard, PluginFailed


class _Guarded:
    def __init__(self, codec: Codec, guard: Guard) -> None:
        self.compress = guard.bytes_of(codec.compress)
        self.decompress = guard.bytes_of(codec.decompress)


class GuardedCompression:
    """A guarded compression plugin. It has no bulk methods, so that each call is checked."""

    wire_id = None

    def __init__(self, plugin: Compression, guard: Guard) -> None:
        self.api = plugin.api
        self.name = plugin.name
        self.rest_tag = plugin.rest_tag
        self._plugin = plugin
        self._guard = guard

    def open(self) -> Codec:
        """See Compression. Raises PluginFailed."""
        return _Guarded(self._called(self._plugin.open), self._guard)

    def trained(self, dictionary: bytes) -> Codec | None:
        """See Compression. Raises PluginFailed."""
        codec = self._called(lambda: self._plugin.trained(dictionary))
        return None if codec is None else _Guarded(codec, self._guard)

    def train(self, samples: Sequence[bytes], size: int) -> bytes | None:
        """See Compression; None if training fails or does not return a dictionary of at most ``size`` bytes."""
        try:
            found = self._called(lambda: self._plugin.train(samples, size))
        except PluginFailed:
            return None
        return found if type(found) is bytes and 0 < len(found) <= size else None

    def _called(self, call: Callable[[], Any]) -> Any:
        found: list[Any] = []

        def called() -> bytes:
            found.append(call())
            return b""

        self._guard.bytes_of(called)()
        return found[0]
