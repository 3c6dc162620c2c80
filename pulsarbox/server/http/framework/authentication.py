"""Authentication of requests by headers and client certificates, and the answer if it fails."""

from types import MappingProxyType
from typing import Final

from aiohttp import web

from pulsarbox.broker.security.principal import Principal
from pulsarbox.broker.security.provider import Refused
from pulsarbox.server.http.framework.connections import HttpConnection
from pulsarbox.server.http.framework.request import Answer, refusal
from pulsarbox.server.http.framework.routes import Permission
from pulsarbox.server.shell_protocol import Shell

METHOD: Final = "X-Pulsar-Auth-Method-Name"
ORIGINAL: Final = "X-Original-Principal"
"""The principal on whose behalf a proxy sends a request."""


def who_asks(request: web.BaseRequest, shell: Shell, permission: Permission | None) -> Principal | Answer | None:
    """Return the principal of a request, or the answer that refuses it.

    None if authentication is disabled, and for an anonymous request to a public endpoint. ``permission`` is that of the
    route, None without a route: unknown paths require authentication too, so that nothing is disclosed.
    """
    authentication = shell.broker.authentication
    if authentication is None:
        return None
    method, authorization = request.headers.get(METHOD), request.headers.get("Authorization", "")
    certificate = certificate_of(request)
    if permission is Permission.ANYONE and not authorization and not certificate:
        return None
    try:
        who = authentication.of_request(method, authorization, certificate, request.remote or "?", shell.now())
        return who._replace(original=request.headers.get(ORIGINAL, ""))
    except Refused as error:
        if permission is Permission.ANYONE:
            return None
        return unauthenticated(str(error), authentication.challenges)


def certificate_of(request: web.BaseRequest) -> str:
    """Return the common name in the client's certificate; empty without one."""
    connection = request.protocol
    return connection.certificate if isinstance(connection, HttpConnection) else ""


def unauthenticated(reason: str, challenges: str) -> Answer:
    """Return 401 with the available authentication methods."""
    headers = {"WWW-Authenticate": challenges} if challenges else {}
    return refusal(401, reason)._replace(headers=MappingProxyType(headers))
