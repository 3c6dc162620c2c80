"""Splitting of a byte stream into frames.

A frame is ``[u32 totalSize][u32 cmdSize][BaseCommand][rest]``, big endian; totalSize counts the bytes after it. The
rest is empty for a simple command; for SEND and MESSAGE it is the unchanged payload, starting at its magic number.

The decoder owns the receive buffer, so asyncio's BufferedProtocol can read straight into it::

    def get_buffer(self, sizehint: int) -> memoryview:
        return self.decoder.get_buffer(sizehint)

    def buffer_updated(self, nbytes: int) -> None:
        for command, rest in self.decoder.buffer_updated(nbytes):
            ...
        if self.decoder.error is not None:
            ...  # the frames above arrived before the error; answer and close

Memory: a decoder without a partial frame holds no buffer. Buffers of 64 KiB and 256 KiB are borrowed from a small
shared pool while bytes are pending. A larger frame gets its own buffer, which grows with the bytes received (a
header alone cannot make the broker allocate megabytes) and is dropped with its frame.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Final, TypeAlias

from pulsarbox.protocol.violations import FrameTooLarge, MalformedFrame, ProtocolError

Frame: TypeAlias = tuple[bytes, bytes]
"""(command bytes, bytes after the command)"""

MESSAGE_SIZE_FRAME_PADDING: Final = 10 * 1024
"""Bytes that a frame may have beyond the maximum message size, for its command and size fields."""

SMALL_BUFFER: Final = 64 * 1024
"""Bytes of the initial read buffer."""

LARGE_BUFFER: Final = 256 * 1024
"""Bytes of the buffer for a frame that does not fit in the small one; most clients' batches fit in it."""

_STOCK_LIMIT = 16
_stock: dict[int, list[memoryview]] = {SMALL_BUFFER: [], LARGE_BUFFER: []}

_sizes = Struct(">II").unpack_from  # totalSize, cmdSize
_total_size = Struct(">I").unpack_from


def max_frame_size(max_message_size: int) -> int:
    """Return the largest allowed totalSize for a maximum message size of ``max_message_size`` bytes."""
    return max_message_size + MESSAGE_SIZE_FRAME_PADDING


def _lend(size: int) -> memoryview:
    stock = _stock.get(size)
    return stock.pop() if stock else memoryview(bytearray(size))


def _give_back(buffer: memoryview) -> None:
    stock = _stock.get(len(buffer))
    if stock is not None and len(stock) < _STOCK_LIMIT:
        stock.append(buffer)


class FrameDecoder:
    """Incremental frame decoder. It never raises: a protocol violation sets ``error``.

    ``error`` is None until the peer violates the protocol. It is then the ProtocolError, set by the call that returned
    the last valid frames; all later bytes are dropped.
    """

    __slots__ = ("_buffer", "_end", "_limit", "_need", "_size", "error", "head")

    def __init__(self, max_frame_size: int) -> None:
        """``max_frame_size``: the largest accepted totalSize, in bytes (see the function of that name)."""
        self.error: ProtocolError | None = None
        self.head = b""
        """The first four bytes of the invalid frame header, if ``error`` is set."""
        self._limit = max_frame_size
        self._size = SMALL_BUFFER
        self._buffer: memoryview | None = None
        self._end = 0  # bytes pending in the buffer, starting with a frame header at offset 0
        self._need = 8  # bytes needed before the first frame can be measured or returned

    def allow(self, max_frame_size: int) -> None:
        """Change the largest accepted totalSize: a client learns it from its broker."""
        self._limit = max_frame_size

    def expect_much(self) -> None:
        """Start with a large buffer from now on."""
        self._size = LARGE_BUFFER

    @property
    def pending(self) -> int:
        """Received bytes that are not part of a returned frame yet."""
        return self._end

    @property
    def allocated(self) -> int:
        """Bytes of buffer held by this decoder; 0 if nothing is pending."""
        return 0 if self._buffer is None else len(self._buffer)

    def get_buffer(self, sizehint: int = -1) -> memoryview:
        """Return free space to read into, never empty. ``sizehint`` is ignored: the pending frame determines the
        size."""
        buffer = self._buffer
        if buffer is None:
            buffer = self._buffer = _lend(self._size)
            return buffer
        if self._need > SMALL_BUFFER:
            # End at the frame's end: the frame is then cut out with one copy and leaves no bytes to move.
            return buffer[self._end : self._need]
        return buffer[self._end :]

    def buffer_updated(self, nbytes: int) -> list[Frame]:
        """Return, in order, the frames completed by ``nbytes`` more bytes written into ``get_buffer()``."""
        end = self._end = self._end + nbytes
        if end < 4 or (buffer := self._buffer) is None:
            return []
        if self._need == 8 and not self._measure(buffer, end):
            return []
        if end < self._need:
            self._make_room(buffer)
            return []
        if end == self._need:
            return [self._cut_one(buffer)]
        return self._cut_all(bytes(buffer[:end]), buffer)

    def give(self, nbytes: int, taker: Callable[[bytes], int]) -> None:
        """Pass pending bytes to ``taker`` instead of returning frames, for bulk decoding.

        ``taker`` gets all pending bytes once they start with a complete frame, and returns the offset of the first
        frame that it did not consume, because it is incomplete or invalid.
        """
        end = self._end = self._end + nbytes
        if end < 4 or (buffer := self._buffer) is None:
            return
        if self._need == 8 and not self._measure(buffer, end):
            return
        if end < self._need:
            self._make_room(buffer)
            return
        data = bytes(buffer[:end])
        self._need = 8
        self._keep(data, taker(data), buffer)

    def feed(self, data: bytes) -> list[Frame]:
        """Decode a bytes object, copied into the buffer in pieces. For tests and the simulation."""
        frames: list[Frame] = []
        rest = memoryview(data)
        while rest:
            free = self.get_buffer(len(rest))
            size = min(len(free), len(rest))
            free[:size] = rest[:size]
            frames += self.buffer_updated(size)
            rest = rest[size:]
        return frames

    def _measure(self, buffer: memoryview, end: int) -> bool:
        """Read the header at the start of the buffer; return False if it is incomplete or invalid."""
        if self.error is not None:
            self._drop()
            return False
        if end < 8:
            total: int = _total_size(buffer)[0]
            if total > self._limit or total < 5:
                self._fail(total, 0)
            return False
        total, size = _sizes(buffer)
        if total > self._limit or not 0 < size <= total - 4:
            self._fail(total, size)
            return False
        self._need = 4 + total
        return True

    def _cut_all(self, data: bytes, buffer: memoryview) -> list[Frame]:
        """Return every complete frame of ``data`` and move the start of the next one to the start of the buffer."""
        frames: list[Frame] = []
        append = frames.append
        limit = self._limit
        sizes = _sizes
        start = 0
        last = len(data) - 8
        self._need = 8
        while start <= last:
            total, size = sizes(data, start)
            if total > limit or not 0 < size <= total - 4:
                self._fail(total, size)
                return frames
            stop = start + 4 + total
            if stop > last + 8:
                self._need = 4 + total
                break
            rest = start + 8 + size
            append((data[start + 8 : rest], data[rest:stop]))
            start = stop
        self._keep(data, start, buffer)
        return frames

    def _keep(self, data: bytes, start: int, buffer: memoryview) -> None:
        """Keep ``data`` from ``start`` on; return the buffer to the pool if nothing is left."""
        left = self._end = len(data) - start
        if not left:
            self._drop()
            return
        buffer[:left] = data[start:]
        if left >= 4 and self._need == 8:
            self._measure(buffer, left)
        if self._need > 8:
            self._make_room(buffer)

    def _cut_one(self, buffer: memoryview) -> Frame:
        """Return the only frame in the buffer (large ones are always alone), copying each of its two parts once."""
        rest = 8 + _sizes(buffer)[1]
        frame = (bytes(buffer[8:rest]), bytes(buffer[rest : self._need]))
        self._drop()
        return frame

    def _make_room(self, buffer: memoryview) -> None:
        """Enlarge the buffer if it is full and the first frame needs more."""
        if len(buffer) >= self._need or self._end < len(buffer):
            return
        size = max(LARGE_BUFFER, min(self._need, 2 * self._end))
        larger = _lend(size)
        larger[: self._end] = buffer[: self._end]
        self._buffer = larger
        _give_back(buffer)

    def _drop(self) -> None:
        self._end = 0
        self._need = 8
        if self._buffer is not None:
            _give_back(self._buffer)
            self._buffer = None

    def _fail(self, total: int, size: int) -> None:
        """Set ``error`` for a header's sizes. ``size`` 0 with a total below 5: cmdSize was not read."""
        self.head = total.to_bytes(4, "big")
        if total > self._limit:
            self.error = FrameTooLarge(f"frame of {total} bytes exceeds the limit of {self._limit} bytes")
        elif total < 5:
            self.error = MalformedFrame(f"frame of {total} bytes is too small for a command: expected at least 5 bytes")
        else:
            self.error = MalformedFrame(
                f"command of {size} bytes in a frame of {total} bytes: expected 1 to {total - 4}"
            )
        self._drop()
