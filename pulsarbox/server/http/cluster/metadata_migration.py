"""Migration to another metadata store. A box keeps metadata in its data directory, which cannot be migrated."""

from pulsarbox.errors import BadRequest
from pulsarbox.server.http.framework.request import HttpRequest, HttpResponse, answer
from pulsarbox.server.http.framework.routes import HttpRoute, Permission


def status(call: HttpRequest) -> HttpResponse:
    """Return that no migration was started."""
    return answer({"phase": "NOT_STARTED"})


def start(call: HttpRequest) -> HttpResponse:
    """Refuse a migration, as Pulsar does for a metadata store that does not support it."""
    if not call.query.get("target", "").strip():
        raise BadRequest("Target URL is required")
    raise BadRequest("Metadata store is not configured for migration: a box keeps metadata in its data directory")


ROUTES = (
    HttpRoute("GET", "/admin/v2/metadata/migration/status", Permission.SUPERUSER, status),
    HttpRoute("POST", "/admin/v2/metadata/migration/start", Permission.SUPERUSER, start),
)
