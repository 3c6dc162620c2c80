"""Policies of namespaces: the endpoints generated from the policy table.

Source: https://pulsar.apache.org/docs/4.2.x/admin-api-namespaces/.
"""

from collections.abc import Iterator

from pulsarbox.errors import NotFound, PreconditionFailed
from pulsarbox.protocol.policies.checks import fits, size_quota
from pulsarbox.protocol.policies.row import LegacyMembers, PolicyEndpoint, PolicyRow
from pulsarbox.protocol.policies.table import ROWS
from pulsarbox.server.http.framework.request import DONE, HttpRequest, HttpResponse
from pulsarbox.server.http.framework.routes import Handler, HttpRoute, Permission
from pulsarbox.server.http.policies.values import UNCHANGED, changed, given, shown
from pulsarbox.storage.catalog import Row

NAMESPACE = "/admin/v2/namespaces/{tenant}/{namespace}"
OWN = "/pulsarbox/v1/policies/{tenant}/{namespace}"


def _get(row: PolicyRow, place: PolicyEndpoint) -> Handler:
    def handler(call: HttpRequest) -> HttpResponse:
        namespace = call.namespace()
        if not call.tenants.has_namespace(namespace):
            raise NotFound(place.missing)
        policies = call.tenants.policies(namespace)
        return shown(place.value_in(policies, call.settings.clusterName), place)

    return handler


def _set(row: PolicyRow, place: PolicyEndpoint) -> Handler:
    def handler(call: HttpRequest) -> HttpResponse:
        namespace, tenants = call.namespace(), call.tenants
        policies = tenants.policies(namespace)
        value = given(call, row, place)
        if value is UNCHANGED:
            return DONE
        if row.name == "retention" and not fits(size_quota(policies), value):
            raise PreconditionFailed("Retention Quota must exceed configured backlog quota for namespace.")
        if place.by_cluster and value is not None:
            value = {call.settings.clusterName: value}
        if isinstance(place.legacy, LegacyMembers):
            return set_merged(call, row, place, value)
        tenants.set_policy(namespace, place.key, value, call.now)
        return changed(call, row, value)

    return handler


def set_merged(call: HttpRequest, row: PolicyRow, place: PolicyEndpoint, value: Row) -> HttpResponse:
    """Set a policy, and move the values of its legacy keys to its unset members, as Pulsar does."""
    assert isinstance(place.legacy, LegacyMembers)
    namespace = call.namespace()
    merged = place.legacy.filled(call.tenants.policies(namespace), value)
    call.tenants.set_policies(namespace, {**dict.fromkeys(place.legacy.members), place.key: merged}, call.now)
    return changed(call, row, value)


def _remove(place: PolicyEndpoint) -> Handler:
    keys = (place.key, *(place.legacy.members if isinstance(place.legacy, LegacyMembers) else ()))

    def handler(call: HttpRequest) -> HttpResponse:
        namespace, tenants = call.namespace(), call.tenants
        if any(key in tenants.policies(namespace) for key in keys):
            tenants.set_policies(namespace, dict.fromkeys(keys), call.now)
        return DONE

    return handler


def _routes() -> Iterator[HttpRoute]:
    for row in ROWS:
        place = row.namespace
        if place is None:
            continue
        base, who = OWN if row.own else NAMESPACE, Permission.TENANT_ADMIN
        path = f"{base}/{place.path}"
        changing = Permission.SUPERUSER if place.superuser else who
        yield HttpRoute("GET", path, who, _get(row, place))
        yield HttpRoute(place.verb, path, changing, _set(row, place))
        if place.removed:
            yield HttpRoute("DELETE", f"{base}/{place.removal or place.path}", changing, _remove(place))


ROUTES = tuple(_routes())
