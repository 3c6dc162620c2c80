"""Authentication of connections: the credentials of CONNECT and AUTH_RESPONSE, and those that a proxy forwards."""

from collections.abc import Callable
from functools import partial

from pulsarbox.broker.connection.cnx import ConnectionState, ServerCnx
from pulsarbox.broker.security.authentication import ANONYMOUS, Authentication
from pulsarbox.broker.security.authorization import WEBSOCKET
from pulsarbox.broker.security.credential_expiry import CredentialExpiry
from pulsarbox.broker.security.principal import Principal
from pulsarbox.broker.security.provider import Overloaded, Refused
from pulsarbox.clock import Now
from pulsarbox.errors import AuthenticationError, AuthorizationError, ServiceNotReady
from pulsarbox.protocol import replies
from pulsarbox.protocol.features import PROTOCOL_VERSION
from pulsarbox.protocol.PulsarApi_pb2 import AuthMethod, CommandAuthResponse, CommandConnect

FAILED = "Failed to authenticate"
"""Error text for clients; only the log has the reason."""


def authenticate(
    cnx: ServerCnx, authentication: Authentication, command: CommandConnect, accepted: Callable[[Now], None], now: Now
) -> None:
    """Authenticate a client, and behind a proxy the proxy's client, and call ``accepted``.

    A failure is answered and closes the connection. No other command is accepted meanwhile.
    """
    cnx.state = ConnectionState.AUTHENTICATING
    original = command.original_principal
    is_handed_on = cnx.broker.settings.authenticateOriginalAuthData and original not in ("", WEBSOCKET)

    def own_proved(own: Principal | Refused, when: Now) -> None:
        if cnx.state is not ConnectionState.AUTHENTICATING:
            return  # the connection was lost
        if isinstance(own, Refused):
            _fail(cnx, own)
        elif is_handed_on:
            # Certificates are not forwarded: the connection's certificate is the proxy's own.
            method, data = command.original_auth_method, command.original_auth_data.encode()
            authentication.of_connection(method, data, "", cnx.address, when, partial(all_proved, own))
        else:
            all_proved(own, own, when)

    def all_proved(own: Principal, proved: Principal | Refused, when: Now) -> None:
        if cnx.state is not ConnectionState.AUTHENTICATING:
            return
        if isinstance(proved, Refused):
            _fail(cnx, proved)
            return
        cnx.principal = own._replace(original=proved.role if is_handed_on else original, expires=proved.expires)
        if not _may_speak(cnx, cnx.principal, command):
            return
        if proved.method != ANONYMOUS:
            can_refresh = command.feature_flags.supports_auth_refresh
            cnx.proof = CredentialExpiry(
                cnx, proved, cnx.broker, when, is_handed_on=is_handed_on, can_refresh=can_refresh
            )
        accepted(when)

    authentication.of_connection(_method(command), command.auth_data, cnx.certificate, cnx.address, now, own_proved)


def accept_authenticated(cnx: ServerCnx, principal: Principal | None, client_version: str, now: Now) -> None:
    """Open a connection inside the process without CONNECT, for a client that is already authenticated.

    ``principal`` is None if authentication is disabled. The connection is closed when the credentials expire.
    """
    cnx.client_version = client_version
    cnx.protocol_version = PROTOCOL_VERSION
    cnx.principal = principal
    if principal is not None and principal.method != ANONYMOUS:
        cnx.proof = CredentialExpiry(cnx, principal, cnx.broker, now, is_handed_on=False, can_refresh=False)
    cnx.connect_accepted(now)


def _may_speak(cnx: ServerCnx, principal: Principal, command: CommandConnect) -> bool:
    """Return whether a client may act for its original principal. If not, send the error and close the connection."""
    authorization = cnx.broker.authorization
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
    """Return the name of the authentication method; old clients send a number."""
    if command.HasField("auth_method_name"):
        return command.auth_method_name
    if command.HasField("auth_method"):
        return AuthMethod.Name(command.auth_method).removeprefix("AuthMethod").lower()
    return ""


def auth_response(cnx: ServerCnx, command: CommandAuthResponse, now: Now) -> None:
    """Accept the credentials requested with AUTH_CHALLENGE; the role must not change."""
    authentication, proof = cnx.broker.authentication, cnx.proof
    if authentication is None or proof is None or not proof.is_asked:
        cnx.abort("AUTH_RESPONSE without a challenge")
        return
    if not command.response.HasField("auth_data"):
        cnx.abort("AUTH_RESPONSE without credentials")
        return

    def proved(found: Principal | Refused, when: Now) -> None:
        if cnx.state is not ConnectionState.CONNECTED:
            return  # the connection was lost
        if isinstance(found, Refused):
            _fail(cnx, found)
            return
        if found.role != proof.principal.role:
            cnx.abort(f"the principal cannot change from {proof.principal.role} to {found.role}")
            return
        assert cnx.principal is not None
        cnx.principal = cnx.principal._replace(expires=found.expires)
        proof.renewed(found, when)

    certificate = "" if proof.is_handed_on else cnx.certificate
    data = command.response.auth_data
    authentication.of_connection(proof.principal.method, data, certificate, cnx.address, now, proved)


def _fail(cnx: ServerCnx, error: Refused) -> None:
    """Send the error and close the connection. Clients retry after ServiceNotReady."""
    if isinstance(error, Overloaded):
        code, text = ServiceNotReady.server_error, str(error)
    else:
        code, text = AuthenticationError.server_error, FAILED
    cnx.outbox.send(replies.error(replies.NO_REQUEST, code, text))
    cnx.turn_away(text)
