"""Statistics as text."""

import time
from typing import Any, Final

import pytest

from pulsarbox.cli import stats_text
from pulsarbox.names import parse_topic

STATS: Final[dict[str, Any]] = {
    **dict.fromkeys(("msgBacklog", "backlogSize", "msgOutCounter", "unackedMessages", "lastAckedTimestamp"), 0),
    "type": "Shared",
    "msgRateOut": 0.0,
    "messageAckRate": 0.0,
    "nonContiguousDeletedMessagesRanges": 0,
    "consumers": [],
}


def test_a_reason_that_names_an_instant_is_not_told_to_have_been_at_that_instant(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(time, "time", lambda: 1000.0)
    why = {"reason": "delayed", "text": "the next is at 2030-01-01 00:00:00 UTC", "since": 940_000}
    lines = stats_text.subscription_lines(parse_topic("orders"), "s", STATS | {"why": why})
    assert lines[-1].endswith("the next is at 2030-01-01 00:00:00 UTC; so for 1.0 min"), lines[-1]
