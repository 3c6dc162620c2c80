"""The WebSocket endpoints of the HTTP port: authentication, refusals, the upgrade, and the life of a session."""

import logging
from collections.abc import Mapping
from secrets import token_hex
from types import MappingProxyType
from typing import Final

from aiohttp import web

from pulsarbox.broker.security.authorization import CONSUME, PRODUCE
from pulsarbox.broker.security.principal import Principal
from pulsarbox.errors import AuthenticationError, AuthorizationError, BadRequest, NotFound, PulsarBoxError
from pulsarbox.protocol.PulsarApi_pb2 import ServerError
from pulsarbox.server.http.framework.authentication import authenticate_request
from pulsarbox.server.http.framework.cross_site import CrossSite
from pulsarbox.server.http.framework.request import HttpResponse, refusal
from pulsarbox.server.http.framework.routes import Permission
from pulsarbox.server.shell_protocol import Shell
from pulsarbox.server.websocket.broker_connection import BrokerRefusal
from pulsarbox.server.websocket.consumer_session import ConsumerSession
from pulsarbox.server.websocket.endpoint import PRODUCER, READER, SocketEndpoint, parse_endpoint
from pulsarbox.server.websocket.parameters import consumer_parameters, producer_parameters, reader_parameters
from pulsarbox.server.websocket.producer_session import ProducerSession
from pulsarbox.server.websocket.session import SocketSession
from pulsarbox.server.websocket.text_socket import TextSocket, address_of, is_secure

log = logging.getLogger(__name__)

STATUS_OF: Final[Mapping[int, int]] = MappingProxyType(
    {
        ServerError.AuthenticationError: 401,
        ServerError.AuthorizationError: 403,
        ServerError.TopicNotFound: 404,
        ServerError.SubscriptionNotFound: 404,
        ServerError.ProducerBusy: 409,
        ServerError.ConsumerBusy: 409,
        ServerError.ProducerFenced: 409,
        ServerError.IncompatibleSchema: 409,
        ServerError.TooManyRequests: 429,
        ServerError.ServiceNotReady: 503,
        ServerError.ProducerBlockedQuotaExceededError: 503,
        ServerError.ProducerBlockedQuotaExceededException: 503,
        ServerError.TopicTerminatedError: 503,
        ServerError.InvalidTopicName: 400,
    }
)
"""The HTTP status for an error of the broker, as in Pulsar 4.2.4; others are 500."""
_NOT_UPGRADED: Final = refusal(
    405, "This is a WebSocket endpoint: connect with a WebSocket client, at ws://host:port or wss://host:port"
)


class WebSocketServer:
    """All WebSockets of a box."""

    def __init__(self, shell: Shell, cross_site: CrossSite) -> None:
        self._shell = shell
        self._cross_site = cross_site

    async def serve(self, request: web.BaseRequest) -> web.StreamResponse | HttpResponse:
        """Serve a request below /ws until its socket is closed, or return why it is refused."""
        who = await authenticate_request(request, self._shell, Permission.NAMED, _authorization(request))
        if isinstance(who, HttpResponse):
            return who
        if reason := self._cross_site.refusal(request.headers, who):
            return refusal(403, reason)
        host, gate = request.remote or "?", self._shell.gate
        full = gate.broker_refusal(host, len(self._shell.connections))
        if full is not None:
            return refusal(503, full)
        session = None
        gate.socket_enters(host)
        try:
            endpoint = parse_endpoint(request.rel_url.raw_path, request.query)
            if not _wants_upgrade(request):
                return _NOT_UPGRADED
            self._check(endpoint, who)
            session = self._session(request, endpoint, who)
            await session.open()
            return await self._run(request, session)
        except PulsarBoxError as error:
            return _refusal_of(error)
        except web.HTTPBadRequest as error:
            return refusal(400, f"Invalid WebSocket handshake: {error.text}")
        finally:
            gate.socket_leaves(host)
            if session is not None:
                session.close()

    def _check(self, endpoint: SocketEndpoint, who: Principal | None) -> None:
        """Raise AuthorizationError unless the client may use all topics of an endpoint."""
        authorization = self._shell.broker.authorization
        if authorization.enabled:
            authorization.require_name(who)
            action = PRODUCE if endpoint.kind == PRODUCER else CONSUME
            for topic in endpoint.topics:
                authorization.require_on_topic(who, topic, (action,), endpoint.subscription)

    def _session(self, request: web.BaseRequest, endpoint: SocketEndpoint, who: Principal | None) -> SocketSession:
        query, shell, address, secure = request.query, self._shell, address_of(request), is_secure(request)
        if endpoint.kind == PRODUCER:
            produced = producer_parameters(query)
            return ProducerSession(shell, address, who, endpoint.topics[0], produced, secure=secure)
        if endpoint.kind == READER:
            name = f"reader-{token_hex(5)}"  # as Java clients name the subscription of a reader
            reading = reader_parameters(query)
            return ConsumerSession(shell, address, who, endpoint._replace(subscription=name), reading, secure=secure)
        first = endpoint.topics[0] if endpoint.topics else None
        consumed = consumer_parameters(query, first, endpoint.subscription)
        return ConsumerSession(shell, address, who, endpoint, consumed, secure=secure)

    async def _run(self, request: web.BaseRequest, session: SocketSession) -> web.StreamResponse:
        settings = self._shell.broker.settings
        idle = settings.webSocketSessionIdleTimeoutMillis / 1000
        socket = TextSocket(request, settings.webSocketMaxTextFrameSize, idle)
        await socket.open()
        try:
            await session.run(socket)
        finally:
            session.close()
            await socket.close(1000, "")
        return socket.response


def _authorization(request: web.BaseRequest) -> str | None:
    """Return the Authorization header; without one, the token in the query, which browsers can send."""
    if "Authorization" in request.headers or "token" not in request.query:
        return None
    token = request.query["token"]
    return token if token.startswith("Bearer ") else f"Bearer {token}"


def _wants_upgrade(request: web.BaseRequest) -> bool:
    return request.method == "GET" and request.headers.get("Upgrade", "").strip().lower() == "websocket"


def _refusal_of(error: PulsarBoxError) -> HttpResponse:
    if isinstance(error, BrokerRefusal):
        status = STATUS_OF.get(error.code, 500)
    elif isinstance(error, BadRequest | NotFound | AuthorizationError | AuthenticationError):
        status = error.http_status
    else:
        status = STATUS_OF.get(error.server_error, error.http_status)
    if status >= 500:
        log.warning("a WebSocket is refused: %s", error)
    return refusal(status, str(error))
