"""Steps for topics: creation, partitions, properties, schemas and subscriptions."""

from typing import Any

from pulsarbox.declaration.admin_calls import AdminCall, admin, own
from pulsarbox.declaration.declaration import POSITIONS, SubscriptionDeclaration, TopicDeclaration
from pulsarbox.declaration.declared_policy import is_equal
from pulsarbox.declaration.plan import Step, StepPlan
from pulsarbox.declaration.present_state import PresentState, PresentSubscription, PresentTopic
from pulsarbox.names import TopicName
from pulsarbox.protocol.admin_paths import path_of, path_of_subscription, quoted, subscription_segment

_WITH_PROPERTIES = "application/vnd.partitioned-topic-metadata+json"
_PLACES = {
    "earliest": {"ledgerId": -1, "entryId": -1},
    "latest": {"ledgerId": 2**63 - 1, "entryId": 2**63 - 1},
}
"""Message IDs of the initial positions, in the Admin API."""


def plan_topic(plan: StepPlan, name: TopicName, declared: TopicDeclaration, state: PresentState) -> None:
    """Add the steps of a topic itself: creation, partitions and properties."""
    present = state.topics.get(name)
    if present is None:
        plan.steps.append(_creation(name, declared))
    else:
        _partitions(plan, name, declared, present)
        _properties(plan, name, declared, present)


def plan_contents(plan: StepPlan, name: TopicName, declared: TopicDeclaration, state: PresentState) -> None:
    """Add the steps of a topic's schema and subscriptions, which its policies affect."""
    present = state.topics.get(name)
    if declared.schema is not None and name in state.schemas:
        if state.schemas[name]:
            plan.refuse(declared.schema.place, f"schema of {name}: {state.schemas[name]}")
        _schema(plan, name, declared)
    elif declared.schema is not None and name.namespace not in state.namespaces:
        _schema(plan, name, declared)
    for subscription, each in declared.subscriptions.items():
        _subscription(plan, name, subscription, each, present)


def plan_subscription_policies(
    plan: StepPlan, name: TopicName, declared: TopicDeclaration, state: PresentState
) -> None:
    """Add the steps of the policies of a topic's subscriptions."""
    topic = state.topics.get(name)
    for subscription, each in declared.subscriptions.items():
        present = topic.subscriptions.get(subscription) if topic is not None else None
        _dead_letter(plan, name, subscription, each, present)
        _rate(plan, name, subscription, each, present)


def _creation(name: TopicName, declared: TopicDeclaration) -> Step:
    count = declared.partitions
    properties = {key: each.value for key, each in declared.properties.items()}
    if not count:
        call = admin("PUT", path_of(name), properties or None)
    elif properties:
        body = {"partitions": count, "properties": properties}
        call = admin("PUT", f"{path_of(name)}/partitions", body, _WITH_PROPERTIES)
    else:
        call = admin("PUT", f"{path_of(name)}/partitions", count)
    what = f"topic with {count} partitions:" if count else "topic"
    return Step("create", what, str(name), declared.place, (call,), declared=count)


def _partitions(plan: StepPlan, name: TopicName, declared: TopicDeclaration, present: PresentTopic) -> None:
    count = declared.partitions
    if bool(count) != bool(present.partitions):
        has = f"{present.partitions} partitions" if present.partitions else "no partitions"
        plan.refuse(
            declared.place,
            f"topic {name} exists with {has}, which cannot be changed: declare partitions: {present.partitions}, or"
            f" delete the topic with `pulsarbox topic delete {name}`",
        )
    elif count < present.partitions:
        plan.refuse(
            declared.place,
            f"topic {name} has {present.partitions} partitions, and partitions cannot be removed: declare"
            f" {present.partitions} or more, or delete the topic with `pulsarbox topic delete {name}`",
        )
    elif count > present.partitions:
        call = admin("POST", f"{path_of(name)}/partitions", count)
        plan.steps.append(
            Step("grow", f"to {count} partitions: topic", str(name), declared.place, (call,), present.partitions, count)
        )
    elif name.persistent and count > present.created:
        call = admin("POST", f"{path_of(name)}/createMissedPartitions")
        plan.steps.append(
            Step("complete", "partitions of topic", str(name), declared.place, (call,), present.created, count)
        )


def _properties(plan: StepPlan, name: TopicName, declared: TopicDeclaration, present: PresentTopic) -> None:
    changed = {key: each for key, each in declared.properties.items() if present.properties.get(key) != each.value}
    if changed:
        values = {key: each.value for key, each in changed.items()}
        place = min(each.place for each in changed.values())
        before = {key: present.properties.get(key) for key in changed}
        call = admin("PUT", f"{path_of(name)}/properties", values)
        plan.steps.append(Step("set", "properties of topic", str(name), place, (call,), before, values))


def _schema(plan: StepPlan, name: TopicName, declared: TopicDeclaration) -> None:
    assert declared.schema is not None
    path = f"/schemas/{quoted(name.tenant, name.namespace_local, name.local)}/schema"
    call = admin("POST", path, declared.schema.value)
    plan.steps.append(
        Step("register", "schema of topic", str(name), declared.schema.place, (call,), declared=declared.schema.value)
    )


# Subscriptions


def _subscription(
    plan: StepPlan, topic: TopicName, name: str, declared: SubscriptionDeclaration, there: PresentTopic | None
) -> None:
    present = there.subscriptions.get(name) if there is not None else None
    parts = max(1, there.partitions if there is not None else 1)
    path, on = path_of_subscription(topic, name), f"{name} on {topic}"
    if present is None or present.partitions < parts:
        plan.steps.append(_subscribing(path, on, declared))
    elif declared.properties is not None and declared.properties.value != present.properties:
        call = admin("PUT", f"{path}/properties", declared.properties.value)
        before, wanted = present.properties, declared.properties.value
        plan.steps.append(
            Step("set", "properties of subscription", on, declared.properties.place, (call,), before, wanted)
        )


def _subscribing(path: str, on: str, declared: SubscriptionDeclaration) -> Step:
    body: dict[str, Any] = dict(_PLACES[declared.position])
    if declared.properties is not None and declared.properties.value:
        body["properties"] = declared.properties.value
    at = f"subscription at {declared.position}:" if declared.position != POSITIONS[1] else "subscription"
    return Step("create", at, on, declared.place, (admin("PUT", path, body),), settled=(409,))


def _dead_letter(
    plan: StepPlan, topic: TopicName, name: str, declared: SubscriptionDeclaration, present: PresentSubscription | None
) -> None:
    if declared.dead_letter is None:
        return
    wanted, before = declared.dead_letter.value, present.dead_letter if present is not None else None
    path = f"/dead-letter-policy{path_of(topic)}/{subscription_segment(name)}"
    what, on, place = "dead letter policy of subscription", f"{name} on {topic}", declared.dead_letter.place
    if wanted is None and before is not None:
        plan.steps.append(Step("unset", what, on, place, (own("DELETE", path),), before))
    elif wanted is not None and (before is None or any(before[key] != value for key, value in wanted.items())):
        plan.steps.append(Step("set", what, on, place, (own("POST", path, wanted),), before, wanted))


def _rate(
    plan: StepPlan, topic: TopicName, name: str, declared: SubscriptionDeclaration, present: PresentSubscription | None
) -> None:
    if declared.dispatch_rate is None:
        return
    wanted, before = declared.dispatch_rate.value, present.dispatch_rate if present is not None else None
    path = f"{path_of(topic)}/{subscription_segment(name, 'dispatchRate')}"
    what, on, place = "dispatch rate of subscription", f"{name} on {topic}", declared.dispatch_rate.place
    call: AdminCall = admin("DELETE", path) if wanted is None else admin("POST", path, wanted)
    if wanted is None and before is not None:
        plan.steps.append(Step("unset", what, on, place, (call,), before))
    elif wanted is not None and not is_equal(wanted, before):
        plan.steps.append(Step("set", what, on, place, (call,), before, wanted))
