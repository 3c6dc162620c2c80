"""Namespaces of an anti-affinity group, which Pulsar places on different brokers."""

from typing import Final

from pulsarbox.clock import Now
from pulsarbox.errors import BadRequest, PreconditionFailed
from pulsarbox.names import check_entity_name
from pulsarbox.server.http.cluster.failure_domains import require_cluster
from pulsarbox.server.http.framework.cooperative_work import in_turns
from pulsarbox.server.http.framework.request import DeferredAnswer, HttpRequest, answer
from pulsarbox.server.http.framework.routes import HttpRoute, Permission

ANTI_AFFINITY_GROUP: Final = "namespaceAntiAffinityGroup"
"""Member of a namespace's policies, named as in Pulsar's LocalPolicies."""

AT_ONCE: Final = 100
"""Namespaces read per turn."""


def namespaces(call: HttpRequest) -> DeferredAnswer:
    """Return a tenant's namespaces of a group, in any case of its letters; none for an unknown tenant."""
    group, tenant = call.path["group"], call.query.get("tenant")
    if tenant is None:
        raise BadRequest("Tenant should not be null")
    if not group.strip():
        raise PreconditionFailed("Anti-affinity group can't be empty")
    check_entity_name("Tenant", tenant)
    require_cluster(call)
    tenants = call.tenants
    found: list[str] = []

    def add(namespace: str, now: Now) -> None:
        if tenants.has_namespace(namespace):
            own = tenants.policies(namespace).get(ANTI_AFFINITY_GROUP)
            if own is not None and own.lower() == group.lower():
                found.append(namespace)

    known = tenants.namespaces(tenant) if tenants.exists(tenant) else []
    return in_turns(call, known, add, lambda now, later: later.complete(answer(found)), AT_ONCE)


ROUTES = (HttpRoute("GET", "/admin/v2/namespaces/{cluster}/antiAffinity/{group}", Permission.SUPERUSER, namespaces),)
