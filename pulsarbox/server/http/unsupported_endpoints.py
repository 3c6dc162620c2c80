"""The endpoints of Pulsar that return 501: those that a standalone box cannot serve."""

from pulsarbox.errors import NotSupported
from pulsarbox.server.http.admin_endpoints import Endpoint, endpoints
from pulsarbox.server.http.endpoint_permissions import permission
from pulsarbox.server.http.framework.request import HttpRequest, HttpResponse
from pulsarbox.server.http.framework.routes import Handler, HttpRoute


def refuse(endpoint: Endpoint) -> Handler:
    """Return a handler that explains why the endpoint is not served."""

    def handler(call: HttpRequest) -> HttpResponse:
        raise NotSupported(endpoint.refusal)

    return handler


ROUTES = tuple(
    HttpRoute(endpoint.method, endpoint.path, permission(endpoint), refuse(endpoint))
    for endpoint in endpoints()
    if not endpoint.served
)
