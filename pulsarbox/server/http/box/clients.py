"""Disconnection of a client. Below ``/pulsarbox/v1``; the list of clients is a live view (``top``)."""

from pulsarbox.broker.clients import find, kick
from pulsarbox.server.http.framework.request import DONE, Answer, Call
from pulsarbox.server.http.framework.routes import Permission, Route


def kicked(call: Call) -> Answer:
    """Close a connection, a producer or a consumer; its client reconnects automatically, as after an unload.

    Raises NotFound, BadRequest.
    """
    by = call.principal.role if call.principal is not None else "who uses the Admin API"
    kick(find(call.broker, call.path["id"]), by, call.now)
    return DONE


ROUTES = (Route("POST", "/pulsarbox/v1/clients/{id}/kick", Permission.SUPERUSER, kicked),)
