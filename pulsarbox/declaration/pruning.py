"""Deletion of what is not declared inside declared namespaces: topics, durable subscriptions and policies.

Clusters, tenants, namespaces, permissions, properties and schemas stay. So do the dead letter topics of declared
subscriptions, and the subscriptions that keep their messages.
"""

from collections.abc import Iterator

from pulsarbox.declaration.admin_calls import admin
from pulsarbox.declaration.declaration import Declaration, NamespaceDeclaration, SubscriptionDeclaration
from pulsarbox.declaration.declared_policy import is_unset, rows_at
from pulsarbox.declaration.plan import Step
from pulsarbox.declaration.planner import namespace_policies
from pulsarbox.declaration.policy_calls import Subject, removal_call
from pulsarbox.declaration.present_state import PresentState
from pulsarbox.names import DEAD_LETTER_SUFFIXES, TopicName, parse_topic
from pulsarbox.protocol.admin_paths import path_of, path_of_subscription
from pulsarbox.protocol.policies.stored_rows import ALLOWED_CLUSTERS, REPLICATION_CLUSTERS


def pruned_steps(declaration: Declaration, state: PresentState) -> list[Step]:
    """Return the steps that delete what is not declared. ``state`` has everything of the declared namespaces."""
    return [*_subscriptions(declaration, state), *_topics(declaration, state), *_policies(declaration, state)]


def _topics(declaration: Declaration, state: PresentState) -> Iterator[Step]:
    kept = {*declaration.topics, *_dead_letter_topics(declaration)}
    for name in state.listed:
        if name.namespace in declaration.namespaces and name not in kept:
            partitioned = name in state.topics and state.topics[name].partitions
            path = f"{path_of(name)}/partitions" if partitioned else path_of(name)
            yield Step("delete", "topic", str(name), calls=(admin("DELETE", path),), settled=(404,))


def _dead_letter_topics(declaration: Declaration) -> Iterator[TopicName]:
    for topic, declared in declaration.topics.items():
        for name, each in declared.subscriptions.items():
            yield from (topic._replace(local=f"{topic.local}-{name}{suffix}") for suffix in DEAD_LETTER_SUFFIXES)
            yield from _target(each)


def _target(declared: SubscriptionDeclaration) -> Iterator[TopicName]:
    policy = declared.dead_letter.value if declared.dead_letter is not None else None
    if policy and policy.get("deadLetterTopic"):
        yield parse_topic(policy["deadLetterTopic"])


def _subscriptions(declaration: Declaration, state: PresentState) -> Iterator[Step]:
    letters = set(_dead_letter_topics(declaration))
    for topic, declared in declaration.topics.items():
        if topic.namespace not in declaration.namespaces or topic in letters or topic not in state.topics:
            continue
        for name in state.topics[topic].subscriptions:
            if name not in declared.subscriptions:
                call = admin("DELETE", path_of_subscription(topic, name))
                yield Step("delete", "subscription", f"{name} on {topic}", calls=(call,), settled=(404,))


def _policies(declaration: Declaration, state: PresentState) -> Iterator[Step]:
    for name, namespace in declaration.namespaces.items():
        if name in state.namespaces:
            present = namespace_policies(state.namespaces[name], state.cluster())
            yield from _removals(name, present, _kept(namespace, state.cluster()), "namespace", state.cluster())
    for topic, declared in declaration.topics.items():
        if topic.namespace in declaration.namespaces and topic in state.topics:
            yield from _removals(topic, state.topics[topic].policies, set(declared.policies), "topic", state.cluster())


def _kept(namespace: NamespaceDeclaration, own: str) -> set[str]:
    """Return the policies that stay: those declared, and allowed clusters, which include those replicated to."""
    replicated = namespace.policies.get(REPLICATION_CLUSTERS.name)
    others = replicated is not None and replicated.value not in (None, [own])
    return {*namespace.policies, *([ALLOWED_CLUSTERS.name] if others else [])}


def _removals(of: Subject, present: dict[str, object], kept: set[str], kind: str, own: str) -> Iterator[Step]:
    for row, place in rows_at(topic=kind == "topic"):
        value = present.get(row.name)
        if row.name not in kept and not is_unset(row, place, value):
            calls = (removal_call(of, row, place, own),)
            yield Step("unset", f"{row.name} of {kind}", str(of), calls=calls, present=value)
