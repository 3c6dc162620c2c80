"""The connections of the HTTP port, with limits on idle time, header lines, and bodies.

aiohttp handles the protocol. It never closes a connection without a complete request, and reports protocol errors as
plain text with a traceback in the log; this module adds a timeout, and answers with a reason in JSON like all others.
"""

import asyncio
import json
import logging
from typing import Any, Final, cast

from aiohttp import StreamReader, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http import RawRequestMessage
from aiohttp.http_exceptions import HttpProcessingError, LineTooLong

from pulsarbox.config import Settings
from pulsarbox.server.http.framework.masked_frames import MaskedFrames
from pulsarbox.server.network.connection_limits import ConnectionLimits
from pulsarbox.server.network.peer_identity import common_name, is_secure
from pulsarbox.server.network.protocol_mismatch import PULSAR, TLS, ProtocolUrls, advice, answer, detect_protocol

log = logging.getLogger(__name__)

_END_OF_HEAD: Final = b"\r\n\r\n"
LINGER_SECONDS: Final = 1.0
"""Seconds to read the rest of an unwanted body, so that the client can receive the answer."""
TAKEN_SECONDS_MAX: Final = 60.0
"""Seconds for a client to read an answer."""


class Server(web.Server):
    """All connections of the port."""

    def __init__(self, handler: Any, settings: Settings, gate: ConnectionLimits, doors: ProtocolUrls) -> None:
        self.gate = gate
        self.doors = doors
        self.idle_seconds = settings.httpServerIdleTimeout / 1000
        self._most = settings.maxHttpServerConnections
        self._max_body = settings.httpMaxRequestSize
        super().__init__(
            handler,
            request_factory=self._request,
            access_log=None,
            handler_cancellation=False,
            auto_decompress=False,
            keepalive_timeout=self.idle_seconds,
            lingering_time=LINGER_SECONDS,
            max_line_size=settings.httpMaxRequestHeaderSize,
            max_field_size=settings.httpMaxRequestHeaderSize,
        )

    def __call__(self) -> "HttpConnection":
        """Create the protocol of a new connection."""
        return HttpConnection(self, loop=self._loop, **self._kwargs)

    def _request(
        self,
        message: RawRequestMessage,
        payload: StreamReader,
        protocol: web.RequestHandler,
        writer: AbstractStreamWriter,
        task: "asyncio.Task[None]",
    ) -> web.BaseRequest:
        assert isinstance(protocol, HttpConnection)
        protocol.has_asked()
        return web.BaseRequest(message, payload, protocol, writer, task, self._loop, client_max_size=self._max_body)

    def refusal(self, host: str, secure: bool) -> str | None:
        """Return why a new connection is refused, or None."""
        if self._most and len(self.connections) > self._most:
            return f"maxHttpServerConnections allows no more than {self._most}"
        return None if secure else self.gate.refusal(host)  # a TLS port has checked this before the handshake


class HttpConnection(web.RequestHandler):
    """One connection."""

    __slots__ = (
        "_counted",
        "_host",
        "_idle_since",
        "_idle_timer",
        "_new",
        "_server",
        "certificate",
        "received_at",
        "secure",
    )

    def __init__(self, server: Server, *, loop: asyncio.AbstractEventLoop, **more: Any) -> None:
        super().__init__(server, loop=loop, **more)
        self._server = server
        self._idle_since = loop.time()
        self._idle_timer: asyncio.TimerHandle | None = None
        self._host = ""
        self._counted = False
        self._new = True
        """Whether no request has been received yet."""
        self.received_at = 0.0
        """When the last bytes of a WebSocket were received, by the clock of the loop."""
        self.secure = False
        """Whether it uses TLS."""
        self.certificate = ""
        """The common name in the client's certificate; empty without one."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Accept a connection, or refuse it by the connection limits."""
        super().connection_made(transport)
        self._host = str((transport.get_extra_info("peername") or "?")[0])
        self.secure, self.certificate = is_secure(transport), common_name(transport)
        gate = self._server.gate
        refusal = self._server.refusal(self._host, self.secure)
        if refusal is not None:
            gate.warn("HTTP refused", "closing the HTTP connection of %s: %s", self._host, refusal)
            _abort(transport)
            return
        gate.enters(self._host)
        self._counted = True
        self._idle_timer = self._loop.call_later(self._server.idle_seconds, self._close_if_idle)

    def data_received(self, data: bytes) -> None:
        """Process received bytes. The first ones are checked for other protocols."""
        if self._new and (what := detect_protocol(data[:4])) in (TLS, PULSAR):
            self._turn_away(what)
            return
        if data.startswith(b"DELETE "):
            head, end, rest = data.partition(_END_OF_HEAD)
            if rest:
                # Node.js sends the body of a DELETE without a length: answer the request, then reject what follows.
                super().data_received(head + end)
                data = rest
        super().data_received(data)

    def set_parser(self, parser: Any, *more: Any, **_: Any) -> None:
        """Parse the frames of a WebSocket from now on."""
        super().set_parser(cast(Any, MaskedFrames(parser, self._has_received)), *more)

    def _has_received(self) -> None:
        self.received_at = self._loop.time()

    def _turn_away(self, what: str) -> None:
        text = advice(what, self.secure, True, self._server.doors)
        self._server.gate.warn(
            "HTTP wrong port", "closing the HTTP connection of %s: the client speaks %s: %s", self._host, what, text
        )
        if self.transport is not None:
            self.transport.write(answer(what, text))
        self.force_close()

    def has_asked(self) -> None:
        """Record a request with complete headers."""
        if self._new and self._counted:
            self._server.gate.known(self._host)
        self._new = False

    def connection_lost(self, exc: BaseException | None) -> None:
        """Release a lost connection."""
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None
        if self._counted:
            self._counted = False
            self._server.gate.leaves(self._host, half_open=self._new)
        super().connection_lost(exc)

    def _close_if_idle(self) -> None:
        """Close the connection if it is idle for too long; an incomplete request does not count as activity."""
        now, seconds = self._loop.time(), self._server.idle_seconds
        if self._request_in_progress:
            self._idle_since = now
        left = self._idle_since + seconds - now
        if left <= 0:
            self._idle_timer = None
            self.force_close()
        else:
            self._idle_timer = self._loop.call_later(left, self._close_if_idle)

    async def finish_response(self, *parts: Any) -> tuple[web.StreamResponse, bool]:
        """Send an answer; abort the connection if the client does not read it in time."""
        try:
            async with asyncio.timeout(TAKEN_SECONDS_MAX):
                return await super().finish_response(*parts)
        except TimeoutError:
            log.warning("a client took more than %g s to read a response", TAKEN_SECONDS_MAX)
            if self.transport is not None:
                _abort(self.transport)
            raise ConnectionResetError from None
        finally:
            self._idle_since = self._loop.time()

    def log_exception(self, *parts: Any, **more: Any) -> None:
        """Log at debug level a body that violates the protocol after its answer: a client error."""
        if isinstance(more.get("exc_info"), HttpProcessingError | web.RequestPayloadError):
            log.debug(*parts, exc_info=more["exc_info"])
        else:
            super().log_exception(*parts, **more)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer an invalid request, or an internal error outside of the handler."""
        if status >= 500:
            return super().handle_error(request, status, exc, message)
        if request.writer.output_size > 0:
            raise ConnectionError("the response has already started")
        if isinstance(exc, LineTooLong):
            status = 414 if "b'/" in (message or "") else 431
        text = " ".join((message or "").split())[:200]
        log.debug("malformed HTTP request from %s: %s", request.remote, text)
        body = json.dumps({"reason": f"Malformed HTTP request: {text}"}, separators=(",", ":"))
        headers = {"Server": "pulsarbox"}
        answer = web.Response(status=status, text=body, content_type="application/json", headers=headers)
        answer.force_close()
        return answer


def _abort(transport: asyncio.BaseTransport) -> None:
    """Close immediately. uvloop's transports are not subclasses of asyncio's."""
    cast(asyncio.Transport, transport).abort()
