"""`/metrics` for Prometheus, and `/status.html` for load balancers."""

from pathlib import Path

from pulsarbox.errors import AuthenticationError, NotFound
from pulsarbox.server.http.framework.request import HttpRequest, HttpResponse, Pieces
from pulsarbox.server.http.framework.routes import HttpRoute, Permission
from pulsarbox.server.metrics.exposition import CONTENT_TYPE
from pulsarbox.server.metrics.scrape import scrape


def metrics(call: HttpRequest) -> Pieces:
    """Return all metrics. Unlike Pulsar, which redirects `/metrics` to `/metrics/`, both paths answer."""
    if call.settings.authenticateMetricsEndpoint and call.principal is None:
        off = (
            ""
            if call.broker.authentication
            else ": authenticateMetricsEndpoint is on, but authenticationEnabled is off"
        )
        raise AuthenticationError(f"Authentication required{off}")
    return Pieces(CONTENT_TYPE, scrape(call.broker, call.now))


def status(call: HttpRequest) -> HttpResponse:
    """Return whether load balancers should send clients here: while the status file exists."""
    path = call.settings.statusFilePath
    if not path:
        raise NotFound("statusFilePath is not set: /brokers/ready of the Admin API says whether the box is ready")
    if not Path(path).is_file():
        raise NotFound(f"The status file {path} does not exist")
    return HttpResponse(200, b"OK", "text/plain")


ROUTES = (
    HttpRoute("GET", "/metrics", Permission.ANYONE, metrics),
    HttpRoute("GET", "/status.html", Permission.ANYONE, status),
)
