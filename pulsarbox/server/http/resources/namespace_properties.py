"""Properties of namespaces: free-form strings by name."""

from pulsarbox.server.http.framework.request import DONE, Answer, Call, answer, plain, texts
from pulsarbox.server.http.framework.routes import Permission, Route


def _properties(call: Call) -> dict[str, str]:
    return dict(call.broker.tenants.policies(call.namespace()).get("properties") or {})


def get_all(call: Call) -> Answer:
    """Return all properties."""
    return answer(_properties(call))


def get(call: Call) -> Answer:
    """Return one property as plain text; empty if it is not set."""
    return plain(_properties(call).get(call.path["key"], ""))


def put_all(call: Call) -> Answer:
    """Set the properties in the body; others are unchanged."""
    added = texts(call.json(), "Properties of a namespace")
    return _put(call, _properties(call) | added)


def put(call: Call) -> Answer:
    """Set one property."""
    return _put(call, _properties(call) | {call.path["key"]: call.path["value"]})


def remove(call: Call) -> Answer:
    """Remove one property; return its value, empty if it was not set."""
    left = _properties(call)
    taken = left.pop(call.path["key"], "")
    _put(call, left)
    return plain(taken)


def clear(call: Call) -> Answer:
    """Remove all properties."""
    _properties(call)
    return _put(call, {})


def _put(call: Call, properties: dict[str, str]) -> Answer:
    call.broker.tenants.set_policy(call.namespace(), "properties", properties or None)
    return DONE


_NAMESPACE = "/admin/v2/namespaces/{tenant}/{namespace}"

ROUTES = (
    Route("GET", f"{_NAMESPACE}/properties", Permission.TENANT_ADMIN, get_all),
    Route("PUT", f"{_NAMESPACE}/properties", Permission.TENANT_ADMIN, put_all),
    Route("DELETE", f"{_NAMESPACE}/properties", Permission.TENANT_ADMIN, clear),
    Route("GET", f"{_NAMESPACE}/property/{{key}}", Permission.TENANT_ADMIN, get),
    Route("PUT", f"{_NAMESPACE}/property/{{key}}/{{value}}", Permission.TENANT_ADMIN, put),
    Route("DELETE", f"{_NAMESPACE}/property/{{key}}", Permission.TENANT_ADMIN, remove),
)
