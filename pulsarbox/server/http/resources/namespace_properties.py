"""Properties of namespaces: free-form strings by name."""

from pulsarbox.server.http.framework.request import DONE, HttpRequest, HttpResponse, answer, plain, texts
from pulsarbox.server.http.framework.routes import HttpRoute, Permission


def _properties(call: HttpRequest) -> dict[str, str]:
    return dict(call.tenants.policies(call.namespace()).get("properties") or {})


def get_all(call: HttpRequest) -> HttpResponse:
    """Return all properties."""
    return answer(_properties(call))


def get(call: HttpRequest) -> HttpResponse:
    """Return one property as plain text; empty if it is not set."""
    return plain(_properties(call).get(call.path["key"], ""))


def put_all(call: HttpRequest) -> HttpResponse:
    """Set the properties in the body; others are unchanged."""
    added = texts(call.json(), "Properties of a namespace")
    return _put(call, _properties(call) | added)


def put(call: HttpRequest) -> HttpResponse:
    """Set one property."""
    return _put(call, _properties(call) | {call.path["key"]: call.path["value"]})


def remove(call: HttpRequest) -> HttpResponse:
    """Remove one property; return its value, empty if it was not set."""
    left = _properties(call)
    taken = left.pop(call.path["key"], "")
    _put(call, left)
    return plain(taken)


def clear(call: HttpRequest) -> HttpResponse:
    """Remove all properties."""
    _properties(call)
    return _put(call, {})


def _put(call: HttpRequest, properties: dict[str, str]) -> HttpResponse:
    call.tenants.set_policy(call.namespace(), "properties", properties or None)
    return DONE


_NAMESPACE = "/admin/v2/namespaces/{tenant}/{namespace}"

ROUTES = (
    HttpRoute("GET", f"{_NAMESPACE}/properties", Permission.TENANT_ADMIN, get_all),
    HttpRoute("PUT", f"{_NAMESPACE}/properties", Permission.TENANT_ADMIN, put_all),
    HttpRoute("DELETE", f"{_NAMESPACE}/properties", Permission.TENANT_ADMIN, clear),
    HttpRoute("GET", f"{_NAMESPACE}/property/{{key}}", Permission.TENANT_ADMIN, get),
    HttpRoute("PUT", f"{_NAMESPACE}/property/{{key}}/{{value}}", Permission.TENANT_ADMIN, put),
    HttpRoute("DELETE", f"{_NAMESPACE}/property/{{key}}", Permission.TENANT_ADMIN, remove),
)
