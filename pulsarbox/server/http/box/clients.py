"""Letting a client go. Below ``/pulsarbox/v1``; who is there is a live view (``top``)."""

from pulsarbox.broker.clients import find, kick
from pulsarbox.server.http.framework.request import DONE, Answer, Call
from pulsarbox.server.http.framework.routes import Permission, Route


def kicked(call: Call) -> Answer:
    """Close a connection, a producer or a consumer; its client comes back by itself, as after any unloading.

    Raises NotFound, BadRequest.
    """
    by = call.principal.role if call.principal is not None else "who uses the Admin API"
    kick(find(call.broker, call.path["id"]), by, call.now)
    return DONE


ROUTES = (Route("POST", "/pulsarbox/v1/clients/{id}/kick", Permission.SUPERUSER, kicked),)
