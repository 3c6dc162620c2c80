"""Steps for clusters, and checks of the policies that name them."""

from collections.abc import Mapping
from typing import Any

from pulsarbox.declaration.admin_calls import admin
from pulsarbox.declaration.declaration import Declaration, Declared, Policies
from pulsarbox.declaration.plan import Step, StepPlan
from pulsarbox.declaration.policy_calls import setting_call
from pulsarbox.declaration.present_state import PresentState
from pulsarbox.protocol.admin_paths import quoted
from pulsarbox.protocol.cluster_data import SECRETS
from pulsarbox.protocol.policies.stored_rows import ALLOWED_CLUSTERS, REPLICATION_CLUSTERS

_ALLOWED, _REPLICATED = ALLOWED_CLUSTERS.name, REPLICATION_CLUSTERS.name


def plan_clusters(plan: StepPlan, declaration: Declaration, state: PresentState) -> None:
    """Add the steps of the clusters themselves, and refuse names of clusters that do not exist."""
    for name, each in declaration.clusters.items():
        if name == state.cluster():
            plan.refuse(each.place, f"cluster {name} is the broker's own, which its settings describe: remove it")
            continue
        path, present = f"/clusters/{quoted(name)}", state.cluster_data.get(name)
        if present is None:
            calls = (admin("PUT", path, each.value),)
            shown = _shown(each.value)
            plan.steps.append(Step("create", "cluster", name, each.place, calls, declared=shown, settled=(409,)))
            continue
        kept = {member: present.get(member) for member in each.value}
        if kept != each.value:
            calls = (admin("POST", path, {**present, **each.value}),)
            shown = _shown(each.value)
            plan.steps.append(Step("set", "data of cluster", name, each.place, calls, _shown(kept), shown))
    for named in _named(declaration):
        for cluster in sorted({*named.value} - {*declaration.clusters, *state.clusters}):
            plan.refuse(named.place, f"cluster {cluster} does not exist: declare it under clusters")


def _shown(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return members of a cluster without credentials, which must not appear in a terminal."""
    return {name: "(secret)" if each and name in SECRETS else each for name, each in data.items()}


def _named(declaration: Declaration) -> list[Declared[list[str]]]:
    """Return all declared lists of clusters."""
    policies = [each.policies for each in declaration.namespaces.values()]
    policies += [each.policies for each in declaration.topics.values()]
    found = [each.get(name) for each in policies for name in (_ALLOWED, _REPLICATED)]
    found += [each.clusters for each in declaration.tenants.values()]
    return [each for each in found if each is not None and each.value is not None]


def plan_allowed(plan: StepPlan, namespace: str, declared: Policies, present: Mapping[str, Any], own: str) -> list[str]:
    """Return the clusters that a namespace allows when its other policies are set, as far as they are limited.

    Brokers reject a change that leaves a replication cluster not allowed. So a namespace that changes both first
    allows the clusters before and after, and is refused if it does not allow the clusters after.
    """
    before: list[str] = present.get("allowed_clusters") or []
    replicated = _after(declared, _REPLICATED, present.get("replication_clusters") or [own], own)
    allowed = _after(declared, _ALLOWED, before, own) if before or _ALLOWED in declared else []
    strange = sorted(set(replicated) - set(allowed)) if allowed and not (allowed == [own] and not before) else []
    at = declared.get(_ALLOWED) or declared.get(_REPLICATED)
    if own and strange and at is not None:
        plan.refuse(at.place, f"namespace {namespace} replicates to {strange[0]}: add it to allowed-clusters")
    if not before or _ALLOWED not in declared or set(replicated) <= set(before):
        return before
    both = sorted({*before, *replicated})
    assert ALLOWED_CLUSTERS.namespace is not None
    calls = (setting_call(namespace, ALLOWED_CLUSTERS, ALLOWED_CLUSTERS.namespace, both),)
    what = f"{_ALLOWED} of namespace"
    plan.steps.append(Step("set", what, namespace, declared[_ALLOWED].place, calls, before, both))
    return both


def _after(declared: Policies, name: str, present: list[str], own: str) -> list[str]:
    return present if name not in declared else declared[name].value or [own]
