"""Policies as people write them: parsed to their JSON, and shown in the same form."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarbox.protocol.policies.policy_values import quota_value
from pulsarbox.protocol.policies.shapes import ObjectShape, ValueShape, WholeNumber
from pulsarbox.protocol.policies.table import NAMES, row_of


def retention(minutes: int, size: int) -> dict[str, Any]:
    return {"retentionTimeInMinutes": minutes, "retentionSizeInMB": size}


def rate(messages: int, size: int, period: int = 1) -> dict[str, Any]:
    return {
        "dispatchThrottlingRateInMsg": messages,
        "dispatchThrottlingRateInByte": size,
        "ratePeriodInSecond": period,
    }


def unlimited(kind: str) -> dict[str, Any]:
    return {f"{kind}ThrottlingRateInMsg": -1, f"{kind}ThrottlingRateInByte": -1}


def publish_rate(messages: int, size: int) -> dict[str, Any]:
    return {"publishThrottlingRateInMsg": messages, "publishThrottlingRateInByte": size}


def inactive(mode: str, seconds: int, *, deleted: bool = True) -> dict[str, Any]:
    return {"inactiveTopicDeleteMode": mode, "maxInactiveDurationSeconds": seconds, "deleteWhileInactive": deleted}


def delayed(tick: int, longest: int, *, active: bool = True) -> dict[str, Any]:
    return {"active": active, "tickTime": tick, "maxDeliveryDelayInMillis": longest}


def created(kind: str) -> dict[str, Any]:
    return {"allowAutoTopicCreation": True, "topicType": kind}


def quorums(ensemble: int, write: int, ack: int) -> dict[str, Any]:
    numbers = {"bookkeeperEnsemble": ensemble, "bookkeeperWriteQuorum": write, "bookkeeperAckQuorum": ack}
    return {**numbers, "managedLedgerMaxMarkDeleteRate": 1.0}


EQUAL = [
    ("retention", "7d", retention(10_080, -1)),
    ("retention", "1.5GiB", retention(-1, 1536)),
    ("retention", "1h30m,100MiB", retention(90, 100)),
    ("retention", "off", retention(0, 0)),
    ("retention", "unlimited", retention(-1, -1)),
    ("dispatch-rate", "100/s", rate(100, -1)),
    ("dispatch-rate", "5MiB/s", rate(-1, 5 << 20)),
    ("dispatch-rate", "600/10s,1MiB/10s", rate(600, 1 << 20, 10)),
    ("dispatch-rate", "unlimited", unlimited("dispatch")),
    ("subscription-dispatch-rate", "7/s", rate(7, -1)),
    ("publish-rate", "100/s,5KiB/s", publish_rate(100, 5120)),
    ("publish-rate", "unlimited", publish_rate(-1, -1)),
    ("subscribe-rate", "10/30s", {"subscribeThrottlingRatePerConsumer": 10, "ratePeriodInSecond": 30}),
    ("backlog-quota", "10GiB,hold", quota_value("producer_request_hold", size=10 << 30)),
    ("backlog-quota", "7d,evict", quota_value("consumer_backlog_eviction", seconds=604_800)),
    ("backlog-quota", "unlimited", quota_value("producer_request_hold")),
    ("message-ttl", "1h", 3600),
    ("message-ttl", "off", 0),
    ("subscription-expiration-time", "30d", 43_200),
    ("compaction-threshold", "100MiB", 100 << 20),
    ("max-producers", "3", 3),
    ("max-producers", "off", 0),
    ("deduplication", "on", True),
    ("deduplication-snapshot-interval", "2m", 120),
    ("inactive-topic-policies", "1h", inactive("delete_when_no_subscriptions", 3600)),
    ("inactive-topic-policies", "7d,caught-up", inactive("delete_when_subscriptions_caught_up", 604_800)),
    ("inactive-topic-policies", "off", inactive("delete_when_no_subscriptions", 60, deleted=False)),
    ("delayed-delivery", "on", delayed(1000, 0)),
    ("delayed-delivery", "off,tick=2s,max=10d", delayed(2000, 864_000_000, active=False)),
    ("auto-topic-creation", "partitions=4", created("partitioned") | {"defaultNumPartitions": 4}),
    ("auto-topic-creation", "on", created("non-partitioned")),
    ("auto-topic-creation", "off", {"allowAutoTopicCreation": False}),
    ("auto-subscription-creation", "off", {"allowAutoSubscriptionCreation": False}),
    ("entry-filters", "first,second", {"entryFilterNames": "first,second"}),
    ("entry-filters", "none", {"entryFilterNames": ""}),
]  # fmt: skip


@pytest.mark.parametrize(("policy", "text", "value"), EQUAL)
def test_a_short_form_and_its_value(policy: str, text: str, value: Any) -> None:
    shape = row_of(policy).shape
    assert shape.parse(text) == value
    assert shape.text(value) == text


@pytest.mark.parametrize(
    ("policy", "text", "value"),
    [
        ("retention", " 7d , 10 GB ", retention(10_080, 10_240)),
        ("retention", "100M", retention(-1, 100)),
        ("retention", "100m", retention(100, -1)),
        ("retention", "retentionTimeInMinutes=7d,retentionSizeInMB=unlimited", retention(10_080, -1)),
        ("dispatch-rate", "100 messages/s, 5 MB/second", rate(100, 5 << 20)),
        ("dispatch-rate", "6000/min", rate(6000, -1, 60)),
        ("dispatch-rate", "off", unlimited("dispatch")),
        ("publish-rate", "600/min,5KB/s", publish_rate(10, 5120)),
        ("persistence", "3 / 2 / 2", quorums(3, 2, 2)),
        ("inactive-topic-policies", "1H".lower() + ",NO-SUBSCRIPTIONS", inactive("delete_when_no_subscriptions", 3600)),
        ("auto-subscription-creation", "TRUE", {"allowAutoSubscriptionCreation": True}),
        ("dispatch-rate", "dispatchThrottlingRateInMsg=off", {"dispatchThrottlingRateInMsg": -1}),
        ("message-ttl", "3600", 3600),
        ("message-ttl", "unlimited", 0),
        ("compaction-threshold", "UNLIMITED", 0),
        ("backlog-quota", "off", quota_value("producer_request_hold")),
        ("backlog-quota", "1G,Producer_Exception", quota_value("producer_exception", size=1 << 30)),
        ("inactive-topic-policies", "unlimited", inactive("delete_when_no_subscriptions", 60, deleted=False)),
        ("compaction-threshold", "0", 0),
        ("entry-filters", "First , second", {"entryFilterNames": "First,second"}),
        ("entry-filters", "entryFilterNames=first", {"entryFilterNames": "first"}),
    ],
)
def test_other_ways_to_write_a_value(policy: str, text: str, value: Any) -> None:
    assert row_of(policy).shape.parse(text) == value


def test_the_quorums_are_shown_without_the_usual_rate() -> None:
    shape = row_of("persistence").shape
    value = shape.parse("3/2/2")
    assert [shape.text(value | {"managedLedgerMaxMarkDeleteRate": rate}) for rate in (-1.0, 1.0)] == ["3/2/2"] * 2
    limited = value | {"managedLedgerMaxMarkDeleteRate": 7.5}
    assert shape.parse(shape.text(limited)) == limited


@pytest.mark.parametrize(
    ("policy", "text", "words"),
    [
        ("retention", "", "expected a time, a size, or both"),
        ("retention", "7d/1G", "expected a time, a size, or both"),
        ("retention", "7d,1h", "expected a time, a size, or both"),
        ("retention", "7", "expected a time, a size, or both"),
        ("retention", "90s", "'90s' is not a whole number of minutes"),
        ("retention", "500K", "'500K' is not a whole number of MiB"),
        ("dispatch-rate", "100", "'100' may be messages or bytes: specify 100/s or 100B/s"),
        ("dispatch-rate", "100,5MB/s", "expected messages, bytes or both, such as 100/s"),
        ("publish-rate", "1.5/s", "'1.5/s' is not a whole number: specify 1/s or 2/s"),
        ("publish-rate", ".5 msg/s,5MB/s", "'.5 msg/s' is not a whole number: specify 1/s"),
        ("subscribe-rate", "2.0/10s", "'2.0/10s' is not a whole number: specify 2/10s or 3/10s"),
        ("dispatch-rate", "1/s,2/s", "expected messages, bytes or both"),
        ("dispatch-rate", "1x/s", "expected messages, bytes or both"),
        ("dispatch-rate", ",", "expected messages, bytes or both"),
        ("dispatch-rate", "1/s,5KB/min", "messages and bytes must have the same period"),
        ("publish-rate", "7/2s", "the rate is not a whole number a second"),
        ("publish-rate", "100/m", "not a whole number a second: specify 1/s or 2/s"),
        ("publish-rate", "7/m", "not a whole number a second: specify 1/s"),
        ("publish-rate", "1kb/m", "not a whole number a second: specify 17B/s or 18B/s"),
        ("publish-rate", "7/0s", "the period must be 1 second or more"),
        ("publish-rate", "1k/s", "'1k/s' may be messages or bytes: specify 1000/s or 1KB/s"),
        ("dispatch-rate", "100/s,1.5M/10s", "'1.5M/10s' may be messages or bytes: specify 1500000/10s or 1.5MB/10s"),
        ("publish-rate", "publishThrottlingRateInMsgs=5", "; did you mean publishThrottlingRateInMsg?"),
        ("publish-rate", "publishThrottlingRateInMsg=5,foo=1", "with the names publishThrottlingRateInMsg, "),
        ("publish-rate", "publishThrottlingRateInMsg=5,publishThrottlingRateInMsg=6", "is specified twice"),
        ("retention", "1,5G", "'1,5G'; did you mean 1.5G?"),
        ("message-ttl", "soon", "or off or unlimited, not 'soon'"),
        ("subscribe-rate", "5K/s", "expected a rate such as 10/s or 600/10s"),
        ("backlog-quota", "10G", "expected a size or an age, and one of hold, refuse, evict"),
        ("backlog-quota", "10G,keep", "expected a size or an age, and one of hold, refuse, evict"),
        ("persistence", "3/2", "expected ensemble size, write quorum and ack quorum, such as 3/2/2"),
        ("inactive-topic-policies", "1h,never", "expected a time and optionally one of no-subscriptions, caught-up"),
        ("inactive-topic-policies", "", "expected a time and optionally"),
        ("delayed-delivery", "1s", "expected on or off, optionally with the tick"),
        ("delayed-delivery", "on,tock=1s", "expected on or off, optionally with the tick"),
        ("delayed-delivery", "on,tick=x", "expected a number of milliseconds, or a duration such as 500ms"),
        ("auto-topic-creation", "4", "expected on, off, or partitions=N"),
        ("auto-subscription-creation", "maybe", "expected on or off"),
        ("entry-filters", " , ", "expected comma-separated names, or none"),
        ("entry-filters", "filters=first", "expected comma-separated names, or none"),
        ("message-ttl", "1G", "expected a number of seconds, or a duration such as 90s"),
        ("max-producers", "1.5", "expected a whole number, or off"),
    ],
)
def test_what_is_no_value(policy: str, text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        row_of(policy).shape.parse(text)


NUMBERS = st.one_of(st.integers(-1, 5), st.integers(1, 1 << 31), st.sampled_from([60, 3600, 10_080, 1 << 20, 1 << 30]))


def values_of(shape: ValueShape) -> st.SearchStrategy[Any]:
    if isinstance(shape, ObjectShape):
        members = {name: values_of(each) for name, (each, _) in shape.members.items()}
        return st.fixed_dictionaries({}, optional=members).filter(bool)
    if isinstance(shape, WholeNumber):
        return NUMBERS
    words = getattr(shape, "words", None)
    return st.sampled_from(words) if words else st.booleans() if shape.expected == "on or off" else st.just(None)


NUMERIC = [name for name in NAMES if isinstance(row_of(name).shape, WholeNumber)]
RATES = ("dispatch-rate", "publish-rate", "subscribe-rate", "retention", "delayed-delivery", "inactive-topic-policies")


@given(st.data())
def test_what_is_shown_can_be_typed(data: st.DataObject) -> None:
    shape = row_of(data.draw(st.sampled_from([*NUMERIC, *RATES]))).shape
    value = data.draw(values_of(shape))
    parsed = shape.parse(shape.text(value))
    if not isinstance(shape, ObjectShape):
        assert parsed == value
    else:
        assert shape.text(parsed) == shape.text(value)
