"""Policies of namespaces: the endpoints generated from the policy table.

Source: https://pulsar.apache.org/docs/4.2.x/admin-api-namespaces/.
"""

from collections.abc import Iterator

from pulsarbox.errors import PreconditionFailed
from pulsarbox.protocol.policies.checks import fits, size_quota
from pulsarbox.protocol.policies.row import PolicyEndpoint, PolicyRow
from pulsarbox.protocol.policies.table import ROWS
from pulsarbox.server.http.framework.request import DONE, HttpRequest, HttpResponse
from pulsarbox.server.http.framework.routes import Handler, HttpRoute, Permission
from pulsarbox.server.http.policies.values import UNCHANGED, given, shown

NAMESPACE = "/admin/v2/namespaces/{tenant}/{namespace}"
OWN = "/pulsarbox/v1/policies/{tenant}/{namespace}"


def _get(row: PolicyRow, place: PolicyEndpoint) -> Handler:
    def handler(call: HttpRequest) -> HttpResponse:
        policies = call.tenants.policies(call.namespace())
        return shown(place.value_in(policies, call.settings.clusterName), place.unset)

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
        tenants.set_policy(namespace, place.key, value, call.now)
        return DONE

    return handler


def _remove(place: PolicyEndpoint) -> Handler:
    def handler(call: HttpRequest) -> HttpResponse:
        namespace, tenants = call.namespace(), call.tenants
        if place.key in tenants.policies(namespace):
            tenants.set_policy(namespace, place.key, None, call.now)
        return DONE

    return handler


def _routes() -> Iterator[HttpRoute]:
    for row in ROWS:
        place = row.namespace
        if place is None:
            continue
        path, who = f"{OWN if row.own else NAMESPACE}/{place.path}", Permission.TENANT_ADMIN
        changing = Permission.SUPERUSER if place.superuser else who
        yield HttpRoute("GET", path, who, _get(row, place))
        yield HttpRoute(place.verb, path, changing, _set(row, place))
        if place.removed:
            yield HttpRoute("DELETE", path, changing, _remove(place))


ROUTES = tuple(_routes())
