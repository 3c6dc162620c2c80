"""Who has connected: what CONNECT shows, what a proxy hands on, and AUTH_RESPONSE, which renews it."""

from pulsarbox.broker.cnx import ServerCnx
from pulsarbox.broker.security.authentication import ANONYMOUS, Authentication
from pulsarbox.broker.security.authorization import WEBSOCKET
from pulsarbox.broker.security.credential_expiry import Proof
from pulsarbox.broker.security.principal import Principal
from pulsarbox.broker.security.provider import Refused
from pulsarbox.clock import Now
from pulsarbox.errors import AuthenticationError, AuthorizationError
from pulsarbox.protocol import replies
from pulsarbox.protocol.PulsarApi_pb2 import AuthMethod, CommandAuthResponse, CommandConnect

FAILED = "Failed to authenticate"
"""All that a client is told; the log says why."""


def authenticate(cnx: ServerCnx, authentication: Authentication, command: CommandConnect, now: Now) -> bool:
    """Find out who has connected, and behind a proxy for whom. Where that fails, the connection is told and closed."""
    method, original = _method(command), command.original_principal
    try:
        own = authentication.of_connection(method, command.auth_data, cnx.certificate, cnx.address, now)
        proved = own
        is_handed_on = cnx.broker.core.settings.authenticateOriginalAuthData and original not in ("", WEBSOCKET)
        if is_handed_on:
            # Certificates are not handed on: the one that the connection has shown is the proxy's own.
            proved = authentication.of_connection(
                command.original_auth_method, command.original_auth_data.encode(), "", cnx.address, now
            )
            original = proved.role
    except Refused:
        _fail(cnx)
        return False
    cnx.principal = own._replace(original=original, expires=proved.expires)
    if not _may_speak(cnx, cnx.principal, command):
        return False
    if proved.method != ANONYMOUS:
        can_refresh = command.feature_flags.supports_auth_refresh
        cnx.proof = Proof(cnx, proved, now, is_handed_on=is_handed_on, can_refresh=can_refresh)
    return True


def _may_speak(cnx: ServerCnx, principal: Principal, command: CommandConnect) -> bool:
    """Whether one speaks for another as it is meant. Where not, the connection is told and closed."""
    authorization = cnx.broker.core.authorization
    if not authorization.enabled:
        return True
    try:
        authorization.check_proxy(principal)
        if command.HasField("proxy_version") and not authorization.is_proxy(principal.role):
            raise AuthorizationError(f"Must not set proxyVersion: {principal.role!r} is not a proxy role (proxyRoles)")
    except AuthorizationError as error:
        cnx.outbox.send(replies.error(replies.NO_REQUEST, AuthorizationError.server_error, f"Invalid roles. {error}"))
        cnx.abort(str(error))
        return False
    return True


def _method(command: CommandConnect) -> str:
    """The method's name; clients from before there were names send a number."""
    if command.HasField("auth_method_name"):
        return command.auth_method_name
    if command.HasField("auth_method"):
        return AuthMethod.Name(command.auth_method).removeprefix("AuthMethod").lower()
    return ""


def auth_response(cnx: ServerCnx, command: CommandAuthResponse, now: Now) -> None:
    """Fresh credentials, which were asked for. They have to be of the same role."""
    authentication, proof = cnx.broker.authentication, cnx.proof
    if authentication is None or proof is None or not proof.is_asked:
        cnx.abort("AUTH_RESPONSE without a challenge")
        return
    if not command.response.HasField("auth_data"):
        cnx.abort("AUTH_RESPONSE without credentials")
        return
    certificate = "" if proof.is_handed_on else cnx.certificate
    try:
        found = authentication.of_connection(
            proof.principal.method, command.response.auth_data, certificate, cnx.address, now
        )
    except Refused:
        _fail(cnx)
        return
    if found.role != proof.principal.role:
        cnx.abort(f"the principal cannot change from {proof.principal.role} to {found.role}")
        return
    assert cnx.principal is not None
    cnx.principal = cnx.principal._replace(expires=found.expires)
    proof.renewed(found, now)


def _fail(cnx: ServerCnx) -> None:
    cnx.outbox.send(replies.error(replies.NO_REQUEST, AuthenticationError.server_error, FAILED))
    cnx.turn_away(FAILED)
