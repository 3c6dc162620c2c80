"""Parsing of policy values: defaults, and rejection of numbers without meaning."""

import json
from typing import Any

import pytest

from pulsarbox.cli.commands.policies import _quotas, _value
from pulsarbox.cli.common.exits import Misused
from pulsarbox.protocol.policies.offload_shape import OFFLOAD
from pulsarbox.protocol.policies.policy_values import meaningful, problem
from pulsarbox.protocol.policies.table import NAMES, row_of
from pulsarbox.protocol.policies.written_value import shown

RATE = {"dispatchThrottlingRateInMsg": 100, "dispatchThrottlingRateInByte": -1, "ratePeriodInSecond": 1}


@pytest.mark.parametrize(
    ("policy", "text", "value"),
    [
        ("dispatch-rate", "dispatchThrottlingRateInMsg=100", RATE),
        ("subscription-dispatch-rate", '{"dispatchThrottlingRateInMsg": 100}', RATE),
        (
            "dispatch-rate",
            "dispatchThrottlingRateInByte=7,ratePeriodInSecond=5",
            {"dispatchThrottlingRateInMsg": -1, "dispatchThrottlingRateInByte": 7, "ratePeriodInSecond": 5},
        ),
        ("publish-rate", "publishThrottlingRateInMsg=-1", {"publishThrottlingRateInMsg": -1}),
        (
            "retention",
            "retentionTimeInMinutes=60,retentionSizeInMB=-1",
            {"retentionTimeInMinutes": 60, "retentionSizeInMB": -1},
        ),
        ("message-ttl", "0", 0),
        ("max-producers", "0", 0),
        ("encryption-required", "false", False),
        ("schema-compatibility-strategy", "undefined", "UNDEFINED"),
    ],
)
def test_what_means_something_is_taken(policy: str, text: str, value: Any) -> None:
    assert _value(row_of(policy), text) == value


@pytest.mark.parametrize(
    ("policy", "text", "words"),
    [
        ("dispatch-rate", "dispatchThrottlingRateInMsg=0", "a rate must be 1 or more, or -1 for no limit, not 0"),
        ("dispatch-rate", "dispatchThrottlingRateInByte=-7", "a rate must be 1 or more, or -1 for no limit, not -7"),
        ("dispatch-rate", "ratePeriodInSecond=0", "a period in seconds must be 1 or more, not 0"),
        ("subscription-dispatch-rate", '{"ratePeriodInSecond": -1}', "a period in seconds must be 1 or more, not -1"),
        ("publish-rate", "publishThrottlingRateInMsg=0", "publishThrottlingRateInMsg: a rate must be 1 or more"),
        ("publish-rate", "publishThrottlingRateInByte=-2", "publishThrottlingRateInByte: a rate must be 1 or more"),
        ("subscribe-rate", "subscribeThrottlingRatePerConsumer=0", "a rate must be 1 or more, or -1 for no limit"),
        ("subscribe-rate", "ratePeriodInSecond=0", "a period in seconds must be 1 or more"),
        ("inactive-topic-policies", "maxInactiveDurationSeconds=0", "a time in seconds must be 1 or more, not 0"),
        ("delayed-delivery", "active=true,tickTime=-1", "a time in milliseconds must be 1 or more, not -1"),
        ("delayed-delivery", "active=true,maxDeliveryDelayInMillis=-5", "a time in milliseconds must be 0 or more"),
        ("persistence", "managedLedgerMaxMarkDeleteRate=-7", "a rate must be 0 or more, or -1 for no limit"),
        ("retention", "retentionTimeInMinutes=60", "retentionSizeInMB is missing: specify retentionTimeInMinutes and"),
        ("retention", "retentionTimeInMinutes=-2,retentionSizeInMB=1", "a time in minutes must be 0 or more, or -1"),
        ("message-ttl", "-1", "expected 0 or more, not -1; to remove the policy, use --unset"),
        ("max-producers", "-3", "expected 0 or more, not -3"),
        ("compaction-threshold", "-1", "expected 0 or more, not -1"),
        ("subscription-expiration-time", "-1", "expected 0 or more, not -1"),
        ("max-message-size", "x", "expected a number of bytes, or a size such as 500K, 100M or 1.5G, or off"),
        ("max-producers", "x", "expected a whole number, or off or unlimited; or default, not 'x'"),
        ("publish-rate", '{"foo": 1}', "unknown member 'foo': expected publishThrottlingRateInMsg, "),
        ("publish-rate", '{"publishThrottlingRateInMsgs": 1}', "; did you mean publishThrottlingRateInMsg?"),
        ("publish-rate", "{}", "the object is empty; to remove the policy, specify default"),
        ("publish-rate", "{bad", "invalid JSON at character 2: expecting property name"),
        ("retention", '{"retentionTimeInMinutes": null}', "the object is empty"),
        ("resource-group", "", "the value is empty; to remove the policy, specify default"),
        ("resource-group", '""', "the value is empty"),
        ("max-producers", "null", "expected a whole number"),
    ],
)
def test_what_means_nothing_is_refused(policy: str, text: str, words: str) -> None:
    with pytest.raises(Misused) as refused:
        _value(row_of(policy), text)
    assert str(refused.value).startswith(f"{policy}: ")
    assert words in str(refused.value)


def test_the_value_of_a_broker_can_be_typed_as_it_is_shown() -> None:
    stands = {
        "dispatchThrottlingRateInMsg": 77,
        "dispatchThrottlingRateInByte": 0,
        "relativeToPublishRate": False,
        "ratePeriodInSecond": 0,
    }
    shape = row_of("dispatch-rate").shape
    assert shape.text(meaningful(stands)) == "77/s"
    relative = meaningful(stands | {"relativeToPublishRate": True})
    assert shape.text(relative) == (
        "dispatchThrottlingRateInMsg=77,dispatchThrottlingRateInByte=unlimited,relativeToPublishRate=on,ratePeriodInSecond=1s"
    )
    assert _value(row_of("dispatch-rate"), shape.text(relative)) == relative
    assert [problem(name, value) for name, value in meaningful(stands).items()] == [""] * 4


@pytest.mark.parametrize(
    ("policy", "value"),
    [
        ("replication-clusters", ["a", "b"]),
        ("entry-filters", {"entryFilterNames": "a,b"}),
        ("offload-policies", OFFLOAD.read({"managedLedgerExtraConfigurations": {"a": "1,2", "b": "="}}, "")),
    ],
)
def test_what_contains_commas_can_be_typed_as_it_is_shown(policy: str, value: Any) -> None:
    assert _value(row_of(policy), row_of(policy).shape.text(value)) == value


@pytest.mark.parametrize("literal", ["default", "{", '"'])
def test_a_text_that_looks_like_something_else_is_shown_and_typed_as_json(literal: str) -> None:
    shape = row_of("anti-affinity-group").shape
    assert shown(shape, literal) == json.dumps(literal)
    assert _value(row_of("anti-affinity-group"), shown(shape, literal)) == literal
    assert shown(shape, "usual") == "usual"


def test_a_map_is_typed_with_semicolons() -> None:
    text = "managedLedgerOffloadDriver=filesystem,managedLedgerExtraConfigurations=a=1;b=2"
    assert _value(row_of("offload-policies"), text) == {
        "managedLedgerOffloadDriver": "filesystem",
        "managedLedgerExtraConfigurations": {"a": "1", "b": "2"},
    }
    with pytest.raises(Misused, match="expected semicolon-separated name=value pairs, not 'a'"):
        _value(row_of("offload-policies"), "managedLedgerExtraConfigurations=a")


SIZE, AGE = "destination_storage", "message_age"


@pytest.mark.parametrize(
    ("policy", "text", "limits"),
    [
        ("backlog-quota", "1G,hold", {SIZE: (1 << 30, -1)}),
        ("backlog-quota", "7d,evict", {AGE: (-1, 604800)}),
        ("backlog-quota", "limit=1K,limitTime=1h,policy=producer_exception", {SIZE: (1024, -1), AGE: (-1, 3600)}),
        ("backlog-quota", "unlimited", {SIZE: (-1, -1), AGE: (-1, -1)}),
        (f"backlog-quota:{SIZE}", "unlimited", {SIZE: (-1, -1)}),
        (f"backlog-quota:{AGE}", "7d,evict", {AGE: (-1, 604800)}),
    ],
)
def test_a_quota_is_set_for_each_type_that_it_limits(
    policy: str, text: str, limits: dict[str, tuple[int, int]]
) -> None:
    bodies = _quotas(policy, _value(row_of(policy), text))
    assert {kind: (body["limitSize"], body["limitTime"]) for kind, body in bodies.items()} == limits


def test_a_quota_of_another_type_is_refused() -> None:
    with pytest.raises(Misused, match="backlog-quota:message_age: expected an age and an action, such as 7d,evict"):
        _quotas(f"backlog-quota:{AGE}", _value(row_of(f"backlog-quota:{AGE}"), "1G,hold"))


@pytest.mark.parametrize("name", NAMES)
def test_examples_of_a_policy_are_accepted(name: str) -> None:
    row = row_of(name)
    for text in row.shape.examples:
        assert row.shape.read(row.shape.parse(text), name) is not None
