"""Precedence of policy levels, and notification of changes."""

from typing import Any

import pytest

from pulsarbox.broker.policies.kinds.message_ttl import MESSAGE_TTL
from pulsarbox.broker.policies.kinds.retention import DISABLED, RETENTION, Retention
from pulsarbox.broker.policies.policies import TOLD_AT_ONCE
from pulsarbox.broker.policies.precedence import GLOBAL, Level
from pulsarbox.broker.policies.unloaded_topics import AT_ONCE
from pulsarbox.broker.topic.registry import Topics
from pulsarbox.names import TopicName, parse_topic
from pulsarbox.storage.catalog import Row, namespace_key, policies_key
from tests.unit.broker.playbook import Box

TOPIC = parse_topic("public/default/a-partition-1")


def row(minutes: int, megabytes: int) -> dict[str, int]:
    return {"retentionTimeInMinutes": minutes, "retentionSizeInMB": megabytes}


def test_topic_before_namespace_before_broker() -> None:
    box = Box(defaultRetentionTimeInMinutes=2, defaultRetentionSizeInMB=3)
    policies = box.broker.policies
    held = policies.of(TOPIC)
    assert held.found(RETENTION) == (Retention(120_000, 3 << 20), Level.BROKER)
    box.broker.tenants.set_policy("public/default", "retention_policies", row(-1, 0), box.now)
    assert policies.of(TOPIC).found(RETENTION) == (Retention(-1, 0), Level.NAMESPACE)
    policies.set_topic(TOPIC, "retentionPolicies", row(0, 0), box.now)
    assert policies.of(TOPIC).found(RETENTION) == (DISABLED, Level.TOPIC)
    assert policies.of(parse_topic("a-partition-7")).get(RETENTION) == DISABLED
    assert policies.of(parse_topic("b")).get(RETENTION) == Retention(-1, 0)
    policies.set_topic(TOPIC, "retentionPolicies", None, box.now)
    assert policies.of(TOPIC).found(RETENTION) == (Retention(-1, 0), Level.NAMESPACE)


def test_a_topic_in_memory_hears_of_each_change() -> None:
    box = Box()
    policies, heard = box.broker.policies, []
    held = policies.of(TOPIC)
    policies.attach(held)
    held.on_change(lambda now: heard.append(held.get(RETENTION)))
    assert held.get(RETENTION) == DISABLED
    box.broker.tenants.set_policy("public/default", "retention_policies", row(1, -1), box.now)
    policies.set_topic(TOPIC, "retentionPolicies", row(2, -1), box.now)
    policies.set_topic(parse_topic("b"), "retentionPolicies", row(3, -1), box.now)
    policies.set_topic(TOPIC, "retentionPolicies", None, box.now)
    box.broker.tenants.set_policy("public/default", "retention_policies", None, box.now)
    box.broker.configuration.update("defaultRetentionTimeInMinutes", "4", box.now)
    assert [each.time_ms // 60_000 for each in heard] == [1, 2, 1, 0, 4]
    policies.detach(held)
    box.broker.tenants.set_policy("public/default", "retention_policies", row(9, -1), box.now)
    assert len(heard) == 5


@pytest.mark.parametrize("own", [False, True])
def test_rows_are_decoded_once_for_topics_in_memory_and_not_retained_for_others(
    monkeypatch: pytest.MonkeyPatch, *, own: bool
) -> None:
    box, decoded = Box(), list[str]()
    policies, catalog = box.broker.policies, box.broker.catalog
    if own:
        policies.set_topic(TOPIC, "retentionPolicies", row(1, 1), box.now)
    topic_row, namespace_row = policies_key(str(TOPIC.base)), namespace_key(TOPIC.namespace)
    get = catalog.get

    def counted(key: str) -> Any:
        decoded.append(key)
        return get(key)

    def looked_up() -> list[str]:
        """Return the rows decoded to resolve a value that no topic has cached."""
        policies.of_namespaces.clear()
        decoded.clear()
        loaded.subscription_rate("s")
        loaded.found(RETENTION)
        return sorted(set(decoded))

    monkeypatch.setattr(catalog, "get", counted)
    loaded = policies.of(TOPIC)
    assert looked_up() == [namespace_row, topic_row]
    decoded.clear()
    policies.levels(TOPIC.namespace, TOPIC)
    policies.row(topic_row)
    policies.row(namespace_row)
    assert sorted(decoded) == sorted([namespace_row, topic_row] * 2), "topics that are not in memory retain no rows"
    policies.attach(loaded)
    assert looked_up() == [namespace_row, topic_row]
    assert looked_up() == []
    other = policies.of(parse_topic("public/default/b"))
    policies.attach(other)
    policies.detach(loaded)
    assert looked_up() == [topic_row], "the namespace still has a topic in memory"
    policies.detach(other)
    assert looked_up() == [namespace_row, topic_row]
    assert looked_up() == [namespace_row, topic_row]


def test_that_a_topic_in_memory_has_no_policies_is_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    box, decoded = Box(), list[str]()
    policies, get = box.broker.policies, box.broker.catalog.get
    other, loaded = policies.of(parse_topic("public/default/b")), policies.of(TOPIC)
    policies.attach(loaded)
    values = (other.get(RETENTION), other.get(MESSAGE_TTL))

    def looked_up(key: str) -> Row | None:
        decoded.append(key)
        return get(key)

    monkeypatch.setattr(box.broker.catalog, "get", looked_up)
    assert (loaded.get(RETENTION), loaded.get(MESSAGE_TTL)) == values
    assert decoded == [policies_key(str(TOPIC.base))]


def test_a_topic_whose_policies_nobody_asked_for_can_leave_memory() -> None:
    policies = Box().broker.policies
    idle = policies.of(parse_topic("public/idle/t"))
    policies.attach(idle)
    policies.detach(idle)
    assert not idle.attached


@pytest.mark.parametrize("loaded", [10, 300])
def test_the_work_of_a_topics_change_does_not_grow_with_the_topics_in_memory(
    monkeypatch: pytest.MonkeyPatch, loaded: int
) -> None:
    box, seen = Box(), list[TopicName]()
    policies, base = box.broker.policies, vars(TopicName)["base"].fget
    held = [policies.of(parse_topic(f"t{number}-partition-{part}")) for number in range(loaded) for part in range(2)]
    heard = list[str]()
    for each in held:
        policies.attach(each)
        each.on_change(lambda now, each=each: heard.append(each.name.local))  # type: ignore[misc]

    def counted(name: TopicName) -> TopicName:
        seen.append(name)
        found = base(name)
        assert isinstance(found, TopicName)
        return found

    monkeypatch.setattr(TopicName, "base", property(counted))
    policies.set_topic(parse_topic("t7"), "retentionPolicies", row(1, 1), box.now)
    assert heard == ["t7-partition-0", "t7-partition-1"]
    assert len(seen) <= 12
    for each in held:
        policies.detach(each)
    policies.set_topic(parse_topic("t7"), "retentionPolicies", None, box.now)
    assert len(heard) == 2


def test_the_policies_of_a_topic_go_with_it() -> None:
    box = Box()
    topics, policies = box.broker.topics, box.broker.policies
    for name, partitions in (("a", 0), ("b", 2)):
        topic = parse_topic(name)
        if partitions:
            topics.create_partitioned(topic, partitions, box.now)
        else:
            topics.create(topic, box.now)
        policies.set_topic(topic, "retentionPolicies", row(1, 1), box.now)
        assert policies.of(topic).found(RETENTION)[1] is Level.TOPIC
        if partitions:
            for step in box.broker.removal.of_partitioned(topic, force=False):
                step(box.now)
        else:
            topics.delete(topic, box.now, force=False)
        assert policies.of(topic).found(RETENTION)[1] is Level.BROKER


def test_what_is_set_for_all_clusters_stands_behind_what_is_set_for_this_one() -> None:
    box = Box()
    policies = box.broker.policies
    policies.put_topic(TOPIC, {GLOBAL: {"retentionPolicies": row(1, 1)}}, box.now)
    assert policies.of(TOPIC).get(RETENTION) == Retention(60_000, 1 << 20)
    policies.set_topic(TOPIC, "retentionPolicies", row(2, 1), box.now)
    assert policies.of(TOPIC).get(RETENTION) == Retention(120_000, 1 << 20)


def test_without_policies_of_topics_theirs_are_kept_and_do_not_count() -> None:
    box = Box(topicLevelPoliciesEnabled=False)
    policies = box.broker.policies
    policies.set_topic(TOPIC, "retentionPolicies", row(2, 1), box.now)
    assert policies.of(TOPIC).found(RETENTION) == (DISABLED, Level.BROKER)
    assert policies.row(policies_key(str(TOPIC.base)))["retentionPolicies"] == row(2, 1)


def test_ten_thousand_topics_hear_of_a_change_over_turns_and_all_ask_what_is_new() -> None:
    box, told = Box(), [0]
    policies = box.broker.policies
    held = [policies.of(parse_topic(f"public/default/t-{number}")) for number in range(10_000)]
    for each in held:
        policies.attach(each)
        each.on_change(lambda now: told.append(told.pop() + 1))
        assert each.get(RETENTION) == DISABLED
    box.broker.tenants.set_policy("public/default", "retention_policies", row(1, -1), box.now)
    assert all(each.get(RETENTION) == Retention(60_000, -1) for each in held)
    assert told == [TOLD_AT_ONCE]
    box.broker.tenants.set_policy("public/default", "retention_policies", row(2, -1), box.now)
    policies.detach(held.pop())
    turns = 0
    while policies.telling:
        before = told[0]
        box.broker.on_timer(box.now)
        assert told[0] - before <= TOLD_AT_ONCE
        turns += 1
    assert told[0] == 9_999 + TOLD_AT_ONCE, "those that had heard of the first change hear of the second as well"
    assert turns >= 1000


def test_topics_that_are_not_in_memory_are_walked_over_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = list[str]()
    monkeypatch.setattr(Topics, "apply_policies", lambda topics, name, now: looked.append(name))
    box = Box()
    walks, names = box.broker.walks, [f"persistent://public/default/t-{number:04}" for number in range(1200)]
    for name in names:
        box.broker.topics.create(parse_topic(name), box.now)
    other = "persistent://public/other/t"
    box.broker.tenants.create_namespace("public/other", None)
    box.broker.topics.create(parse_topic(other), box.now)
    box.turn()
    box.broker.tenants.set_policy("public/default", "message_ttl_in_seconds", 5, box.now)
    box.broker.tenants.set_policy("public/default", "schema_validation_enforced", True, box.now)
    while walks.running:
        before = len(looked)
        box.broker.on_timer(box.now)
        assert len(looked) - before <= AT_ONCE
    assert looked == names, "once, for one policy is none of those by which anything happens"
    looked.clear()
    box.broker.policies.set_topic(parse_topic(names[7]), "messageTTLInSeconds", 3, box.now)
    while box.broker.walks.running:
        box.broker.on_timer(box.now)
    assert names[7] in looked
    assert len(looked) == 1
