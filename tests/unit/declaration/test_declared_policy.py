"""Declared values of policies in the forms that people write, and those of an export."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarbox.declaration.declared_policy import (
    ROWS_BY_NAME,
    is_equal,
    level_of,
    policy_value,
    quota_types_of,
    written_value,
)
from pulsarbox.protocol.policies.policy_values import QUOTA_AGE, QUOTA_SIZE, QUOTA_TYPES, quota_value
from tests.unit.protocol.policies.test_short_forms import EQUAL, values_of

SIZE, AGE = f"backlog-quota:{QUOTA_SIZE}", f"backlog-quota:{QUOTA_AGE}"


def declared(name: str, value: Any) -> Any:
    row = ROWS_BY_NAME[name]
    place = level_of(row, topic=row.topic is not None)
    assert place is not None
    return policy_value(row, place, value)


def written(name: str, value: Any) -> Any:
    row = ROWS_BY_NAME[name]
    place = level_of(row, topic=row.topic is not None)
    assert place is not None
    return written_value(row, place, value)


@pytest.mark.parametrize(
    ("name", "value", "stored"),
    [
        (SIZE, {"limitSize": "1.5G", "policy": "hold"}, quota_value("producer_request_hold", size=3 << 29, seconds=0)),
        (SIZE, "1.5G,hold", quota_value("producer_request_hold", size=3 << 29)),
        (AGE, {"limitTime": "1h", "policy": "evict"}, quota_value("consumer_backlog_eviction", size=0, seconds=3600)),
        (
            "retention",
            {"retentionTimeInMinutes": "7d", "retentionSizeInMB": "unlimited"},
            {"retentionTimeInMinutes": 10_080, "retentionSizeInMB": -1},
        ),
        ("message-ttl", "unlimited", 0),
        ("anti-affinity-group", "default", None),
        ("anti-affinity-group", '"default"', "default"),
        ("compression-at-rest", "default", None),
    ],
)  # fmt: skip
def test_a_member_may_be_written_as_people_write_it(name: str, value: Any, stored: Any) -> None:
    assert declared(name, value) == stored


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        (SIZE, "7d,evict", "expected a size, such as 10G,hold"),
        (AGE, "1G,hold", "expected an age, such as 7d,evict"),
        (SIZE, {"limitSize": "1,5G", "policy": "hold"}, "limitSize: expected a number of bytes.*did you mean 1.5G"),
        (SIZE, {"limitSize": "1G", "policy": "keep"}, "policy: expected one of hold, refuse, evict"),
        ("publish-rate", {}, "the object is empty"),
        ("publish-rate", "1k/s", "may be messages or bytes"),
    ],
)
def test_what_is_no_value(name: str, value: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        declared(name, value)


def test_a_quota_is_of_the_type_that_it_limits() -> None:
    assert quota_types_of("1.5G,hold") == (QUOTA_SIZE,)
    assert quota_types_of("7d,evict") == (QUOTA_AGE,)
    assert quota_types_of("unlimited") == quota_types_of("default") == QUOTA_TYPES


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("retention", {"retentionTimeInMinutes": 11_520, "retentionSizeInMB": -1}, "8d"),
        ("message-ttl", 604_800, "7d"),
        ("message-ttl", 7, "7s"),
        ("max-producers", 5, 5),
        ("deduplication", True, True),
        (SIZE, quota_value("producer_request_hold", size=3 << 29), "1.5GiB,hold"),
        ("publish-rate", {"publishThrottlingRateInMsg": 100, "publishThrottlingRateInByte": -1}, "100/s"),
        ("anti-affinity-group", "default", '"default"'),
        ("anti-affinity-group", "usual", "usual"),
    ],
)
def test_an_export_has_values_as_people_write_them(name: str, value: Any, text: Any) -> None:
    assert written(name, value) == text


@given(st.data())
def test_an_export_is_read_back_to_the_same(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted({name for name, _, _ in EQUAL if name in ROWS_BY_NAME} | {SIZE, AGE})))
    given_value = data.draw(values_of(ROWS_BY_NAME[name].shape))
    try:
        stored = declared(name, given_value)
    except ValueError:
        return
    if stored is not None:
        assert is_equal(declared(name, written(name, stored)), stored)
