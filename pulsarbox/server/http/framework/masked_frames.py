"""Check that a client masks its frames, as RFC 6455 requires (section 5.1)."""

from collections.abc import Callable
from typing import Any, Final

_HEADER_MAX: Final = 10
"""Bytes of the longest header, before the mask."""
_MASK: Final = 4
_LENGTH_BYTES: Final = {126: 2, 127: 8}


_INVALID: Final = b"\xf0\x80\0\0\0\0"
"""A frame with reserved bits, for which a parser closes the socket with a protocol error."""


class MaskedFrames:
    """A parser of WebSocket frames behind the check."""

    def __init__(self, parser: Any, received: Callable[[], None]) -> None:
        """``received`` is called with each read."""
        self._parser = parser
        self._received = received
        self._masks = FrameMasks()

    def feed_data(self, data: bytes) -> tuple[bool, bytes]:
        """Pass received bytes on; after a frame without a mask, only an invalid frame."""
        self._received()
        found: tuple[bool, bytes] = self._parser.feed_data(data if self._masks.feed(data) else _INVALID)
        return found

    def feed_eof(self) -> None:
        """Pass the end on."""
        self._parser.feed_eof()


class FrameMasks:
    """Follows the frames of a stream, of which it keeps no payload."""

    def __init__(self) -> None:
        self._head = b""
        """The incomplete header of the next frame."""
        self._skip = 0
        """Bytes of the current frame that are still to come."""
        self._failed = False

    def feed(self, data: bytes) -> bool:
        """Return whether all frames so far are masked; after the first that is not, always False."""
        at = 0
        while not self._failed and at < len(data):
            if self._skip:
                step = min(self._skip, len(data) - at)
                self._skip -= step
                at += step
            else:
                at = self._header(data, at)
        return not self._failed

    def _header(self, data: bytes, at: int) -> int:
        """Read a header that begins in ``_head`` and continues at ``at``; return the offset behind it."""
        before = len(self._head)
        head = self._head + data[at : at + _HEADER_MAX - before]
        if len(head) >= 2 and not head[1] & 0x80:
            self._failed = True
            return len(data)
        extra = _LENGTH_BYTES.get(head[1] & 0x7F, 0) if len(head) >= 2 else _HEADER_MAX
        if len(head) < 2 + extra:
            self._head = head
            return len(data)
        length = int.from_bytes(head[2 : 2 + extra], "big") if extra else head[1] & 0x7F
        self._head = b""
        self._skip = length + _MASK
        return at + 2 + extra - before
