"""Pipelines on Spark, as reported by their runners. Below ``/pulsarbox/v1``; not part of Pulsar's API.

``PUT /pulsarbox/v1/pipelines/{name}`` with ``{"queries": [{"query", "state", "inputs", "output", ...}], "master",
"host", "pid", "startedAt"}`` every two seconds; a pipeline without a report for ten seconds is removed. Reports belong
to their role: pipelines of the same name of two roles do not conflict.
"""

from pulsarbox.broker.stats.pipeline_status import QueryStatus
from pulsarbox.errors import PulsarBoxError
from pulsarbox.server.http.framework.request import DONE, HttpRequest, HttpResponse, answer
from pulsarbox.server.http.framework.routes import HttpRoute, Permission


def _role(call: HttpRequest) -> str:
    return call.principal.role if call.principal is not None else ""


def tell(call: HttpRequest) -> HttpResponse:
    """Accept the report of a runner."""
    call.broker.pipelines.report(_role(call), call.path["name"], call.json_object() or {}, call.now)
    return DONE


def forget(call: HttpRequest) -> HttpResponse:
    """Remove a pipeline of the client's role."""
    call.broker.pipelines.forget(_role(call), call.path["name"])
    return DONE


def listing(call: HttpRequest) -> HttpResponse:
    """Return one row per query: all for superusers and viewers, otherwise those reported by the client's role."""
    sees_all = _sees_all(call)
    found = call.broker.pipelines.all(call.now)
    return answer([each.as_json(call.now) for each in found if sees_all or _is_own(each, call)])


def _sees_all(call: HttpRequest) -> bool:
    authorization = call.broker.authorization
    if not authorization.enabled:
        return True
    try:
        authorization.require_watcher(call.principal)
    except PulsarBoxError:
        return False
    return True


def _is_own(query: QueryStatus, call: HttpRequest) -> bool:
    return bool(query.row["by"] == _role(call))


_PIPELINE = "/pulsarbox/v1/pipelines/{name}"

ROUTES = (
    HttpRoute("GET", "/pulsarbox/v1/pipelines", Permission.NAMED, listing),
    HttpRoute("PUT", _PIPELINE, Permission.NAMED, tell),
    HttpRoute("DELETE", _PIPELINE, Permission.NAMED, forget),
)
