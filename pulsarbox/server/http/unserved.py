"""The endpoints of Pulsar that answer 501: those of later versions, and those that one box can never serve."""

from pulsarbox.errors import NotSupported
from pulsarbox.protocol.admin_endpoints import Endpoint, endpoints
from pulsarbox.server.http.call import Answer, Call
from pulsarbox.server.http.routes import Handler, Permission, Route


def refuse(endpoint: Endpoint) -> Handler:
    """A handler that says why the endpoint is not served."""

    def handler(call: Call) -> Answer:
        raise NotSupported(endpoint.refusal)

    return handler


ROUTES = tuple(
    Route(endpoint.method, endpoint.path, Permission.ANYONE, refuse(endpoint))
    for endpoint in endpoints()
    if not endpoint.served
)
