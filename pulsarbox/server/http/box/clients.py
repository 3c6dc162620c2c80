"""Disconnection of a client. Below ``/pulsarbox/v1``; the list of clients is a live view (``top``)."""

from pulsarbox.broker.connection.clients import find, kick
from pulsarbox.server.http.framework.request import DONE, HttpRequest, HttpResponse
from pulsarbox.server.http.framework.routes import HttpRoute, Permission


def kicked(call: HttpRequest) -> HttpResponse:
    """Close a connection, a producer or a consumer; its client reconnects automatically, as after an unload.

    Raises NotFound, BadRequest.
    """
    by = call.principal.role if call.principal is not None else "a user of the Admin API"
    kick(find(call.broker, call.path["id"]), by, call.now)
    return DONE


ROUTES = (HttpRoute("POST", "/pulsarbox/v1/clients/{id}/kick", Permission.SUPERUSER, kicked),)
