"""Properties of namespaces: texts by name, for whoever manages them."""

from pulsarbox.server.http.framework.request import DONE, Answer, Call, answer, plain, texts
from pulsarbox.server.http.framework.routes import Permission, Route


def _properties(call: Call) -> dict[str, str]:
    return dict(call.broker.tenants.policies(call.namespace()).get("properties") or {})


def get_all(call: Call) -> Answer:
    """All properties."""
    return answer(_properties(call))


def get(call: Call) -> Answer:
    """One property, as plain text; nothing where it is not set."""
    return plain(_properties(call).get(call.path["key"], ""))


def put_all(call: Call) -> Answer:
    """Set what the body has; other properties stay."""
    added = texts(call.json(), "Properties of a namespace")
    return _put(call, _properties(call) | added)


def put(call: Call) -> Answer:
    """Set one property."""
    return _put(call, _properties(call) | {call.path["key"]: call.path["value"]})


def remove(call: Call) -> Answer:
    """Take one property away; answered with its value, with nothing where it was not set."""
    left = _properties(call)
    taken = left.pop(call.path["key"], "")
    _put(call, left)
    return plain(taken)


def clear(call: Call) -> Answer:
    """Take all properties away."""
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
