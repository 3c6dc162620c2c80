"""Pipelines on Spark, as their runners tell of them. Below ``/pulsarbox/v1``; none of it is Pulsar's.

``PUT /pulsarbox/v1/pipelines/{name}`` with ``{"queries": [{"query", "state", "inputs", "output", ...}], "master",
"host", "pid", "startedAt"}`` every two seconds; one that says nothing for ten is gone. A role tells of its own: two
roles with pipelines of one name do not disturb each other.
"""

from pulsarbox.broker.stats.pipeline_status import Query
from pulsarbox.errors import PulsarBoxError
from pulsarbox.server.http.framework.request import DONE, Answer, Call, answer
from pulsarbox.server.http.framework.routes import Permission, Route


def _role(call: Call) -> str:
    return call.principal.role if call.principal is not None else ""


def tell(call: Call) -> Answer:
    """A runner tells how it goes."""
    call.broker.pipelines.tell(_role(call), call.path["name"], call.json_object() or {}, call.now)
    return DONE


def forget(call: Call) -> Answer:
    """A pipeline of one's own is told of no more."""
    call.broker.pipelines.forget(_role(call), call.path["name"])
    return DONE


def listing(call: Call) -> Answer:
    """A row a query: all for superusers and viewers, else those that one's own role tells of."""
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
