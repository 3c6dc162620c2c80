"""Namespace isolation policies: the brokers that may serve the namespaces of a pattern.

Source: https://pulsar.apache.org/docs/4.2.x/administration-isolation/.
"""

from collections.abc import Iterable
from typing import Any, Final

from pulsarbox.errors import BadRequest, NotFound
from pulsarbox.protocol.topics_pattern import PatternError, linear
from pulsarbox.server.http.cluster.body_values import strings
from pulsarbox.server.http.cluster.failure_domains import require_cluster
from pulsarbox.server.http.framework.request import DONE, HttpRequest, HttpResponse, answer, texts
from pulsarbox.server.http.framework.routes import HttpRoute, Permission
from pulsarbox.server.http.framework.stored_only import stored_only
from pulsarbox.storage.catalog import Row

_SCOPES: Final = ("all_matching", "none", "changed")
_EXPRESSIONS: Final = ("namespaces", "primary", "secondary")
_EXPRESSIONS_MAX: Final = 100
"""Regular expressions of a cluster. Compiling one takes 20 us, and up to 100 us for one with long repetitions."""
_EXPRESSION_MAX: Final = 256
"""Characters of a regular expression."""
_MIN_AVAILABLE: Final = "min_available"
_LIMITS: Final = ("min_limit", "usage_threshold")


def policies(call: HttpRequest) -> HttpResponse:
    """Return the isolation policies of a cluster."""
    if call.path["cluster"] not in call.broker.clusters:
        raise NotFound(f"Cluster {call.path['cluster']} does not exist.")
    return answer(_policies(call))


def get(call: HttpRequest) -> HttpResponse:
    """Return one isolation policy."""
    cluster, name = require_cluster(call), call.path["policyName"]
    found = _policies(call)
    if name not in found:
        raise NotFound(f"Cannot find NamespaceIsolationPolicy {name} for cluster {cluster}")
    return answer(found[name])


def brokers(call: HttpRequest) -> HttpResponse:
    """Return the namespaces isolated to the only broker."""
    require_cluster(call)
    return answer([_of_broker(call.broker.endpoints.broker_id, _policies(call))])


def broker(call: HttpRequest) -> HttpResponse:
    """Return the namespaces isolated to a broker, which need not exist."""
    require_cluster(call)
    return answer(_of_broker(call.path["broker"], _policies(call)))


def put(call: HttpRequest) -> HttpResponse:
    """Create or replace an isolation policy."""
    cluster, name = require_cluster(call), call.path["policyName"]
    rows = call.broker.clusters.isolation_policies
    others = {key: policy for key, policy in (rows.get(cluster) or {}).items() if key != name}
    try:
        policy = _checked(call.json_object() or {}, others)
    except BadRequest as error:
        raise BadRequest(f"Invalid format of input policy data. policy: {name}; {error}") from None
    rows.put(cluster, dict(sorted((others | {name: policy}).items())))
    return stored_only("namespace isolation policies", "a single broker serves all namespaces")


def delete(call: HttpRequest) -> HttpResponse:
    """Delete an isolation policy; a missing one is no error, as in Pulsar."""
    cluster, name = require_cluster(call), call.path["policyName"]
    rows = call.broker.clusters.isolation_policies
    rows.put(cluster, {key: policy for key, policy in (rows.get(cluster) or {}).items() if key != name})
    return DONE


def _policies(call: HttpRequest) -> Row:
    found = call.broker.clusters.isolation_policies.get(call.path["cluster"])
    if found is None:
        raise NotFound(f"NamespaceIsolationPolicies for cluster {call.path['cluster']} does not exist")
    return found


def _checked(body: Row, others: Row) -> Row:
    """Return a valid policy, without unknown members. Raises BadRequest. ``others``: those of the same cluster."""
    policy: Row = {name: strings(body.get(name), name) for name in _EXPRESSIONS}
    for name in ("namespaces", "primary"):
        if not policy[name]:
            raise BadRequest(f"{name} must not be empty")
    count = sum(len(each[name]) for each in (policy, *others.values()) for name in _EXPRESSIONS)
    if count > _EXPRESSIONS_MAX:
        raise BadRequest(f"a cluster may have at most {_EXPRESSIONS_MAX} regular expressions, not {count}")
    for name in _EXPRESSIONS:
        _check_expressions(name, policy[name])
    policy["auto_failover_policy"] = _failover(body.get("auto_failover_policy"))
    if body.get("unload_scope") in _SCOPES:
        policy["unload_scope"] = body["unload_scope"]
    return policy


def _check_expressions(name: str, expressions: Iterable[str]) -> None:
    for expression in expressions:
        if len(expression) > _EXPRESSION_MAX:
            raise BadRequest(f"{name} has a regular expression of more than {_EXPRESSION_MAX} characters")
        try:
            linear(expression)
        except PatternError as error:
            raise BadRequest(f"{name} has the invalid regular expression {expression[:80]!r}: {error}") from None


def _failover(data: Any) -> Row:
    if not isinstance(data, dict) or data.get("policy_type") != _MIN_AVAILABLE:
        raise BadRequest(f'auto_failover_policy must be an object with "policy_type": "{_MIN_AVAILABLE}"')
    parameters = texts(data.get("parameters"), "parameters")
    for name in _LIMITS:
        if not parameters.get(name, "").removeprefix("-").isdecimal():
            raise BadRequest(f"auto_failover_policy needs the parameter {name}, a whole number")
    return {"parameters": parameters, "policy_type": _MIN_AVAILABLE}


def _of_broker(name: str, found: Row) -> Row:
    """Return the policies that match a broker; those of the last one that does, as in Pulsar."""
    namespaces: list[str] = []
    last: Row = {}
    is_primary = False
    for policy_name, policy in found.items():
        primary = _matches(policy["primary"], name)
        if primary or _matches(policy["secondary"], name):
            namespaces += policy["namespaces"]
            last, is_primary = {"policyName": policy_name}, primary
    return {"brokerName": name, **last, "namespaceRegex": namespaces, "primary": is_primary}


def _matches(expressions: Iterable[str], broker: str) -> bool:
    return any(linear(expression).fullmatch(broker.encode()) is not None for expression in expressions)


_POLICIES: Final = "/admin/v2/clusters/{cluster}/namespaceIsolationPolicies"

ROUTES = (
    HttpRoute("GET", _POLICIES, Permission.SUPERUSER, policies),
    HttpRoute("GET", f"{_POLICIES}/brokers", Permission.SUPERUSER, brokers),
    HttpRoute("GET", f"{_POLICIES}/brokers/{{broker}}", Permission.SUPERUSER, broker),
    HttpRoute("GET", f"{_POLICIES}/{{policyName}}", Permission.SUPERUSER, get),
    HttpRoute("POST", f"{_POLICIES}/{{policyName}}", Permission.SUPERUSER, put),
    HttpRoute("DELETE", f"{_POLICIES}/{{policyName}}", Permission.SUPERUSER, delete),
)
