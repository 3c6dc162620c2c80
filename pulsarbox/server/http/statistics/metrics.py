"""`/metrics` for Prometheus, and `/status.html` for load balancers."""

from pathlib import Path

from pulsarbox.errors import AuthenticationError, NotFound
from pulsarbox.server.http.framework.request import Answer, Call, Pieces
from pulsarbox.server.http.framework.routes import Permission, Route
from pulsarbox.server.metrics.exposition import CONTENT_TYPE
from pulsarbox.server.metrics.scrape import scrape


def metrics(call: Call) -> Pieces:
    """Return all metrics. Unlike Pulsar, which redirects `/metrics` to `/metrics/`, both paths answer."""
    if call.broker.core.settings.authenticateMetricsEndpoint and call.principal is None:
        off = (
            ""
            if call.broker.authentication
            else ": authenticateMetricsEndpoint is on, and authenticationEnabled is not"
        )
        raise AuthenticationError(f"Authentication required{off}")
    return Pieces(CONTENT_TYPE, scrape(call.broker, call.now))


def status(call: Call) -> Answer:
    """Return whether load balancers should send clients here: while the status file exists."""
    path = call.broker.core.settings.statusFilePath
    if not path:
        raise NotFound("statusFilePath is not set: /brokers/ready of the Admin API says whether the box is ready")
    if not Path(path).is_file():
        raise NotFound(f"The status file {path} is not there")
    return Answer(200, b"OK", "text/plain")


ROUTES = (
    Route("GET", "/metrics", Permission.ANYONE, metrics),
    Route("GET", "/status.html", Permission.ANYONE, status),
)
