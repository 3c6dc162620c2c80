"""Failure domains: the brokers of a cluster that may fail together."""

from typing import Final

from pulsarbox.errors import Conflict, NotFound, PreconditionFailed
from pulsarbox.protocol.policies.shapes import ObjectShape, Several, Text
from pulsarbox.server.http.cluster.body_values import object_in
from pulsarbox.server.http.framework.request import HttpRequest, HttpResponse, answer, plain
from pulsarbox.server.http.framework.routes import HttpRoute, Permission
from pulsarbox.server.http.framework.stored_only import stored_only
from pulsarbox.storage.catalog import Row

_DOMAIN: Final = ObjectShape({"brokers": (Several(Text()), None)})


def domains(call: HttpRequest) -> HttpResponse:
    """Return the failure domains of a cluster; none for an unknown cluster."""
    return answer(_domains(call))


def get(call: HttpRequest) -> HttpResponse:
    """Return one failure domain."""
    cluster, name = require_cluster(call), call.path["domainName"]
    found = _domains(call)
    if name not in found:
        raise NotFound(f"Domain {name} for cluster {cluster} does not exist")
    return answer(found[name])


def put(call: HttpRequest) -> HttpResponse:
    """Create or replace a failure domain. A broker can be in one domain only."""
    cluster, name = require_cluster(call), call.path["domainName"]
    domain = object_in(call, _DOMAIN, "the failure domain")
    others = {key: each for key, each in _domains(call).items() if key != name}
    brokers = frozenset(domain.get("brokers", ()))
    for other, each in others.items():
        shared = [broker for broker in each.get("brokers", ()) if broker in brokers]
        if shared:
            raise Conflict(f"[{', '.join(shared)}] already exists in {other}")
    call.broker.clusters.failure_domains.put(cluster, dict(sorted((others | {name: domain}).items())))
    return stored_only("failure domains", "a single broker serves all topics")


def delete(call: HttpRequest) -> HttpResponse:
    """Delete a failure domain."""
    cluster, name = require_cluster(call), call.path["domainName"]
    found = _domains(call)
    if found.pop(name, None) is None:
        raise NotFound(f"Domain-name {name} or cluster {cluster} does not exist")
    call.broker.clusters.failure_domains.put(cluster, found)
    return plain("")


def _domains(call: HttpRequest) -> Row:
    return call.broker.clusters.failure_domains.get(call.path["cluster"]) or {}


def require_cluster(call: HttpRequest) -> str:
    """Return the cluster of the path. Raises PreconditionFailed if it does not exist."""
    cluster = call.path["cluster"]
    if cluster not in call.broker.clusters:
        raise PreconditionFailed(f"Cluster {cluster} does not exist.")
    return cluster


_DOMAINS: Final = "/admin/v2/clusters/{cluster}/failureDomains"

ROUTES = (
    HttpRoute("GET", _DOMAINS, Permission.SUPERUSER, domains),
    HttpRoute("GET", f"{_DOMAINS}/{{domainName}}", Permission.SUPERUSER, get),
    HttpRoute("POST", f"{_DOMAINS}/{{domainName}}", Permission.SUPERUSER, put),
    HttpRoute("DELETE", f"{_DOMAINS}/{{domainName}}", Permission.SUPERUSER, delete),
)
