"""Reads of Pulsar Functions, Pulsar IO and their workers: a box runs none, so lists are empty and names unknown.

The codes and messages are those of Pulsar 4.2.4 with its functions worker enabled and no function registered. Requests
that would run code are refused, see ``unsupported_endpoints``. Pulsar's Java client uses the former paths ``sink`` and
``source``.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from pulsarbox.errors import NotFound, PreconditionFailed
from pulsarbox.server.http.admin_endpoints import endpoints
from pulsarbox.server.http.endpoint_permissions import permission
from pulsarbox.server.http.framework.request import DONE, HttpRequest, HttpResponse, answer
from pulsarbox.server.http.framework.routes import Handler, HttpRoute, Permission

_KINDS: Final = {"functionName": "Function", "sourceName": "Source", "sinkName": "Sink"}
"""Kinds of components in messages, by the path variable with the name."""
_GROUPS: Final = ("functions", "source", "sources", "sink", "sinks", "worker", "worker-stats")
_ANY_ROLE: Final = ("connectors", "builtins", "builtinsources", "builtinsinks", "configdefinition", "ready")
"""Last path segments of endpoints that Pulsar answers to every authenticated role."""


def _constant(make: Callable[[], Any]) -> Handler:
    return lambda call: answer(make())


def unknown(call: HttpRequest) -> HttpResponse:
    """Reject a request about a function, source or sink, none of which exists."""
    kind, name = next((kind, call.path[word]) for word, kind in _KINDS.items() if word in call.path)
    raise NotFound(f"{kind} {name} doesn't exist")


def download(call: HttpRequest) -> HttpResponse:
    """Reject the download of uploaded code, none of which exists. Packages have a download of their own."""
    path = call.query.get("path")
    if not path:
        raise PreconditionFailed("The query must name the file: path=...")
    raise NotFound(f"No code of a function is stored at {path[:200]}")


def config_definition(call: HttpRequest) -> HttpResponse:
    """Reject a request about a built-in connector, none of which exists."""
    raise NotFound(f"Built-in connector {call.path['name']} doesn't exist")


def leader(call: HttpRequest) -> HttpResponse:
    """Return the leader of the workers: null, because there is none. Tools print it; an error would make them fail."""
    return answer(None)


def leader_ready(call: HttpRequest) -> HttpResponse:
    """Return whether the leader of the workers is ready, as text."""
    return HttpResponse(200, b"false", "text/plain")


def drain_status(call: HttpRequest) -> HttpResponse:
    """Return the state of draining a worker: never begun, or an error for a worker that is named."""
    worker = call.query.get("workerId")
    if worker:
        return answer({"status": "ERROR", "lastError": f"Worker {worker} not found in drain records"})
    return answer({"status": "NOT_RUN", "lastError": ""})


def reload(call: HttpRequest) -> HttpResponse:
    """Reload the built-in functions and connectors: there are none before and after."""
    return DONE


_EMPTY: Final = _constant(list)

HANDLERS: Final[Mapping[str, Handler]] = {
    "deregisterFunction": unknown,
    "deregisterSink": unknown,
    "deregisterSource": unknown,
    "downloadFunction": download,
    "getAssignments": _constant(dict),
    "getBuiltinFunction": _EMPTY,
    "getCluster": _EMPTY,
    "getClusterLeader": leader,
    "getConnectorsList": _EMPTY,
    "getDrainStatus": drain_status,
    "getDrainStatusFromLeader": drain_status,
    "getFunctionInfo": unknown,
    "getFunctionInstanceStats": unknown,
    "getFunctionInstanceStatus": unknown,
    "getFunctionState": unknown,
    "getFunctionStats": unknown,
    "getFunctionStatus": unknown,
    "getMetrics": _EMPTY,
    "getSinkConfigDefinition": config_definition,
    "getSinkInfo": unknown,
    "getSinkInstanceStatus": unknown,
    "getSinkList": _EMPTY,
    "getSinkStatus": unknown,
    "getSourceConfigDefinition": config_definition,
    "getSourceInfo": unknown,
    "getSourceInstanceStatus": unknown,
    "getSourceList": _EMPTY,
    "getSourceStatus": unknown,
    "getStats": _EMPTY,
    "isLeaderReady": leader_ready,
    "listFunctions": _EMPTY,
    "listSinks": _EMPTY,
    "listSources": _EMPTY,
    "reloadBuiltinFunctions": reload,
    "reloadSinks": reload,
    "reloadSources": reload,
}
"""By Pulsar's name of the operation."""


def _routes() -> list[HttpRoute]:
    """Return the served endpoints of the groups. Raises KeyError for one without a handler."""
    found = []
    for each in endpoints():
        parts = each.path.split("/")
        if each.served and parts[3] in _GROUPS:
            named = "functionName" in each.path and each.operation == "downloadFunction"
            handler = unknown if named else HANDLERS[each.operation]
            needs = Permission.NAMED if parts[-1] in _ANY_ROLE else permission(each)
            found.append(HttpRoute(each.method, each.path, needs, handler))
    return found


ROUTES = tuple(_routes())
