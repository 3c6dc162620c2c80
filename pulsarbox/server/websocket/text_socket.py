"""A WebSocket that carries text: handshake, frames in both directions, idle time, close.

aiohttp handles frames, fragments, ping and close (RFC 6455); messages are not compressed. This module adds the idle
time, and decodes UTF-8 in pieces, so that large messages do not delay other clients. ``framework.masked_frames`` checks
that a client masks its frames.
"""

import asyncio
from codecs import getincrementaldecoder
from typing import Final

from aiohttp import WSMsgType, web

from pulsarbox.server.http.framework.connections import HttpConnection
from pulsarbox.server.tasks import spawn
from pulsarbox.server.websocket.broker_connection import GOING_AWAY

CLOSE_SECONDS: Final = 2.0
"""Time for a client to answer a close frame."""
REASON_MAX: Final = 123
"""Maximum bytes of a close frame's reason."""
DECODED_AT_ONCE: Final = 96 << 10
"""Bytes decoded in one turn of the loop."""
INVALID_TEXT: Final = 1007
"""Close code of a message that is not UTF-8."""


class TextSocket:
    """One open socket."""

    def __init__(self, request: web.BaseRequest, text_max: int, idle_seconds: float) -> None:
        """``text_max`` is the maximum size of a message in bytes; ``idle_seconds`` 0 means no limit."""
        self.response = web.WebSocketResponse(
            timeout=CLOSE_SECONDS, compress=False, max_msg_size=text_max + 1, autoclose=True, decode_text=False
        )
        self._request = request
        self._idle_seconds = idle_seconds
        self._idle_timer: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()
        self._active = self._loop.time()
        self._closing: tuple[int, str] | None = None

    async def open(self) -> None:
        """Upgrade the connection. Raises aiohttp's HTTPBadRequest for an invalid handshake."""
        await self.response.prepare(self._request)
        if self._idle_seconds:
            self._idle_timer = self._loop.call_later(self._idle_seconds, self._check_idle)

    async def receive(self) -> str | None:
        """Return the next text message; None once the socket is closed. Binary messages are ignored."""
        while self._closing is None:
            message = await self.response.receive()
            if message.type is WSMsgType.TEXT:
                try:
                    return await decode_text(message.data)
                except UnicodeDecodeError:
                    await self.close(INVALID_TEXT, "Invalid UTF-8 text message")
                    return None
            if message.type is not WSMsgType.BINARY:
                return None
        return None

    async def send(self, text: bytes) -> None:
        """Send a text message in UTF-8; waits while the client reads too slowly. Raises ConnectionError."""
        await self.response.send_frame(text, WSMsgType.TEXT)
        self._active = self._loop.time()

    async def close(self, code: int, reason: str) -> None:
        """Send a close frame, and wait a moment for the client's."""
        if self._closing is None:
            self._closing = (code, reason)
        self.end()
        message = reason.encode()[:REASON_MAX].decode(errors="ignore").encode()
        try:
            async with asyncio.timeout(2 * CLOSE_SECONDS):
                await self.response.close(code=code, message=message)
        except ConnectionError:
            pass
        except TimeoutError:  # the client does not read
            if self._request.transport is not None:
                self._request.transport.abort()

    @property
    def _received_at(self) -> float:
        connection = self._request.protocol
        return connection.received_at if isinstance(connection, HttpConnection) else 0.0

    def end(self) -> None:
        """Stop the idle timer."""
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None

    def _check_idle(self) -> None:
        left = max(self._active, self._received_at) + self._idle_seconds - self._loop.time()
        if left > 0:
            self._idle_timer = self._loop.call_later(left, self._check_idle)
            return
        self._idle_timer = None
        spawn("idle WebSocket", self.close(GOING_AWAY, "Connection Idle Timeout"))


async def decode_text(data: bytes) -> str:
    """Decode UTF-8, and let other clients be served in between. Raises UnicodeDecodeError."""
    if len(data) <= DECODED_AT_ONCE:
        return data.decode()
    decoder, parts = getincrementaldecoder("utf-8")(), list[str]()
    for at in range(0, len(data), DECODED_AT_ONCE):
        end = at + DECODED_AT_ONCE
        parts.append(decoder.decode(data[at:end], end >= len(data)))
        await asyncio.sleep(0)
    return "".join(parts)


def address_of(request: web.BaseRequest) -> str:
    """Return the ``host:port`` of a client."""
    transport = request.transport
    peer = transport.get_extra_info("peername") if transport is not None else None
    return f"{peer[0]}:{peer[1]}" if peer else "?"


def is_secure(request: web.BaseRequest) -> bool:
    """Return whether a client uses TLS."""
    return isinstance(request.protocol, HttpConnection) and request.protocol.secure
