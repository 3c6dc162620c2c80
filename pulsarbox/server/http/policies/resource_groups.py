"""Resource groups: rates shared by the namespaces of a group.

Source: https://pulsar.apache.org/docs/4.2.x/admin-api-resource-groups/.
"""

from typing import Any, Final

from pulsarbox.broker.policies.kinds.resource_group import group_key
from pulsarbox.errors import BadRequest, NotFound, PreconditionFailed
from pulsarbox.names import check_entity_name
from pulsarbox.protocol.policies.policy_values import RESOURCE_GROUP
from pulsarbox.server.http.framework.request import DONE, HttpRequest, HttpResponse, answer, plain
from pulsarbox.server.http.framework.routes import HttpRoute, Permission
from pulsarbox.server.http.policies.of_namespaces import NAMESPACE
from pulsarbox.storage.catalog import Row

KEY: Final = "resource_group_name"
_MISSING: Final = "ResourceGroup does not exist"


def groups(call: HttpRequest) -> HttpResponse:
    """Return the names of all groups."""
    return answer([key.partition("/")[2] for key in call.broker.catalog.keys(group_key(""))])


def get(call: HttpRequest) -> HttpResponse:
    """Return the rates of a group; -1 means no limit."""
    return answer(dict.fromkeys(RESOURCE_GROUP.members, -1) | _group(call))


def put(call: HttpRequest) -> HttpResponse:
    """Create a group, or change the rates in the body."""
    name = check_entity_name("ResourceGroup", call.path["resourcegroup"])
    body = call.json_object()
    if body is None:
        raise BadRequest(f"The body must be an object such as {{{', '.join(RESOURCE_GROUP.members)}}}")
    before = call.broker.catalog.get(group_key(name)) or {}
    _keep(call, name, before | RESOURCE_GROUP.read(body, "a resource group"))
    return DONE


def delete(call: HttpRequest) -> HttpResponse:
    """Delete a group that has no namespaces."""
    name = call.path["resourcegroup"]
    _group(call)
    tenants = call.tenants
    namespaces = (each for tenant in tenants.all() for each in tenants.namespaces(tenant))
    if any(tenants.policies(each).get(KEY) == name for each in namespaces):
        raise PreconditionFailed("ResourceGroup is in use")
    _keep(call, name, None)
    return DONE


def _group(call: HttpRequest) -> dict[str, Any]:
    row = call.broker.catalog.get(group_key(call.path["resourcegroup"]))
    if row is None:
        raise NotFound(_MISSING)
    return row


def _keep(call: HttpRequest, name: str, row: Row | None) -> None:
    call.broker.put_resource_group(name, row, call.now)


# Namespaces


def of_namespace(call: HttpRequest) -> HttpResponse:
    """Return the group of a namespace, as plain text."""
    return plain(call.tenants.policies(call.namespace()).get(KEY, ""))


def attach(call: HttpRequest) -> HttpResponse:
    """Attach a namespace to a group."""
    name, namespace = call.path["resourcegroup"], call.namespace()
    call.tenants.policies(namespace)
    if group_key(name) not in call.broker.catalog:
        raise PreconditionFailed(_MISSING)
    call.tenants.set_policy(namespace, KEY, name, call.now)
    return DONE


def detach(call: HttpRequest) -> HttpResponse:
    """Detach a namespace from its group."""
    namespace = call.namespace()
    if KEY in call.tenants.policies(namespace):
        call.tenants.set_policy(namespace, KEY, None, call.now)
    return DONE


_GROUP = "/admin/v2/resourcegroups/{resourcegroup}"

ROUTES = (
    HttpRoute("GET", "/admin/v2/resourcegroups", Permission.SUPERUSER, groups),
    HttpRoute("GET", _GROUP, Permission.SUPERUSER, get),
    HttpRoute("PUT", _GROUP, Permission.SUPERUSER, put),
    HttpRoute("DELETE", _GROUP, Permission.SUPERUSER, delete),
    HttpRoute("GET", f"{NAMESPACE}/resourcegroup", Permission.TENANT_ADMIN, of_namespace),
    HttpRoute("POST", f"{NAMESPACE}/resourcegroup/{{resourcegroup}}", Permission.TENANT_ADMIN, attach),
    HttpRoute("DELETE", f"{NAMESPACE}/resourcegroup", Permission.TENANT_ADMIN, detach),
)
