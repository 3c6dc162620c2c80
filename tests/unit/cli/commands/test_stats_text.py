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
    lines = stats_text.subscription_lines(parse_topic("orders"), "s", STATS | {"why": why}).lines
    assert lines[-1].endswith("the next is due at 2030-01-01 00:00:00 UTC; for 1.0 min"), lines[-1]


def test_drops_and_chunks_are_shown_where_there_are_some() -> None:
    name = parse_topic("non-persistent://public/default/ticks")
    lines = stats_text.subscription_lines(name, "s", STATS | {"msgDropRate": 2.5, "droppedMessages": 1500}).lines
    assert any(line.split()[1:] == ["2.5", "messages/s,", "1,500", "in", "all"] for line in lines if "dropped" in line)
    assert not any(
        "dropped" in line or "chunks" in line for line in stats_text.subscription_lines(name, "s", STATS).lines
    )
    lines = stats_text.subscription_lines(name, "s", STATS | {"chunkedMessageRate": 3.0}).lines
    assert any(line.startswith("chunks out") and line.endswith("3.0 a second") for line in lines)


@pytest.mark.parametrize("waits", [False, True])
def test_a_producer_that_waits_says_why(*, waits: bool) -> None:
    rates = dict.fromkeys(("msgRateIn", "msgThroughputIn", "msgRateOut", "msgThroughputOut"), 0.0)
    counts = dict.fromkeys(("msgInCounter", "bytesInCounter", "msgOutCounter", "bytesOutCounter", "storageSize"), 0)
    publisher = {"producerName": "p", "msgRateIn": 1.0, "address": "/127.0.0.1:1"}
    why = {"why": {"reason": "unread", "since": 1, "text": "the connection is not read"}} if waits else {}
    stats = rates | counts | {"publishers": [publisher | why], "subscriptions": {}}
    lines = stats_text.topic_lines(parse_topic("orders"), 0, stats).lines
    assert lines[-2].endswith("WHY") is waits
    assert lines[-1].endswith("the connection is not read") is waits


def test_a_backlog_is_in_messages_as_in_lists() -> None:
    def backlog(**stats: Any) -> str:
        lines = stats_text.subscription_lines(parse_topic("orders"), "s", STATS | stats).lines
        return next(line for line in lines if line.startswith("backlog")).split(maxsplit=1)[1]

    assert backlog(msgBacklog=1, backlogMessages=20) == "20 messages in 1 entry, 0 B"
    assert backlog(msgBacklog=1, backlogMessages=1) == "1 message, 0 B"
    assert backlog(msgBacklog=3) == "3 entries, 0 B"  # Apache Pulsar


def test_a_subscription_that_was_never_consumed_has_no_type() -> None:
    lines = stats_text.subscription_lines(parse_topic("orders"), "s", STATS | {"type": "None"}).lines
    assert "type            -, never consumed" in lines
    row = stats_text.subscription_row(parse_topic("orders"), "s", STATS | {"type": "None", "totalMsgExpired": 0,
        "subscriptionProperties": {}, "secondsToDrain": -1})  # fmt: skip
    shown = stats_text.shown_subscription(row)
    assert (shown["type"], shown["seconds_to_drain"], shown["backlog_bytes"]) == (None, "never", "0 B")
    assert row["type"] == "None"  # an interface


@pytest.mark.parametrize(
    ("seconds", "backlog", "out", "acked", "text"),
    [
        (-1, 5, 100.0, 98.0, "now"),  # in flight, as the dashboard shows it
        (-1, 5, 100.0, 0.0, "never"),  # nothing is acknowledged
        (-1, 500, 100.0, 98.0, "never"),
        (90, 500, 100.0, 98.0, "1.5 min"),
        (1, 3, 100.0, 100.0, "now"),
        (0, 0, 100.0, 100.0, None),
        (None, 5, 0.0, 0.0, None),  # Apache Pulsar
    ],
)
def test_a_backlog_in_flight_is_drained_now(
    seconds: int | None, backlog: int, out: float, acked: float, text: str | None
) -> None:
    assert stats_text.drained_in(seconds, backlog, out, acked) == text
    found = STATS | {"backlogMessages": backlog, "secondsToDrain": seconds, "msgRateOut": out, "messageAckRate": acked}
    lines = stats_text.subscription_lines(parse_topic("orders"), "s", found).lines
    facts = [line.split(maxsplit=2)[2] for line in lines if line.startswith("drained in")]
    assert [fact.partition(":")[0].partition(",")[0] for fact in facts] == ([text] if text else [])


def test_tables_of_statistics_fit_the_terminal() -> None:
    rates = dict.fromkeys(("msgRateIn", "msgThroughputIn", "msgRateOut", "msgThroughputOut"), 0.0)
    counts = dict.fromkeys(("msgInCounter", "bytesInCounter", "msgOutCounter", "bytesOutCounter", "storageSize"), 0)
    publisher = {"producerName": "p" * 40, "msgRateIn": 1.0, "address": "/127.0.0.1:12345", "clientVersion": "v" * 20}
    why = {"why": {"reason": "no-consumer", "since": 1, "text": "no consumer"}}
    found = STATS | why | {"totalMsgExpired": 0, "subscriptionProperties": {}}
    stats = rates | counts | {"publishers": [publisher], "subscriptions": {"s" * 40: found}}
    lines, hidden = stats_text.topic_lines(parse_topic("persistent://public/default/orders"), 0, stats, 60)
    assert max(map(len, lines)) <= 60
    assert lines[0].split() == ["topic", "orders"]
    assert any(line.endswith("WHY") for line in lines)
    assert "RATE ACKED" in hidden
    consumer = {"consumerName": "c" * 40, "msgRateOut": 1.0, "availablePermits": 1, "unackedMessages": 2,
                "blockedConsumerOnUnackedMsgs": False, "address": "/127.0.0.1:12345", "clientVersion": "v"}  # fmt: skip
    lines, hidden = stats_text.subscription_lines(parse_topic("orders"), "s", STATS | {"consumers": [consumer]}, 60)
    assert max(map(len, lines)) <= 60
    assert "ADDRESS" in hidden
