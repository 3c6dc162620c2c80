"""Who sends a request: what its headers and its certificate prove, and the answer where they prove nothing."""

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
"""For whom a proxy asks."""


def who_asks(request: web.BaseRequest, shell: Shell, permission: Permission | None) -> Principal | Answer | None:
    """Who sends it; the answer where nobody is to be let in without a name.

    None where authentication is off, and where an endpoint is for anyone and the request names nobody. ``permission``:
    what the route asks for, None where there is no route: what there is, nobody is told without a name either.
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
    """The common name in the certificate that the client has shown; empty where there was none."""
    connection = request.protocol
    return connection.certificate if isinstance(connection, HttpConnection) else ""


def unauthenticated(reason: str, challenges: str) -> Answer:
    """401, with what the client may prove itself with."""
    headers = {"WWW-Authenticate": challenges} if challenges else {}
    return refusal(401, reason)._replace(headers=MappingProxyType(headers))
