"""Limits changed in place: numbers without effect are rejected before a request is sent."""

from typing import Any

import pytest

from pulsarbox.tui.actions.operation import Wrong
from pulsarbox.tui.actions.quota_operations import LIMITS

(CHANGE,) = LIMITS


def row(field: str | None, body: Any) -> dict[str, Any]:
    return {"change": {"method": "POST", "path": "/p", "query": {}, "body": body, "field": field, "command": ""}}


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
