"""The HTTP port: reads a request, calls its handler, waits for the disk, answers.

No answer is sent before everything that the core has changed is durable, for any request: whatever a client was told,
including refusals such as "exists already", still holds after a crash.
"""

import asyncio
import logging
import socket
from collections.abc import Sequence
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from yarl import URL

from pulsarbox.broker.security.principal import BOX, Principal
from pulsarbox.clock import Now
from pulsarbox.errors import NotFound, PulsarBoxError, ServiceNotReady
from pulsarbox.server.http.framework.audit import BODY, Audit, printable
from pulsarbox.server.http.framework.authentication import authenticate_request
from pulsarbox.server.http.framework.authorization import permit
from pulsarbox.server.http.framework.connections import HttpConnection, Server
from pulsarbox.server.http.framework.cross_site import CrossSite
from pulsarbox.server.http.framework.file_download import send_download
from pulsarbox.server.http.framework.live_stream import LiveAnswers, holder_of
from pulsarbox.server.http.framework.request import (
    DONE,
    FAILED,
    DeferredAnswer,
    Download,
    HttpRequest,
    HttpResponse,
    LiveResponse,
    Pieces,
    refusal,
    refusal_of,
)
from pulsarbox.server.http.framework.routes import Match, split_path
from pulsarbox.server.http.framework.streamed_response import stream
from pulsarbox.server.http.framework.upload import Upload, receive_upload
from pulsarbox.server.http.route_table import all_routes
from pulsarbox.server.one_shot_thread import run_in_thread
from pulsarbox.server.shell_protocol import Shell

if TYPE_CHECKING:
    from pulsarbox.server.network.certificates import Certificates
    from pulsarbox.server.network.tls_port import TlsPort
    from pulsarbox.server.websocket.server import WebSocketServer

log = logging.getLogger(__name__)

DURABLE_SECONDS_MAX = 30.0
"""Seconds that an answer waits for the disk: as long as clients wait for an answer."""
ANSWER_SECONDS_MAX = 60.0
"""Seconds that an answer waits for a deferred result: as long as Pulsar's Admin API clients wait."""
SHUTDOWN_SECONDS_MAX = 1.0
BACKLOG = 1024
"""Connections queued by the system until they are accepted; further ones are retried after a second."""

SERVER: Final = {"Server": "pulsarbox"}

Answered = HttpResponse | DeferredAnswer | Pieces | LiveResponse | Download | Upload
"""The types that handlers return."""

_METHODS = ("GET", "HEAD", "PUT", "POST", "DELETE", "OPTIONS")


class HttpServer:
    """The Admin API of one broker."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell
        self._routes = all_routes()
        self._runner: web.ServerRunner | None = None
        self._tls: TlsPort | None = None
        self._body_seconds = 0.0
        """Timeout for receiving a body, in seconds."""
        self._body_max = 0
        self._live = LiveAnswers()
        self._cross_site = CrossSite(shell.broker)
        self._sockets: WebSocketServer | None = None
        self._audit = Audit(shell.broker.refusals, shell.broker.events)

    async def start(
        self,
        sockets: list[socket.socket],
        tls_sockets: Sequence[socket.socket] = (),
        certificates: "Certificates | None" = None,
    ) -> None:
        """Serve on listening sockets; on ``tls_sockets`` with TLS."""
        # The library's access log is disabled: only changes are logged, by `_serve`.
        settings = self._shell.broker.settings
        server = Server(self._serve, settings, self._shell.gate, self._shell.protocol_urls)
        self._body_seconds = server.idle_seconds
        self._body_max = settings.httpMaxRequestSize
        self._runner = web.ServerRunner(server, shutdown_timeout=SHUTDOWN_SECONDS_MAX)
        await self._runner.setup()
        for each in sockets:
            await web.SockSite(self._runner, each, backlog=BACKLOG).start()
        if certificates is not None:
            from pulsarbox.server.network.tls_port import TlsPort

            seconds = settings.tlsHandshakeTimeoutSeconds
            shell = self._shell
            self._tls = TlsPort(
                tls_sockets, server, certificates, shell.gate, shell.protocol_urls, web=True, seconds=seconds
            )
            self._tls.start()

    async def stop(self) -> None:
        """Close the port; requests in progress get a moment to finish."""
        self._live.end()
        if self._tls is not None:
            self._tls.stop()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def answer_itself(self, method: str, target: str, body: bytes) -> HttpResponse:
        """Answer a request of the box itself, which no client sends: without authentication, with all permissions.

        Does not wait for the disk; ``durable`` does, for any number of them.
        """
        url = URL(target, encoded=True)
        try:
            match = self._found(method, url.raw_path)
            if isinstance(match, HttpResponse):
                return match
            call = HttpRequest(self._shell.broker, self._shell.now(), match.path, url.query, body, "", principal=BOX)
            found = match.route.handler(call)
        except PulsarBoxError as error:
            return refusal_of(error)
        finally:
            self._shell.kick()
        assert isinstance(found, HttpResponse | DeferredAnswer), target
        return await self._there(found)

    async def durable(self) -> None:
        """Return once everything that was answered is durable. Raises ServiceNotReady."""
        given = await self._durable(DONE)
        if given.status >= 400:
            raise ServiceNotReady("the disk did not store the changes in time")

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        """Handle one request in a single turn, from its last byte to its answer, except for waiting for the disk."""
        if request.method == "OPTIONS" and (allowed := self._cross_site.preflight(request.headers)):
            return web.Response(status=204, headers={**SERVER, **allowed})
        if request.rel_url.raw_path.startswith("/ws/") and self._shell.broker.settings.webSocketServiceEnabled:
            return await self._serve_socket(request)
        match = self._match(request)
        # Authenticate before reading the body, so that unauthenticated clients cannot send one.
        who = await authenticate_request(
            request, self._shell, match.route.permission if isinstance(match, Match) else None
        )
        if isinstance(who, HttpResponse):
            return self._unread(request, who, None)
        if reason := self._cross_site.refusal(request.headers, who):
            return self._unread(request, refusal(403, reason), who)
        found = await self._handled(request, match, who)
        if isinstance(found, web.Response):
            return found
        return await self._sent(request, found, who)

    async def _handled(
        self, request: web.BaseRequest, match: Match | HttpResponse, who: Principal | None
    ) -> "Answered | web.Response":
        """Read the body and return the handler's answer, or the response if the body was not read."""
        if isinstance(match, Match) and match.route.streams_body:
            found = await self._uploaded(request, match, who)
            if isinstance(found, HttpResponse) and found.status >= 400:
                return self._unread(request, await self._durable(found), who)
            return found
        body = await self._body(request)
        if isinstance(body, HttpResponse):
            return self._unread(request, body, who)
        return self._given(request, match, body, who)

    async def _sent(self, request: web.BaseRequest, found: "Answered", who: Principal | None) -> web.StreamResponse:
        """Send an answer, unless it is to be returned to the library."""
        headers = {**SERVER, **self._cross_site.shared_with(request.headers)}
        if isinstance(found, Pieces):
            return await stream(request, found, headers)
        if isinstance(found, Download):
            sent = await send_download(request, found, self._shell, headers)
            if not isinstance(sent, HttpResponse):
                return sent
            found = sent
        if isinstance(found, LiveResponse):
            holder = holder_of(who, request.remote)
            refused = self._live.refusal(holder, self._shell.broker.settings)
            if refused is None:
                return await self._live.stream(request, found, headers, holder, lambda: self._may_still(request, who))
            found = refused
        assert isinstance(found, HttpResponse | DeferredAnswer), f"the route of {request.path} does not stream its body"
        given = await self._durable(await self._there(found))
        self._audit.log(request, given, who, self._shell.now())
        headers |= given.headers
        if given.body:
            headers["Content-Type"] = given.content_type
        return web.Response(status=given.status, body=given.body or None, headers=headers)

    async def _uploaded(self, request: web.BaseRequest, match: Match, who: Principal | None) -> "Answered":
        """Pass the body to the handler as it arrives, and return the answer."""
        found = self._given(request, match, b"", who)
        if isinstance(found, HttpResponse | DeferredAnswer | Pieces | LiveResponse | Download):
            return found
        return await receive_upload(request, found, self._shell, self._there, self._body_seconds)

    async def _serve_socket(self, request: web.BaseRequest) -> web.StreamResponse:
        """Serve a WebSocket until it is closed. The room is imported for the first one, beside the loop."""
        if self._sockets is None:
            room = await run_in_thread("imports", lambda: import_module("pulsarbox.server.websocket.server"))
            self._sockets = room.WebSocketServer(self._shell, self._cross_site)
        found = await self._sockets.serve(request)
        if isinstance(found, HttpResponse):
            headers = {**SERVER, "Content-Type": found.content_type, **found.headers}
            response = web.Response(status=found.status, body=found.body, headers=headers)
            response.force_close()
            return response
        return found

    def _unread(self, request: web.BaseRequest, given: HttpResponse, who: Principal | None) -> web.Response:
        """Answer a request whose body was not read completely, and close the connection."""
        headers = {**SERVER, "Content-Type": given.content_type}
        response = web.Response(status=given.status, body=given.body, headers={**headers, **given.headers})
        response.force_close()
        self._audit.log(request, given, who, self._shell.now())
        return response

    async def _body(self, request: web.BaseRequest) -> bytes | HttpResponse:
        """Return the whole body, or the answer if it cannot be read."""
        too_large = refusal(413, f"The body is larger than {self._body_max} bytes (httpMaxRequestSize)")
        if (request.content_length or 0) > self._body_max:
            return too_large
        packed = request.headers.get("Content-Encoding", "identity")
        if packed != "identity":
            return refusal(415, f"Content-Encoding {packed[:40]} is not supported: send the body uncompressed")
        try:
            async with asyncio.timeout(self._body_seconds):
                body = request[BODY] = await request.read()
                return body
        except web.HTTPRequestEntityTooLarge:
            return too_large
        except TimeoutError:
            return refusal(408, f"The body was not received within {self._body_seconds:g} s (httpServerIdleTimeout)")
        except (web.RequestPayloadError, HttpProcessingError, ConnectionError) as error:
            return refusal(400, f"The body cannot be read: {error}")

    def _given(
        self, request: web.BaseRequest, match: Match | HttpResponse, body: bytes, who: Principal | None
    ) -> "Answered":
        """Return the handler's answer, possibly deferred, or the error answer of its exception."""
        if isinstance(match, HttpResponse):
            return match
        try:
            call = self._call(request, match, body, who)
            permit(call, match.route.permission)
            return match.route.handler(call)
        except PulsarBoxError as error:
            return refusal_of(error)
        except Exception:
            log.exception("%s %s failed", request.method, printable(request.raw_path))
            return refusal(500, FAILED)
        finally:
            self._shell.kick()

    def _call(self, request: web.BaseRequest, match: Match, body: bytes, who: Principal | None) -> HttpRequest:
        assert isinstance(request.protocol, HttpConnection)
        return HttpRequest(
            self._shell.broker,
            self._shell.now(),
            match.path,
            request.query,
            body,
            request.headers.get("Host", ""),
            request.headers.get("X-Pulsar-ListenerName", "").strip(),
            who,
            request.protocol.secure,
        )

    async def _may_still(self, request: web.BaseRequest, before: Principal | None) -> bool:
        """Return whether the client of a stream would still be granted it."""
        match = self._match(request)
        if isinstance(match, HttpResponse):
            return False
        who = await authenticate_request(request, self._shell, match.route.permission)
        if isinstance(who, HttpResponse) or who != before:
            return False
        try:
            permit(self._call(request, match, b"", who), match.route.permission)
        except PulsarBoxError:
            return False
        return True

    def _match(self, request: web.BaseRequest) -> Match | HttpResponse:
        """Return the route of a request, or the answer if there is none, or for OPTIONS."""
        try:
            return self._found(request.method, request.rel_url.raw_path)
        except PulsarBoxError as error:
            return refusal_of(error)

    def _found(self, method: str, raw_path: str) -> Match | HttpResponse:
        """Return the result of ``_match``. Raises NotFound, BadRequest."""
        segments = split_path(raw_path)
        match = self._routes.find("GET" if method == "HEAD" else method, segments)
        if match is not None:
            return match
        others = self._routes.methods(segments)
        if not others:
            raise NotFound(f"There is nothing at {printable(raw_path)}")
        allowed = [*(["HEAD"] if "GET" in others else []), *others, "OPTIONS"]
        headers = MappingProxyType({"Allow": ",".join(allowed)})
        if method == "OPTIONS":
            return HttpResponse(200, ", ".join(allowed).encode(), "text/plain", headers)
        reason = (
            f"{printable(raw_path)} supports {', '.join(others)}, not {method}"
            if method in _METHODS
            else f"{method} is not a method of this API"
        )
        return refusal(405, reason)._replace(headers=headers)

    async def _there(self, given: HttpResponse | DeferredAnswer) -> HttpResponse:
        """Wait for a deferred answer."""
        if isinstance(given, HttpResponse):
            return given
        future: asyncio.Future[HttpResponse] = asyncio.get_running_loop().create_future()

        def told(answer: HttpResponse) -> None:
            if not future.done():
                future.set_result(answer)

        given.on_complete(told)
        self._shell.kick()
        try:
            async with asyncio.timeout(ANSWER_SECONDS_MAX):
                return await future
        except TimeoutError:
            return refusal(
                504, f"The request takes longer than {ANSWER_SECONDS_MAX:g} s and continues in the background"
            )

    async def _durable(self, given: HttpResponse) -> HttpResponse:
        """Return the answer once everything that the core has changed so far is durable."""
        future = asyncio.get_running_loop().create_future()

        def durable(now: Now) -> None:
            if not future.done():
                future.set_result(None)

        self._shell.broker.when_durable(durable, self._shell.now())
        if not future.done():
            self._shell.kick()
            try:
                async with asyncio.timeout(DURABLE_SECONDS_MAX):
                    await future
            except TimeoutError:
                return refusal(
                    ServiceNotReady.http_status, "The change was not stored in time; it may still take effect"
                )
        return given
