"""Pipelines on Spark, as reported by their runners. Below ``/pulsarbox/v1``; not part of Pulsar's API.

``PUT /pulsarbox/v1/pipelines/{name}`` with ``{"queries": [{"query", "state", "inputs", "output", ...}], "master",
"host", "pid", "startedAt"}`` every two seconds; a pipeline without a report for ten seconds is removed. Reports belong
to their role: pipelines of the same name of two roles do not conflict.
"""

from pulsarbox.broker.stats.pipeline_status import Query
from pulsarbox.errors import PulsarBoxError
from pulsarbox.server.http.framework.request import DONE, Answer, Call, answer
from pulsarbox.server.http.framework.routes import Permission, Route


def _role(call: Call) -> str:
    return call.principal.role if call.principal is not None else ""


def tell(call: Call) -> Answer:
    """Accept the report of a runner."""
    call.broker.pipelines.tell(_role(call), call.path["name"], call.json_object() or {}, call.now)
    return DONE


def forget(call: Call) -> Answer:
    """Remove a pipeline of the client's role."""
    call.broker.pipelines.forget(_role(call), call.path["name"])
    return DONE


def listing(call: Call) -> Answer:
    """Return one row per query: all for superusers and viewers, otherwise those reported by the client's role."""
    sees_all = _sees_all(call)
    found = call.broker.pipelines.all(call.now)
    return answer([each.as_json(call.now) for each in found if sees_all or _is_own(each, call)])


def _sees_all(call: Call) -> bool:
    authorization = call.broker.core.authorization
    if not authorization.enabled:
        return True
    try:
        authorization.require_watcher(call.principal)
    except PulsarBoxError:
        return False
    return True


def _is_own(query: Query, call: Call) -> bool:
    return bool(query.row["by"] == _role(call))


_PIPELINE = "/pulsarbox/v1/pipelines/{name}"

ROUTES = (
    Route("GET", "/pulsarbox/v1/pipelines", Permission.NAMED, listing),
    Route("PUT", _PIPELINE, Permission.NAMED, tell),
    Route("DELETE", _PIPELINE, Permission.NAMED, forget),
)
