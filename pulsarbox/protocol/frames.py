"""Cut a stream of bytes into frames.

A frame is ``[u32 totalSize][u32 cmdSize][BaseCommand][rest]``, big endian; totalSize counts what follows it. The rest
is empty for a simple command; for SEND and MESSAGE it is the payload from its magic number on, byte for byte.

The decoder owns the receive buffer, so that asyncio's BufferedProtocol can read straight into it::

    def get_buffer(self, sizehint: int) -> memoryview:
        return self.decoder.get_buffer(sizehint)

    def buffer_updated(self, nbytes: int) -> None:
        for command, rest in self.decoder.buffer_updated(nbytes):
            ...
        if self.decoder.error is not None:
            ...  # the frames above came before it; answer and close

Memory: a decoder with nothing half-received holds no buffer at all. Buffers of 64 KiB and 256 KiB are lent from a
small common stock for as long as bytes are pending; a frame above that gets a buffer of its own, which grows with the
bytes that arrive (a header alone cannot make the broker allocate megabytes) and is dropped with its frame.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Final, TypeAlias

from pulsarbox.protocol.violations import FrameTooLarge, MalformedFrame, ProtocolError

Frame: TypeAlias = tuple[bytes, bytes]
"""(the command's bytes, everything after the command)"""

MESSAGE_SIZE_FRAME_PADDING: Final = 10 * 1024
"""Bytes a frame may have beyond the maximum message size: the room for its command and sizes."""

SMALL_BUFFER: Final = 64 * 1024
"""Bytes of the buffer that a read into an empty decoder gets."""

LARGE_BUFFER: Final = 256 * 1024
"""Bytes of the buffer for a frame that does not fit the small one; most batches of clients do fit this."""

_STOCK_LIMIT = 16
_stock: dict[int, list[memoryview]] = {SMALL_BUFFER: [], LARGE_BUFFER: []}

_sizes = Struct(">II").unpack_from  # totalSize, cmdSize
_total_size = Struct(">I").unpack_from


def max_frame_size(max_message_size: int) -> int:
    """The largest totalSize for brokers and clients that agreed on ``max_message_size`` bytes."""
    return max_message_size + MESSAGE_SIZE_FRAME_PADDING


def _lend(size: int) -> memoryview:
    stock = _stock.get(size)
    return stock.pop() if stock else memoryview(bytearray(size))


def _give_back(buffer: memoryview) -> None:
    stock = _stock.get(len(buffer))
    if stock is not None and len(stock) < _STOCK_LIMIT:
        stock.append(buffer)


class FrameDecoder:
    """Bytes in, frames out. It never raises: a broken stream ends in ``error``.

    ``error`` is None until the peer breaks the protocol. Then it is the ProtocolError, set by the call that returned
    the last good frames; from there on every byte is dropped and no frame comes.
    """

    __slots__ = ("_buffer", "_end", "_limit", "_need", "_size", "error", "head")

    def __init__(self, max_frame_size: int) -> None:
        """``max_frame_size``: the largest totalSize accepted, in bytes (see the function of that name)."""
        self.error: ProtocolError | None = None
        self.head = b""
        """The four bytes that were no size of a frame, where ``error`` is about them."""
        self._limit = max_frame_size
        self._size = SMALL_BUFFER
        self._buffer: memoryview | None = None
        self._end = 0  # bytes pending in the buffer; they begin at its start, with a frame's header
        self._need = 8  # bytes the frame at the start needs before it can be looked at or cut

    def allow(self, max_frame_size: int) -> None:
        """From now on, another largest totalSize: a client learns it from its broker."""
        self._limit = max_frame_size

    def expect_much(self) -> None:
        """From now on, read into a large buffer from the beginning."""
        self._size = LARGE_BUFFER

    @property
    def pending(self) -> int:
        """Bytes received that are not part of a returned frame yet."""
        return self._end

    @property
    def allocated(self) -> int:
        """Bytes of buffer this decoder holds now: 0 when nothing is pending."""
        return 0 if self._buffer is None else len(self._buffer)

    def get_buffer(self, sizehint: int = -1) -> memoryview:
        """Free space to read into, never empty. ``sizehint`` is ignored: what is pending knows better."""
        buffer = self._buffer
        if buffer is None:
            buffer = self._buffer = _lend(self._size)
            return buffer
        if self._need > SMALL_BUFFER:
            # Up to the end of the frame and no further: then it is cut out with one copy and leaves nothing to move.
            return buffer[self._end : self._need]
        return buffer[self._end :]

    def buffer_updated(self, nbytes: int) -> list[Frame]:
        """The frames that ``nbytes`` more bytes, just written into ``get_buffer()``, completed, in order."""
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
        """The same for who cuts out many frames at a time. ``taker`` is given all that is pending, once it begins with
        a complete frame, and tells where the first one begins that it has not taken: not complete, or wrong.
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
        """The same from a bytes object: copied into the buffer piece by piece. For tests and the simulation."""
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
        """Read the header at the start of the buffer; False when it is not complete, or wrong."""
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
        """Every complete frame of ``data``; the beginning of the next one moves to the start of the buffer."""
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
        """Keep ``data`` from ``start`` on, or give the buffer back when that is nothing."""
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
        """The one frame that is all there is (large ones always are), each of its two parts copied once."""
        rest = 8 + _sizes(buffer)[1]
        frame = (bytes(buffer[8:rest]), bytes(buffer[rest : self._need]))
        self._drop()
        return frame

    def _make_room(self, buffer: memoryview) -> None:
        """See that the buffer has room to go on with the frame at its start."""
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
        """Say what is wrong with the sizes of a header. ``size`` 0 with a total below 5: cmdSize was not looked at."""
        self.head = total.to_bytes(4, "big")
        if total > self._limit:
            self.error = FrameTooLarge(f"frame of {total} bytes exceeds the limit of {self._limit} bytes")
        elif total < 5:
            self.error = MalformedFrame(f"frame of {total} bytes has no room for a command: at least 5 are needed")
        else:
            self.error = MalformedFrame(f"command of {size} bytes in a frame of {total} bytes: 1 to {total - 4} fit")
        self._drop()
