"""Who has connected: what CONNECT shows, what a proxy hands on, and AUTH_RESPONSE, which renews it."""

from pulsarbox.broker.cnx import ServerCnx
from pulsarbox.broker.security.authentication import Authentication
from pulsarbox.broker.security.principal import Principal
from pulsarbox.broker.security.proof import Proof
from pulsarbox.broker.security.provider import Refused
from pulsarbox.clock import Now
from pulsarbox.errors import AuthenticationError
from pulsarbox.protocol import replies
from pulsarbox.protocol.PulsarApi_pb2 import AuthMethod, CommandAuthResponse, CommandConnect

FAILED = "Failed to authenticate"
"""All that a client is told; the log says why."""
WEBSOCKET = "__websocket_dummy_original_principle"
"""On whose behalf Pulsar's WebSocket proxy asks: nobody's but its own."""


def authenticate(cnx: ServerCnx, authentication: Authentication, command: CommandConnect, now: Now) -> bool:
    """Find out who has connected, and behind a proxy for whom. Where that fails, the connection is told and closed."""
    method = _method(command)
    try:
        cnx.principal = authentication.of_connection(method, command.auth_data, cnx.certificate, cnx.address, now)
        watched = _behind(cnx, authentication, command, now)
    except Refused:
        _fail(cnx)
        return False
    if authentication.knows(method):
        cnx.proof = Proof(cnx, watched, method, command.feature_flags.supports_auth_refresh, now)
    return True


def _method(command: CommandConnect) -> str:
    """The method's name; clients from before there were names send a number."""
    if command.HasField("auth_method_name"):
        return command.auth_method_name
    if command.HasField("auth_method"):
        return AuthMethod.Name(command.auth_method).removeprefix("AuthMethod").lower()
    return ""


def _behind(cnx: ServerCnx, authentication: Authentication, command: CommandConnect, now: Now) -> Principal:
    """Note on whose behalf a proxy asks. The principal whose proof has to be renewed. Raises Refused."""
    assert cnx.principal is not None
    if not command.original_principal or command.original_principal == WEBSOCKET:
        return cnx.principal
    if not cnx.broker.core.settings.authenticateOriginalAuthData:
        cnx.original = Principal(command.original_principal, cnx.principal.method)
        return cnx.principal
    # The proxy does not hand on certificates: what the connection has shown is its own.
    cnx.original = authentication.of_connection(
        command.original_auth_method, command.original_auth_data.encode(), "", cnx.address, now
    )
    return cnx.original


def auth_response(cnx: ServerCnx, command: CommandAuthResponse, now: Now) -> None:
    """Fresh credentials, which were asked for. They have to be of the same role."""
    authentication, proof = cnx.broker.authentication, cnx.proof
    if authentication is None or proof is None or not proof.is_asked:
        cnx.abort("AUTH_RESPONSE without a challenge")
        return
    if not command.response.HasField("auth_data"):
        cnx.abort("AUTH_RESPONSE without credentials")
        return
    is_original = proof.principal is cnx.original
    certificate = "" if is_original else cnx.certificate
    try:
        found = authentication.of_connection(
            proof.principal.method, command.response.auth_data, certificate, cnx.address, now
        )
    except Refused:
        _fail(cnx)
        return
    if found.role != proof.principal.role:
        cnx.abort(f"the principal cannot change: it was {proof.principal.role}, and would be {found.role}")
        return
    if is_original:
        cnx.original = found
    else:
        cnx.principal = found
    proof.renewed(found, now)


def _fail(cnx: ServerCnx) -> None:
    cnx.outbox.send(replies.error(replies.NO_REQUEST, AuthenticationError.server_error, FAILED))
    cnx.turn_away(FAILED)
