"""Resource quotas of bundles. A box stores them; it has no load to balance."""

from typing import Final

from pulsarbox.errors import NotFound
from pulsarbox.protocol.policies.shapes import Flag, Fraction, ObjectShape
from pulsarbox.server.http.cluster.body_values import object_in
from pulsarbox.server.http.framework.request import DONE, HttpRequest, HttpResponse, answer
from pulsarbox.server.http.framework.routes import HttpRoute, Permission
from pulsarbox.server.http.framework.stored_only import stored_only
from pulsarbox.server.http.resources.bundles import check_bundle
from pulsarbox.storage.catalog import Row

_RATES: Final = ("msgRateIn", "msgRateOut", "bandwidthIn", "bandwidthOut", "memory")
_QUOTA: Final = ObjectShape({**dict.fromkeys(_RATES, (Fraction(), 0.0)), "dynamic": (Flag(), True)})


def default(call: HttpRequest) -> HttpResponse:
    """Return the default quota."""
    return answer(call.broker.clusters.quotas.default)


def set_default(call: HttpRequest) -> HttpResponse:
    """Set the default quota; without a body, revert to the initial one."""
    call.broker.clusters.quotas.set_default(_quota(call))
    return _stored()


def get(call: HttpRequest) -> HttpResponse:
    """Return the quota of a bundle."""
    return answer(call.broker.clusters.quotas.get(*_bundle(call)))


def put(call: HttpRequest) -> HttpResponse:
    """Set the quota of a bundle; without a body, remove it."""
    namespace, bundle = _bundle(call)
    quota = _quota(call)
    if quota is None:
        call.broker.clusters.quotas.delete(namespace, bundle)
    else:
        call.broker.clusters.quotas.put(namespace, bundle, quota)
    return _stored()


def delete(call: HttpRequest) -> HttpResponse:
    """Remove the quota of a bundle."""
    namespace, bundle = _bundle(call)
    if not call.broker.clusters.quotas.delete(namespace, bundle):
        raise NotFound(f"path /loadbalance/resource-quota/{namespace}/{bundle} not found.")
    return DONE


def _quota(call: HttpRequest) -> Row | None:
    return None if call.json() is None else object_in(call, _QUOTA, "the resource quota")


def _stored() -> HttpResponse:
    return stored_only("resource quotas", "a single broker has no load to balance")


def _bundle(call: HttpRequest) -> tuple[str, str]:
    namespace = call.namespace()
    return namespace, check_bundle(call.tenants, namespace, call.path["bundle"])


_BUNDLE: Final = "/admin/v2/resource-quotas/{tenant}/{namespace}/{bundle}"

ROUTES = (
    HttpRoute("GET", "/admin/v2/resource-quotas", Permission.SUPERUSER, default),
    HttpRoute("POST", "/admin/v2/resource-quotas", Permission.SUPERUSER, set_default),
    HttpRoute("GET", _BUNDLE, Permission.SUPERUSER, get),
    HttpRoute("POST", _BUNDLE, Permission.SUPERUSER, put),
    HttpRoute("DELETE", _BUNDLE, Permission.SUPERUSER, delete),
)
