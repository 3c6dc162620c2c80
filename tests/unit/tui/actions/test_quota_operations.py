"""Limits changed in place: numbers without effect are rejected before a request is sent."""

from typing import Any

import pytest

from pulsarbox.tui.actions.operation import Wrong
from pulsarbox.tui.actions.quota_operations import LIMITS

(CHANGE,) = LIMITS


def row(field: str | None, body: Any, policy: str = "") -> dict[str, Any]:
    return {
        "policy": policy,
        "change": {"method": "POST", "path": "/p", "query": {}, "body": body, "field": field, "command": ""},
    }


TOPIC = "persistent://public/default/orders"
RATE = row("dispatchThrottlingRateInMsg", {"dispatchThrottlingRateInMsg": 77, "dispatchThrottlingRateInByte": -1})


@pytest.mark.parametrize("text", ["0", "-7", "x", ""])
def test_a_rate_that_means_nothing_is_refused(text: str) -> None:
    with pytest.raises(Wrong):
        CHANGE.requests(RATE, {"limit": text})


@pytest.mark.parametrize("text", ["1", "-1"])
def test_a_rate_and_no_limit_are_sent(text: str) -> None:
    (request,) = CHANGE.requests(RATE, {"limit": text})
    assert request.body == {"dispatchThrottlingRateInMsg": int(text), "dispatchThrottlingRateInByte": -1}


def test_a_number_of_producers_may_be_zero() -> None:
    (request,) = CHANGE.requests(row(None, 3), {"limit": "0"})
    assert request.body == 0


@pytest.mark.parametrize(
    ("field", "now", "policy", "text", "value"),
    [
        ("limitSize", 1 << 30, "backlog-quota:destination_storage", "1.5G", 3 << 29),
        ("limitTime", 3600, "backlog-quota:message_age", "7d", 604_800),
        ("dispatchThrottlingRateInByte", 1000, "dispatch-rate", "5 MB", 5 << 20),
        ("publishRateInBytes", 1000, "publishRateInBytes", "2K", 2048),
        (None, 3600, "message-ttl", "1h30m", 5400),
        (None, 3600, "message-ttl", "off", 0),
    ],
)
def test_a_limit_may_have_a_unit(field: str | None, now: int, policy: str, text: str, value: int) -> None:
    limit = row(field, {field: now} if field is not None else now, policy)
    (request,) = CHANGE.requests(limit, {"limit": text})
    assert request.body == ({field: value} if field is not None else value)


def test_a_limit_is_shown_with_its_unit() -> None:
    (field,) = CHANGE.fields
    assert callable(field.default)
    assert field.default(row("limitTime", {"limitTime": 5400}, "backlog-quota:message_age")) == "1h30m"
    assert field.default(row(None, 3)) == "3"
    assert field.default(row(None, "off", "brokerDeduplicationEnabled")) == "off"


@pytest.mark.parametrize(
    ("row", "name"),
    [
        ({"scope": "topic", "subject": f"{TOPIC}", "policy": "publish-rate"}, "publish rate of orders"),
        (
            {"scope": "subscription", "subject": f"{TOPIC} b", "topic": TOPIC, "subscription": "b"},
            "dispatch rate of b of orders; a change applies to the whole topic",
        ),
        (
            {"scope": "topic", "subject": "persistent://acme/prod/orders", "change": {"of": "namespace"}},
            "dispatch rate of acme/prod/orders; a change applies to the whole namespace",
        ),
    ],
)
def test_a_limit_is_named_with_its_object(row: dict[str, Any], name: str) -> None:
    assert CHANGE.target({"policy": "subscription-dispatch-rate", "change": {"of": "topic"}} | row) == name


def test_the_command_has_the_short_topic_name() -> None:
    limit = row(None, 3) | {"subject": TOPIC}
    limit["change"]["command"] = f"pulsarbox topic policy {TOPIC} max-producers 3"
    assert CHANGE.words(limit, {"limit": "4"}) == ["topic", "policy", "orders", "max-producers", "4"]


def test_a_unit_that_does_not_fit_is_refused() -> None:
    with pytest.raises(Wrong, match="limit: expected a number of seconds, or a duration such as 90s"):
        CHANGE.requests(row("limitTime", {"limitTime": 5}, "backlog-quota:message_age"), {"limit": "5G"})


def test_the_command_has_the_new_value_as_people_write_it() -> None:
    limit = row("limitTime", {"limitTime": 60}, "backlog-quota:message_age")
    limit["change"]["command"] = "pulsarbox quota set orders --age 1m --then evict"
    assert CHANGE.words(limit, {"limit": "60m"})[3:5] == ["--age", "1h"]
    assert CHANGE.words(limit, {"limit": "1"})[3:5] == ["--age", "1s"]
    assert CHANGE.words(limit, {"limit": "x"})[3:5] == ["--age", "x"]
    assert CHANGE.words(limit, {"limit": "60"})[3:5] == ["--age", "1m"]
    rate = row("dispatchThrottlingRateInMsg", {**RATE["change"]["body"], "ratePeriodInSecond": 1}, "dispatch-rate")
    rate["change"]["command"] = "pulsarbox topic policy orders dispatch-rate 77/s"
    assert CHANGE.words(rate, {"limit": "90"})[-1] == "90/s"
    assert CHANGE.words(rate, {"limit": ""})[-1] == "77/s"
    plain = row(None, 3, "max-producers")
    plain["change"]["command"] = "pulsarbox topic policy orders max-producers 3"
    assert CHANGE.words(plain, {"limit": "12"})[-1] == "12"


@pytest.mark.parametrize("text", ["1.5", "1e3", "0", "-3", "true", "null", "5MB/s"])
def test_a_size_that_the_command_refuses_is_refused(text: str) -> None:
    size = row("limitSize", {"limitSize": 5}, "backlog-quota:destination_storage")
    with pytest.raises(Wrong):
        CHANGE.requests(size, {"limit": text})


@pytest.mark.parametrize(
    ("field", "unit", "text", "value"),
    [
        ("publishThrottlingRateInMsg", "messages/s", "20/s", 20),
        ("publishThrottlingRateInMsg", "messages/s", "20", 20),
        ("publishThrottlingRateInByte", "bytes/s", "5 MB/s", 5 << 20),
    ],
)
def test_a_rate_may_have_its_period(field: str, unit: str, text: str, value: int) -> None:
    limit = {**row(field, {field: 7}, "publish-rate"), "unit": unit}
    (request,) = CHANGE.requests(limit, {"limit": text})
    assert request.body == {field: value}
