"""Statistics formatted as text."""

import time
from typing import Any, Final

import pytest

from pulsarbox.cli.commands import stats_text
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
    why = {"reason": "delayed", "text": "the next is due at 2030-01-01 00:00:00 UTC", "since": 940_000}
    lines = stats_text.subscription_lines(parse_topic("orders"), "s", STATS | {"why": why})
    assert lines[-1].endswith("the next is due at 2030-01-01 00:00:00 UTC; for 1.0 min"), lines[-1]


def test_drops_and_chunks_are_shown_where_there_are_some() -> None:
    name = parse_topic("non-persistent://public/default/ticks")
    lines = stats_text.subscription_lines(name, "s", STATS | {"msgDropRate": 2.5, "droppedMessages": 1500})
    assert any(line.split()[1:] == ["2.5", "messages/s,", "1,500", "in", "all"] for line in lines if "dropped" in line)
    assert not any("dropped" in line or "chunks" in line for line in stats_text.subscription_lines(name, "s", STATS))
    lines = stats_text.subscription_lines(name, "s", STATS | {"chunkedMessageRate": 3.0})
    assert any(line.startswith("chunks out") and line.endswith("3.0 a second") for line in lines)


@pytest.mark.parametrize("waits", [False, True])
def test_a_producer_that_waits_says_why(*, waits: bool) -> None:
    rates = dict.fromkeys(("msgRateIn", "msgThroughputIn", "msgRateOut", "msgThroughputOut"), 0.0)
    counts = dict.fromkeys(("msgInCounter", "bytesInCounter", "msgOutCounter", "bytesOutCounter", "storageSize"), 0)
    publisher = {"producerName": "p", "msgRateIn": 1.0, "address": "/127.0.0.1:1"}
    why = {"why": {"reason": "unread", "since": 1, "text": "the connection is not read"}} if waits else {}
    stats = rates | counts | {"publishers": [publisher | why], "subscriptions": {}}
    lines = stats_text.topic_lines(parse_topic("orders"), 0, stats)
    assert lines[-2].endswith("WHY") is waits
    assert lines[-1].endswith("the connection is not read") is waits
