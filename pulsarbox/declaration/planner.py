"""Comparison of a declaration with the present state of a broker.

Additive: objects, policies and grants that are not declared stay as they are. ``pruned_steps`` deletes them.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pulsarbox.declaration.admin_calls import AdminCall, admin
from pulsarbox.declaration.cluster_planner import plan_allowed, plan_clusters
from pulsarbox.declaration.declaration import Declaration, Declared, Grants, NamespaceDeclaration, Policies, Properties
from pulsarbox.declaration.declared_policy import ROWS_BY_NAME, beyond_own, is_equal, is_unset, level_of
from pulsarbox.declaration.places import InvalidDeclaration, Place
from pulsarbox.declaration.plan import Step, StepPlan
from pulsarbox.declaration.policy_calls import Subject, base_of, removal_call, setting_call
from pulsarbox.declaration.present_state import PresentState
from pulsarbox.declaration.topic_planner import plan_contents, plan_subscription_policies, plan_topic
from pulsarbox.names import TopicName
from pulsarbox.protocol.admin_paths import quoted
from pulsarbox.protocol.policies.checks import fits
from pulsarbox.protocol.policies.policy_values import AGE_QUOTA, SIZE_QUOTA
from pulsarbox.protocol.policies.stored_rows import ALLOWED_CLUSTERS, SHADOW_TOPICS
from pulsarbox.protocol.policies.table import RESOURCE_GROUP_NAME

_QUOTAS = (SIZE_QUOTA, AGE_QUOTA)


def planned(declaration: Declaration, state: PresentState) -> StepPlan:
    """Return the steps that make the broker equal to the declaration, tokens excepted.

    Raises InvalidDeclaration if something that exists cannot be changed so.
    """
    plan = StepPlan()
    plan_clusters(plan, declaration, state)
    _tenants(plan, declaration, state)
    _groups(plan, declaration, state)
    for name, namespace in declaration.namespaces.items():
        _namespace(plan, name, namespace, declaration, state)
    _topics(plan, declaration, state)
    if plan.problems:
        raise InvalidDeclaration(plan.problems)
    return plan


def _topics(plan: StepPlan, declaration: Declaration, state: PresentState) -> None:
    """The order is: all topics, the shadow topics and subscriptions of each, and dead letter policies.

    These create topics and subscriptions.
    """
    for topic, each in declaration.topics.items():
        if topic.namespace not in state.namespaces and topic.namespace not in declaration.namespaces:
            plan.refuse(each.place, f"namespace {topic.namespace} does not exist: declare it under namespaces")
            continue
        plan_topic(plan, topic, each, state)
        policies = {name: value for name, value in each.policies.items() if name != SHADOW_TOPICS.name}
        plan.steps += policy_steps(plan, topic, policies, _of_topic(state, topic), "topic", state.cluster())
        plan.steps += _grants(topic, each.permissions, _topic_grants(state, topic), "topic")
    for topic, each in declaration.topics.items():
        policies = {name: value for name, value in each.policies.items() if name == SHADOW_TOPICS.name}
        plan.steps += policy_steps(plan, topic, policies, _of_topic(state, topic), "topic", state.cluster())
        plan_contents(plan, topic, each, state)
    for topic, each in declaration.topics.items():
        plan_subscription_policies(plan, topic, each, state)


def _of_topic(state: PresentState, name: TopicName) -> Mapping[str, Any]:
    return state.topics[name].policies if name in state.topics else {}


def _topic_grants(state: PresentState, name: TopicName) -> Mapping[str, list[str]]:
    auth = state.namespaces.get(name.namespace, {}).get("auth_policies") or {}
    found: Mapping[str, list[str]] = (auth.get("destination_auth") or {}).get(str(name)) or {}
    return found


# Tenants and resource groups


def _tenants(plan: StepPlan, declaration: Declaration, state: PresentState) -> None:
    for name, each in declaration.tenants.items():
        present = state.tenants.get(name)
        before = present or {"adminRoles": [], "allowedClusters": [state.cluster()]}
        wanted = {
            "adminRoles": _either(each.admin_roles, before["adminRoles"]),
            "allowedClusters": _either(each.clusters, before["allowedClusters"]),
        }
        path = f"/tenants/{quoted(name)}"
        if present is None:
            calls = (admin("PUT", path, wanted),)
            plan.steps.append(Step("create", "tenant", name, each.place, calls, declared=wanted, settled=(409,)))
            continue
        kept = {key: sorted(before[key]) for key in wanted}
        if kept != {key: sorted(value) for key, value in wanted.items()}:
            at = (each.admin_roles or each.clusters or each).place
            plan.steps.append(Step("set", "roles of tenant", name, at, (admin("POST", path, wanted),), kept, wanted))


def _either(declared: Declared[list[str]] | None, present: list[str]) -> list[str]:
    return present if declared is None else sorted(set(declared.value))


def _groups(plan: StepPlan, declaration: Declaration, state: PresentState) -> None:
    for name, each in declaration.resource_groups.items():
        present = state.resource_groups.get(name)
        kept = {rate: (present or {}).get(rate) for rate in each.value}
        call = admin("PUT", f"/resourcegroups/{quoted(name)}", each.value)
        if present is None:
            plan.steps.append(Step("create", "resource group", name, each.place, (call,), declared=each.value))
        elif kept != each.value:
            plan.steps.append(Step("set", "rates of resource group", name, each.place, (call,), kept, each.value))


# Namespaces


def _namespace(
    plan: StepPlan, name: str, declared: NamespaceDeclaration, declaration: Declaration, state: PresentState
) -> None:
    tenant = name.partition("/")[0]
    if tenant not in state.tenants and tenant not in declaration.tenants:
        plan.refuse(declared.place, f"tenant {tenant} does not exist: declare it under tenants")
        return
    if name not in state.namespaces:
        calls = (admin("PUT", base_of(name)),)
        plan.steps.append(Step("create", "namespace", name, declared.place, calls, settled=(409,)))
    group = declared.policies.get(RESOURCE_GROUP_NAME.name)
    known = {*declaration.resource_groups, *state.resource_groups}
    if group is not None and group.value is not None and group.value not in known:
        plan.refuse(group.place, f"resource group {group.value} does not exist: declare it under resource-groups")
    present = state.namespaces.get(name, {})
    plan.steps += _namespace_policies(plan, name, declared.policies, present, state.cluster())
    plan.steps += property_steps(name, declared.properties, present.get("properties") or {}, "namespace")
    auth = present.get("auth_policies") or {}
    plan.steps += _grants(name, declared.permissions, auth.get("namespace_auth") or {}, "namespace")
    plan.steps += _reservations(name, declared.subscription_permissions, auth.get("subscription_auth_roles") or {})


def _namespace_policies(
    plan: StepPlan, name: str, declared: Policies, present: Mapping[str, Any], own: str
) -> list[Step]:
    """The replication clusters come before the allowed ones, which include them."""
    wanted = {
        each: replace(value, value=beyond_own(ROWS_BY_NAME[each], value.value, own))
        for each, value in sorted(declared.items(), key=lambda item: item[0] == ALLOWED_CLUSTERS.name)
    }
    allowed = plan_allowed(plan, name, wanted, present, own)
    before = namespace_policies({**present, "allowed_clusters": allowed}, own)
    return policy_steps(plan, name, wanted, before, "namespace", own)


def namespace_policies(present: Mapping[str, Any], cluster: str) -> dict[str, Any]:
    """Return the policies of a namespace by name, from its form in the Admin API; None where it has no value."""
    return {
        name: beyond_own(row, row.namespace.value_in(present, cluster), cluster)
        for name, row in ROWS_BY_NAME.items()
        if row.namespace is not None
    }


def property_steps(of: Subject, declared: Properties, present: Mapping[str, str], kind: str) -> list[Step]:
    """Return the step that sets the properties that differ; brokers keep the others."""
    changed = {key: each.value for key, each in declared.items() if present.get(key) != each.value}
    if not changed:
        return []
    place = min(each.place for key, each in declared.items() if key in changed)
    kept = {key: present.get(key) for key in changed}
    call = admin("PUT", f"{base_of(of)}/properties", changed)
    return [Step("set", f"properties of {kind}", str(of), place, (call,), kept, changed)]


def _grants(of: Subject, declared: Grants, present: Mapping[str, list[str]], kind: str) -> list[Step]:
    steps = []
    for role, each in declared.items():
        before = sorted(present.get(role, ()))
        if before == sorted(each.value):
            continue
        path = f"{base_of(of)}/permissions/{quoted(role)}"
        call = admin("POST", path, each.value) if each.value else admin("DELETE", path)
        what = f"permissions of role {role} on {kind}"
        verb = "grant" if each.value else "revoke"
        steps.append(Step(verb, what, str(of), each.place, (call,), before, each.value))
    return steps


def _reservations(namespace: str, declared: Grants, present: Mapping[str, list[str]]) -> list[Step]:
    steps = []
    for subscription, each in declared.items():
        before = sorted(present.get(subscription, ()))
        if before != each.value:
            call = admin("POST", f"{base_of(namespace)}/permissions/subscription/{quoted(subscription)}", each.value)
            what = f"roles of subscription {subscription} in namespace"
            steps.append(Step("set", what, namespace, each.place, (call,), before, each.value))
    return steps


# Policies


def policy_steps(
    plan: StepPlan, of: Subject, declared: Policies, present: Mapping[str, Any], kind: str, own: str
) -> list[Step]:
    """Return the steps for policies that differ. Brokers reject a quota beyond the retention: the order matters."""
    _check_quotas(plan, declared, present)
    names = [name for name in declared if name not in _QUOTAS and name != "retention"]
    around = ["retention", *_QUOTAS]
    if "retention" in declared and not _allows(declared["retention"].value, present):
        around = [*_QUOTAS, "retention"]
    return [
        step
        for name in (*around, *names)
        if name in declared
        for step in _policy(of, name, declared[name], present, kind, own)
    ]


def _policy(
    of: Subject, name: str, declared: Declared[Any], present: Mapping[str, Any], kind: str, own: str
) -> list[Step]:
    row, before = ROWS_BY_NAME[name], present.get(name)
    place = level_of(row, topic=kind == "topic")
    assert place is not None, name
    what, named = f"{name} of {kind}", str(of)
    if declared.value is None:
        if is_unset(row, place, before):
            return []
        return [Step("unset", what, named, declared.place, (removal_call(of, row, place, own),), before)]
    if is_equal(declared.value, before):
        return []
    calls: tuple[AdminCall, ...] = (setting_call(of, row, place, declared.value),)
    return [Step("set", what, named, declared.place, calls, before, declared.value)]


def _allows(retention: Any, present: Mapping[str, Any]) -> bool:
    return all(fits(present.get(each), retention) for each in _QUOTAS)


def _check_quotas(plan: StepPlan, declared: Policies, present: Mapping[str, Any]) -> None:
    """Refuse a quota that the retention at the same level would never let a backlog reach."""
    after = {**present, **{name: each.value for name, each in declared.items()}}
    for name in _QUOTAS:
        place = _place_of(declared, name, "retention")
        if place is not None and not fits(after.get(name), after.get("retention")):
            plan.refuse(place, f"{name} exceeds retention: raise the retention or lower the quota")


def _place_of(declared: Policies, *names: str) -> Place | None:
    return next((declared[name].place for name in names if name in declared), None)
