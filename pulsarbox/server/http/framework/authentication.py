"""Authentication of requests by headers and client certificates, and the answer if it fails."""

import asyncio
from types import MappingProxyType
from typing import Final

from aiohttp import web

from pulsarbox.broker.security.principal import Principal
from pulsarbox.broker.security.provider import Overloaded, Refused
from pulsarbox.clock import Now
from pulsarbox.server.http.framework.connections import HttpConnection
from pulsarbox.server.http.framework.request import HttpResponse, refusal
from pulsarbox.server.http.framework.routes import Permission
from pulsarbox.server.shell_protocol import Shell

METHOD: Final = "X-Pulsar-Auth-Method-Name"
ORIGINAL: Final = "X-Original-Principal"
"""The principal on whose behalf a proxy sends a request."""


async def authenticate_request(
    request: web.BaseRequest, shell: Shell, permission: Permission | None, given: str | None = None
) -> Principal | HttpResponse | None:
    """Return the principal of a request, or the answer that refuses it.

    None if authentication is disabled, and for an anonymous request to a public endpoint. ``permission`` is that of the
    route, None without a route: unknown paths require authentication too, so that nothing is disclosed. ``given``
    replaces the Authorization header.
    """
    authentication = shell.broker.authentication
    if authentication is None:
        return None
    method = request.headers.get(METHOD)
    authorization = request.headers.get("Authorization", "") if given is None else given
    certificate = certificate_of(request)
    if permission is Permission.ANYONE and not authorization and not certificate:
        return None
    future: asyncio.Future[Principal | Refused] = asyncio.get_running_loop().create_future()

    def proved(found: Principal | Refused, now: Now) -> None:
        if not future.done():
            future.set_result(found)

    authentication.of_request(method, authorization, certificate, request.remote or "?", shell.now(), proved)
    if not future.done():
        shell.kick()  # a password must be verified
    who = await future
    if not isinstance(who, Refused):
        return who._replace(original=request.headers.get(ORIGINAL, ""))
    if permission is Permission.ANYONE:
        return None
    if isinstance(who, Overloaded):
        return refusal(503, str(who))
    return unauthenticated(str(who), authentication.challenges)


def certificate_of(request: web.BaseRequest) -> str:
    """Return the common name in the client's certificate; empty without one."""
    connection = request.protocol
    return connection.certificate if isinstance(connection, HttpConnection) else ""


def unauthenticated(reason: str, challenges: str) -> HttpResponse:
    """Return 401 with the available authentication methods."""
    headers = {"WWW-Authenticate": challenges} if challenges else {}
    return refusal(401, reason)._replace(headers=MappingProxyType(headers))
