"""Frames of the replica protocol: encoding, and decoding of bytes that may be malformed or hostile. Pure.

::

    size      4 bytes   bytes after the checksum, at most a limit
    checksum  4 bytes   CRC32C of these
    kind      1 byte    FrameKind
    zero      3 bytes
    number    4 bytes   the request that the frame belongs to
    fields    4 bytes   size of the JSON object that follows
              ...       the JSON object, UTF-8
              ...       the body: raw bytes

Integers are unsigned and big-endian. The layout is that of all protocol versions.
"""

import json
from collections.abc import Mapping
from struct import Struct
from typing import Any, Final, NamedTuple

from pulsarbox.errors import PersistenceError
from pulsarbox.protocol.checksum import crc32c, extend

PROTOCOL: Final = 1
"""Version of the protocol. The handshake has the lowest and the highest that each side supports."""
HANDSHAKE_MAX: Final = 4096
"""Size of frames before authentication."""
FRAME_MAX: Final = 64 << 20
"""Size of frames after authentication: a batch with one entry of the largest message size fits."""
HEAD: Final = Struct(">II")
_REST: Final = Struct(">BxxxII")


class FrameKind:
    """The kinds of frames."""

    HELLO: Final = 1
    """First frame of the box: versions, and a nonce."""
    CHALLENGE: Final = 2
    """Answer of the replica: versions, and its nonce."""
    PROOF: Final = 3
    """The box proves that it knows the secret."""
    WELCOME: Final = 4
    """The replica proves the same; requests may follow."""
    REFUSED: Final = 5
    """The replica closes the connection, for a reason."""
    REQUEST: Final = 16
    PART: Final = 17
    """A further part of a request; each follows a CONTINUE."""
    END: Final = 18
    """The last part of a request was sent."""
    ABORT: Final = 19
    """The parts of a request end early: it changes nothing."""
    REPLY: Final = 32
    ERROR: Final = 33
    CONTINUE: Final = 34
    """The replica can take the next part."""
    PING: Final = 48
    PONG: Final = 49


class FrameError(PersistenceError):
    """The peer sent bytes that are not a valid frame: the connection cannot be used any longer."""


class WireFrame(NamedTuple):
    """One frame."""

    kind: int
    number: int
    fields: Mapping[str, Any]
    body: bytes = b""


def encode(frame: WireFrame, limit: int = FRAME_MAX) -> list[bytes]:
    """Return a frame as bytes: its head with the fields, then the body, which is not copied. Raises FrameError."""
    fields = json.dumps(frame.fields, separators=(",", ":")).encode() if frame.fields else b""
    rest = _REST.pack(frame.kind, frame.number, len(fields)) + fields
    size = len(rest) + len(frame.body)
    if size > limit:
        raise FrameError(f"a frame of {size} bytes exceeds the limit of {limit}")
    checksum = extend(crc32c(rest), frame.body) if frame.body else crc32c(rest)
    head = HEAD.pack(size, checksum) + rest
    return [head, frame.body] if frame.body else [head]


class WireDecoder:
    """Splits received bytes into frames. Buffers at most one frame of ``limit`` bytes and what was fed with its end."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        """Of the size of a frame; may be changed between two frames."""
        self._buffer = bytearray()

    @property
    def is_between(self) -> bool:
        """Whether no part of a frame is buffered."""
        return not self._buffer

    def feed(self, data: bytes) -> list[WireFrame]:
        """Return the frames that ``data`` completes. Raises FrameError; no further bytes may be fed then."""
        self._buffer += data
        frames: list[WireFrame] = []
        while (frame := self._next()) is not None:
            frames.append(frame)
        return frames

    def _next(self) -> WireFrame | None:
        buffer = self._buffer
        if len(buffer) < HEAD.size:
            return None
        size, checksum = HEAD.unpack_from(buffer)
        if not _REST.size <= size <= self.limit:
            raise FrameError(f"a frame of {size} bytes: expected {_REST.size} to {self.limit}")
        end = HEAD.size + size
        if len(buffer) < end:
            return None
        with memoryview(buffer) as view:
            rest = bytes(view[HEAD.size : end])
        del buffer[:end]
        if crc32c(rest) != checksum:
            raise FrameError("the checksum of a frame does not match")
        return _decoded(rest)


def _decoded(rest: bytes) -> WireFrame:
    kind, number, size = _REST.unpack_from(rest)
    end = _REST.size + size
    if end > len(rest):
        raise FrameError(f"the fields of a frame have {size} bytes, the frame has {len(rest)}")
    try:
        fields = json.loads(rest[_REST.size : end]) if size else {}
    except (ValueError, RecursionError):
        raise FrameError("the fields of a frame are not JSON") from None
    if not isinstance(fields, dict):
        raise FrameError("the fields of a frame are not a JSON object")
    return WireFrame(kind, number, fields, rest[end:])
