"""Every policy, level and flag of the table has a test of its effect, as listed here."""

import ast
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from pulsarbox.config.settings import settings_by_name
from pulsarbox.protocol.policies.shapes import ObjectShape
from pulsarbox.protocol.policies.table import NAMES, row_of
from tests.e2e.admin.test_policy_levels import CASES
from tests.simulation.actors.governor import STEPS
from tests.simulation.rules.checkers import CHECKERS
from tests.tools.generate_policies import DOCUMENT

TESTS: Final = Path(__file__).parents[1]


class Proof(NamedTuple):
    """Tests of the effect of a policy, as ``file::function`` below ``tests``."""

    core: str
    """A test of the core alone, in virtual time."""
    rules: tuple[str, ...] = ()
    """Simulation rules that verify the policy, if operators of the simulation set it."""
    e2e: tuple[str, ...] = ()
    """Tests with the official client, in addition to ``e2e/admin/test_policy_levels.py``."""


_ADMISSION: Final = "unit/broker/topic/test_admission_policies.py"
_THROTTLING: Final = "e2e/limits/test_throttling.py"
_KEPT: Final = "e2e/process/test_kept.py"
_DISPATCH: Final = "unit/broker/limits/test_dispatch_throttle.py"
_STRATEGY: Final = "unit/broker/policies/kinds/test_schema.py::test_the_strategy_and_who_sets_it"

PROOFS: Final = {
    "auto-subscription-creation": Proof(f"{_ADMISSION}::test_subscriptions_that_clients_make", ("admitted", "levels")),
    "auto-topic-creation": Proof(
        f"{_ADMISSION}::test_topics_that_clients_make",
        e2e=(
            "e2e/admin/test_policies.py::test_topics_that_clients_make_have_as_many_partitions_as_the_namespace_says",
        ),
    ),
    "backlog-quota": Proof(
        "unit/broker/policies/kinds/test_backlog_quota.py::test_both_kinds_hold_at_once",
        ("quotas", "reason", "one-reply", "levels"),
        (
            f"{_KEPT}::test_a_held_producer_waits_and_goes_on_when_the_backlog_falls",
            f"{_KEPT}::test_the_oldest_messages_go_where_the_policy_evicts",
            f"{_KEPT}::test_a_backlog_that_is_too_old",
        ),
    ),
    "compaction-threshold": Proof(
        "unit/broker/compaction/test_topic_compaction.py::test_a_threshold_compacts_by_itself_and_not_too_often"
    ),
    "compression-at-rest": Proof(
        "unit/broker/test_compression_policy.py::test_topic_before_namespace_before_broker",
        e2e=("e2e/process/test_compression_at_rest.py::test_what_is_sealed_is_compressed_and_read_as_it_came",),
    ),
    "deduplication": Proof(
        "unit/broker/topic/test_admission_policies.py::test_deduplication_of_a_topic_or_a_namespace",
        ("once", "levels"),
    ),
    "delayed-delivery": Proof(
        "unit/broker/dispatch/test_delayed.py::test_turned_off_they_come_at_once_and_turned_on_again_they_do_not"
    ),
    "dispatch-rate": Proof(
        f"{_DISPATCH}::test_precedence_picks_the_value_of_one_level",
        ("rates", "liveness", "levels"),
        (f"{_THROTTLING}::test_a_topic_gives_so_many_a_period", f"{_THROTTLING}::test_bytes_of_a_namespace"),
    ),
    "encryption-required": Proof(
        f"{_ADMISSION}::test_encryption",
        e2e=("e2e/admin/test_policy_levels.py::test_only_encrypted_messages_are_taken",),
    ),
    "inactive-topic-policies": Proof(
        "unit/broker/policies/kinds/test_inactive_topic.py::test_levels_and_changes_in_memory_or_not",
        e2e=(f"{_KEPT}::test_topics_that_nobody_uses_go_after_a_minute_and_used_ones_stay",),
    ),
    "is-allow-auto-update-schema": Proof(
        "unit/broker/policies/kinds/test_schema.py::test_clients_that_may_bring_no_schemas"
    ),
    "max-consumers": Proof(f"{_ADMISSION}::test_consumers_of_a_topic", ("admitted", "levels")),
    "max-consumers-per-subscription": Proof(f"{_ADMISSION}::test_consumers_of_a_subscription", ("admitted", "levels")),
    "max-message-size": Proof(f"{_ADMISSION}::test_the_size_of_messages"),
    "max-producers": Proof(f"{_ADMISSION}::test_producers", ("admitted", "levels")),
    "max-subscriptions-per-topic": Proof(f"{_ADMISSION}::test_subscriptions", ("admitted", "levels")),
    "max-topics-per-namespace": Proof(f"{_ADMISSION}::test_topics_of_a_namespace"),
    "max-unacked-messages-per-consumer": Proof(
        f"{_ADMISSION}::test_what_a_consumer_may_hold_follows_its_policy_at_once", ("unacked-limits", "levels")
    ),
    "max-unacked-messages-per-subscription": Proof(
        f"{_ADMISSION}::test_what_a_subscription_may_hold_follows_its_policy_at_once", ("unacked-limits", "levels")
    ),
    "message-ttl": Proof(
        "unit/broker/policies/kinds/test_message_ttl.py::test_topic_before_namespace_before_broker_and_0_is_off",
        ("expired", "reason", "levels"),
        (f"{_KEPT}::test_messages_expire_after_ten_days",),
    ),
    "publish-rate": Proof(
        "unit/broker/limits/test_publish_throttle.py::test_precedence_and_changes_hold_at_once",
        ("rates", "levels"),
        (f"{_THROTTLING}::test_receipts_of_one_producer_wait_and_nobody_elses",),
    ),
    "resource-group": Proof(
        f"{_DISPATCH}::test_a_resource_group_is_shared_by_the_topics_of_its_namespaces",
        ("rates", "levels"),
        (f"{_THROTTLING}::test_namespaces_of_a_group_share_its_rates",),
    ),
    "retention": Proof(
        "unit/broker/policies/kinds/test_retention.py::test_the_rows_of_the_table",
        ("retained", "trimmed", "nothing-lost", "levels"),
        (
            f"{_KEPT}::test_what_is_acknowledged_is_kept_for_three_hours_and_its_disk_comes_back",
            f"{_KEPT}::test_a_size_limit_keeps_the_newest_and_readers_hold_nothing",
        ),
    ),
    "schema-validation-enforced": Proof(
        "unit/broker/policies/kinds/test_schema.py::test_producers_that_must_bring_one"
    ),
    "subscribe-rate": Proof(
        "unit/broker/limits/test_subscribe_throttle.py::test_of_a_topic_and_changed_while_it_is_used",
        ("admitted", "levels"),
        (f"{_THROTTLING}::test_subscribing_too_often_is_refused",),
    ),
    "subscription-auth-mode": Proof(
        "unit/broker/security/test_command_rules.py::test_a_subscription_kept_for_others_and_names_that_begin_with_the_role"
    ),
    "subscription-dispatch-rate": Proof(
        f"{_DISPATCH}::test_limits_of_all_levels_hold_at_once",
        ("rates", "liveness", "levels"),
        (f"{_THROTTLING}::test_a_topics_rate_is_shared_and_a_subscriptions_is_its_own",),
    ),
    "subscription-expiration-time": Proof(
        "unit/broker/policies/kinds/test_inactive_topic.py::test_a_subscription_without_consumers_goes_at_its_time_with_what_it_held",
        ("expired", "reason", "levels"),
        (f"{_KEPT}::test_subscriptions_that_nobody_uses_expire",),
    ),
    "schema-auto-update-compatibility-strategy": Proof(_STRATEGY),
    "schema-compatibility-strategy": Proof(
        _STRATEGY, e2e=("e2e/messaging/test_schemas.py::test_versions_of_a_record",)
    ),
    "subscription-types-enabled": Proof(f"{_ADMISSION}::test_types_of_subscriptions", ("admitted", "levels")),
}
"""Tests of each policy that the broker enforces. Other tests prove that the remaining policies are stored."""

FLAGS: Final = {
    "dispatchThrottlingRateInMsg": f"{_THROTTLING}::test_a_topic_gives_so_many_a_period",
    "dispatchThrottlingRateInByte": f"{_THROTTLING}::test_bytes_of_a_namespace",
    "relativeToPublishRate": "e2e/admin/test_policy_levels.py::test_what_is_published_comes_on_top_of_a_relative_rate",
    "ratePeriodInSecond": f"{_DISPATCH}::test_a_period_of_a_minute",
    "publishThrottlingRateInMsg": f"{_THROTTLING}::test_receipts_of_one_producer_wait_and_nobody_elses",
    "publishThrottlingRateInByte": "unit/broker/limits/test_publish_throttle.py::test_bytes_and_batches",
    "subscribeThrottlingRatePerConsumer": f"{_THROTTLING}::test_subscribing_too_often_is_refused",
    "retentionTimeInMinutes": f"{_KEPT}::test_what_is_acknowledged_is_kept_for_three_hours_and_its_disk_comes_back",
    "retentionSizeInMB": f"{_KEPT}::test_a_size_limit_keeps_the_newest_and_readers_hold_nothing",
    "limit": "unit/broker/policies/kinds/test_backlog_quota.py::"
    "test_each_kind_has_its_own_level_and_the_old_name_of_the_limit_is_read",
    "limitSize": f"{_KEPT}::test_a_producer_gets_an_exception_and_can_come_back_later",
    "limitTime": f"{_KEPT}::test_a_backlog_that_is_too_old",
    "policy": f"{_KEPT}::test_the_oldest_messages_go_where_the_policy_evicts",
    "excludeDelayed": f"{_KEPT}::test_a_quota_by_age_that_leaves_out_what_is_delayed",
    "inactiveTopicDeleteMode": "unit/broker/policies/kinds/test_inactive_topic.py::"
    "test_caught_up_topics_go_with_their_subscriptions_but_never_with_a_backlog",
    "maxInactiveDurationSeconds": "e2e/admin/test_policy_levels.py::test_a_policy_holds_at_this_level",
    "deleteWhileInactive": (
        "unit/broker/policies/kinds/test_inactive_topic.py::test_levels_and_changes_in_memory_or_not"
    ),
    "tickTime": "unit/broker/dispatch/test_delayed.py::test_another_tick_holds_at_once",
    "active": "unit/broker/dispatch/test_delayed.py::test_turned_off_they_come_at_once_and_turned_on_again_they_do_not",
    "maxDeliveryDelayInMillis": "e2e/admin/test_policy_levels.py::test_a_delay_beyond_the_longest_is_refused",
    "allowAutoTopicCreation": f"{_ADMISSION}::test_topics_that_clients_make",
    "topicType": "e2e/admin/test_policies.py::"
    "test_topics_that_clients_make_have_as_many_partitions_as_the_namespace_says",
    "defaultNumPartitions": "e2e/admin/test_policies.py::"
    "test_topics_that_clients_make_have_as_many_partitions_as_the_namespace_says",
    "allowAutoSubscriptionCreation": f"{_ADMISSION}::test_subscriptions_that_clients_make",
}
"""Tests of each field of a composite policy value."""

SWITCHES: Final = {
    "preciseDispatcherFlowControl": f"{_THROTTLING}::test_batches_counted_precisely_by_read_and_by_entry",
    "dispatchThrottlingOnBatchMessageEnabled": f"{_THROTTLING}::test_batches_counted_precisely_by_read_and_by_entry",
    "dispatchThrottlingOnNonBacklogConsumerEnabled": "e2e/admin/test_policy_levels.py::"
    "test_who_is_caught_up_is_not_limited_where_the_broker_says_so",
    "dispatchThrottlingRateRelativeToPublishRate": f"{_DISPATCH}::"
    "test_what_is_published_comes_on_top_where_the_rate_is_relative",
    "dispatchThrottlingRateInMsg": f"{_DISPATCH}::test_each_setting_holds_for_each_type",
    "brokerPublisherThrottlingMaxMessageRate": "unit/broker/limits/test_publish_throttle.py::"
    "test_receipts_leave_as_fast_as_the_rate",
    "backlogQuotaCheckEnabled": "unit/broker/policies/kinds/test_backlog_quota.py::test_quotas_that_are_not_enforced",
    "topicLevelPoliciesEnabled": "unit/broker/policies/test_policies.py::"
    "test_without_policies_of_topics_theirs_are_kept_and_do_not_count",
}
"""Broker settings that are not policies themselves but affect how policies apply."""

ELSEWHERE: Final = {
    **dict.fromkeys(
        (("compression-at-rest", level) for level in ("topic", "namespace", "broker")),
        "e2e/process/test_compression_at_rest.py::test_each_level_compresses",
    ),
    ("deduplication", "broker"): "e2e/messaging/test_deduplication.py::test_a_client_that_stays_goes_on_where_it_was",
    ("encryption-required", "namespace"): "e2e/admin/test_policy_levels.py::test_only_encrypted_messages_are_taken",
    ("encryption-required", "broker"): "e2e/admin/test_policy_levels.py::test_only_encrypted_messages_are_taken",
    ("subscription-auth-mode", "namespace"): "e2e/security/test_authorization.py::"
    "test_subscriptions_whose_names_have_to_begin_with_the_role",
    ("resource-group", "namespace"): f"{_THROTTLING}::test_namespaces_of_a_group_share_its_rates",
    (
        "max-message-size",
        "broker",
    ): "e2e/admin/test_policy_levels.py::test_clients_are_told_the_largest_message_of_the_box",
}
"""Levels without a probe in ``test_policy_levels``, and their tests."""

GOES_BY: Final = sorted(name for name in NAMES if not row_of(name).stored_only)
STORED: Final = sorted(set(NAMES) - set(GOES_BY))


@cache
def functions(file: str) -> frozenset[str]:
    """Return the tests in a file."""
    tree = ast.parse((TESTS / file).read_text("utf-8"))
    return frozenset(each.name for each in tree.body if isinstance(each, ast.FunctionDef))


def is_there(test: str) -> bool:
    """Return whether a test exists."""
    file, _, name = test.partition("::")
    return name in functions(file)


def test_every_policy_that_the_broker_goes_by_is_in_the_list() -> None:
    assert sorted(PROOFS) == GOES_BY


@pytest.mark.parametrize("name", GOES_BY)
def test_the_tests_that_show_a_policy_exist(name: str) -> None:
    proof = PROOFS[name]
    missing = [test for test in (proof.core, *proof.e2e) if not is_there(test)]
    assert not missing


@pytest.mark.parametrize("name", GOES_BY)
def test_each_level_is_shown_with_the_official_client(name: str) -> None:
    row = row_of(name)
    has = {"topic": row.topic is not None, "namespace": row.namespace is not None, "broker": bool(row.settings)}
    shown = {str(case.id) for case in CASES}
    proof = PROOFS[name]
    missing = [
        level
        for level, there in has.items()
        if there and f"{name}-{level}" not in shown and not is_there(ELSEWHERE.get((name, level), "::"))
    ]
    assert not missing, f"no test shows {name} at the level of {missing}: {proof.e2e}"


def test_operators_of_the_simulation_set_what_its_rules_judge() -> None:
    rules = {checker.rule for checker in CHECKERS}
    judged = {name: set(proof.rules) for name, proof in PROOFS.items() if proof.rules}
    assert {step.policy.name.partition(":")[0] for step in STEPS} == set(judged)
    assert all(found <= rules and "levels" in found for found in judged.values())


@pytest.mark.parametrize("name", GOES_BY)
def test_each_part_of_a_value_is_shown(name: str) -> None:
    shape = row_of(name).shape
    parts = shape.members if isinstance(shape, ObjectShape) else {}
    assert [part for part in parts if not is_there(FLAGS.get(part, "::"))] == []


@pytest.mark.parametrize("setting", SWITCHES)
def test_each_switch_is_shown(setting: str) -> None:
    assert setting in settings_by_name()
    assert is_there(SWITCHES[setting])


@pytest.mark.parametrize("name", STORED)
def test_what_is_only_kept_is_named_with_the_reason(name: str) -> None:
    kept = DOCUMENT.read_text("utf-8").partition("Stored and shown, but without effect:")[2]
    assert f"| `{name}` | {row_of(name).stored_only} |" in kept
