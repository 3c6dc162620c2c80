"""Statistics of topics and subscriptions as text."""

import time
from typing import Any, Final

from pulsarbox.cli.commands.unsubscribed_text import kept_words
from pulsarbox.cli.common.backlog_units import BacklogColumns, backlog_columns, backlog_fields
from pulsarbox.cli.common.output import Row
from pulsarbox.cli.common.progress import messages
from pulsarbox.cli.common.terminal_text import clean, counted, megabytes
from pulsarbox.cli.common.text_table import FittedTable, cell, fitted, head_of, title_of
from pulsarbox.cli.connect.admin_client import short
from pulsarbox.names import TopicName

PUBLISHERS_SHOWN: Final = 20
LEAST: Final = ("rate_acked", "type", "consumers", "backlog_entries", "rate_out", "unacked")
"""Columns of a subscription table that a narrow terminal hides first."""
_PRODUCER_CUT: Final = {"producer": 12, "why": 20}
_PRODUCER_LEAST: Final = ("client", "since", "address")
WIDE: Final = ("seconds_to_drain", "backlog_bytes", "dead_letters", "expired", "ranges", "durable")
FIELDS: Final = (
    *("name", "topic", "type", "durable", "consumers", "backlog", "backlog_entries", "backlog_unit", "backlog_bytes"),
    *("unacked", "rate_out", "rate_acked", "rate_dropped", "dropped", "rate_chunks", "ranges", "expired"),
    *("seconds_to_drain", "why", "dead_letters", "properties"),
)
"""Fields of a subscription row."""


def topic_lines(name: TopicName, partitions: int, stats: dict[str, Any], width: int | None = None) -> FittedTable:
    """Describe a topic: its statistics, then tables of its producers and subscriptions, which fit ``width``."""
    facts = {
        "topic": short(name) + (f", {counted(partitions, 'partition')}" if partitions else ""),
        "in": f"{stats['msgRateIn']:,.1f} messages/s, {megabytes(int(stats['msgThroughputIn']))}/s,"
        f" {stats['msgInCounter']:,} in all",
        "out": f"{stats['msgRateOut']:,.1f} messages/s, {megabytes(int(stats['msgThroughputOut']))}/s,"
        f" {stats['msgOutCounter']:,} in all",
        "stored": megabytes(stats["storageSize"]),
    }
    if "msgDropRate" in stats:
        facts["dropped"] = f"{stats['msgDropRate']:,.1f} messages/s: subscriptions had no consumer with room"
    if stats.get("msgChunkPublished"):
        rate = sum(each.get("chunkedMessageRate", 0.0) for each in stats["publishers"])
        facts["chunks in"] = f"{rate:,.1f} a second"
    if stats.get("lastPublishTimeStamp"):
        facts["last published"] = since(stats["lastPublishTimeStamp"])
    if "unsubscribed" in stats:
        facts["unsubscribed"] = kept_words(stats["unsubscribed"])
    if stats.get("deadLettersLost"):
        facts["dead letters"] = (
            f"LOST: no subscription, no retention; `pulsarbox sub create {short(name)} NAME --at earliest`"
        )
    indent = max(map(len, facts))
    lines = [f"{fact:<{indent}}  {clean(text)}" for fact, text in facts.items()]
    hidden: list[str] = []
    publishers = [publisher_row(each) for each in stats["publishers"][:PUBLISHERS_SHOWN]]
    if publishers and not partitions:
        dropped = ["dropped"] if "msgDropRate" in stats else []
        why = ["why"] if any(each["why"] for each in publishers) else []
        columns = ["producer", "rate", *dropped, "address", "client", "since", *why]
        found = fitted(columns, publishers, {}, _PRODUCER_CUT, width, _PRODUCER_LEAST)
        lines += ["", *found.lines]
        hidden += map(title_of, found.hidden)
        if len(stats["publishers"]) > PUBLISHERS_SHOWN:
            lines.append(f"... and {len(stats['publishers']) - PUBLISHERS_SHOWN} more")
    subscriptions = [{"subscription": each[1], **subscription_row(*each)} for each in named(name, stats)]
    if subscriptions:
        backlogs = backlog_columns(subscriptions)
        columns = ["subscription", *columns_with(backlogs)]
        if "msgDropRate" in stats:
            columns = ["subscription", "type", "consumers", "rate_out", "rate_dropped", "dropped"]
        rows = [shown_subscription(row) for row in subscriptions]
        found = fitted(columns, rows, backlogs.titles, {"subscription": 12}, width, LEAST)
        lines += ["", *found.lines]
        hidden += (head_of(name, backlogs.titles) for name in found.hidden)
    return FittedTable(lines, hidden)


def columns_with(backlogs: BacklogColumns) -> list[str]:
    """Return the columns of a subscription table after the name column."""
    return ["type", "consumers", *backlogs.names, "unacked", "rate_out", "rate_acked", "why"]


def named(topic: TopicName, stats: dict[str, Any]) -> list[tuple[TopicName, str, dict[str, Any]]]:
    """Return the subscriptions sorted by name, each with its topic."""
    return [(topic, name, stats["subscriptions"][name]) for name in sorted(stats["subscriptions"])]


def publisher_row(publisher: dict[str, Any]) -> Row:
    """Return a producer as a table row."""
    return {
        "producer": publisher.get("producerName"),
        "rate": publisher["msgRateIn"],
        "dropped": publisher.get("msgDropRate"),
        "address": publisher.get("address", "").removeprefix("/"),
        "client": publisher.get("clientVersion"),
        "since": publisher.get("connectedSince", "")[:19],
        "why": publisher.get("why", {}).get("text", ""),
    }


def subscription_row(topic: TopicName, name: str, stats: dict[str, Any]) -> Row:
    """Return a subscription as a row of `sub list`."""
    why = stats.get("why") or {}
    return {
        "name": name,
        "topic": str(topic),
        "type": stats["type"],
        "durable": stats.get("isDurable", stats.get("durable")),
        "consumers": len(stats["consumers"]),
        **backlog_fields([stats]),
        "backlog_bytes": stats["backlogSize"],
        "unacked": stats["unackedMessages"],
        "rate_out": stats["msgRateOut"],
        "rate_acked": stats["messageAckRate"],
        "rate_dropped": stats.get("msgDropRate"),
        "dropped": stats.get("droppedMessages"),
        "rate_chunks": stats.get("chunkedMessageRate"),
        "ranges": stats["nonContiguousDeletedMessagesRanges"],
        "expired": stats["totalMsgExpired"],
        "seconds_to_drain": stats.get("secondsToDrain"),
        "why": why.get("reason"),
        "dead_letters": stats.get("deadLetters", {}).get("messages"),
        "properties": stats["subscriptionProperties"],
    }


def shown_subscription(row: Row) -> Row:
    """Return a subscription row with the cells of a table."""
    drained = drained_in(row["seconds_to_drain"], row["backlog"], row["rate_out"], row["rate_acked"])
    kind = None if row["type"] == "None" else row["type"]  # never consumed
    return row | {"type": kind, "seconds_to_drain": drained, "backlog_bytes": megabytes(row["backlog_bytes"])}


def drained_in(seconds: int | None, backlog: int, rate_out: float, rate_acked: float) -> str | None:
    """Return the time to drain a backlog at current rates, as the dashboard does; None without a backlog.

    "now" for messages in flight: at most two seconds of deliveries, most of which are acknowledged.
    """
    from pulsarbox.tui.widgets.numbers import keeps_up

    if not seconds:
        return None
    if keeps_up({"backlog": backlog, "outRate": rate_out, "change": rate_out - rate_acked}):
        return "now"
    return "never" if seconds < 0 else duration(seconds)


def subscription_lines(topic: TopicName, name: str, stats: dict[str, Any], width: int | None = None) -> FittedTable:
    """Describe a subscription: its statistics, then a table of its consumers, which fits ``width``."""
    why = stats.get("why")
    entries = counted(stats["msgBacklog"], "entry", "entries")
    backlog = messages(stats["backlogMessages"]) if "backlogMessages" in stats else entries
    if stats.get("backlogMessages", stats["msgBacklog"]) != stats["msgBacklog"]:
        backlog = f"{backlog} in {entries}"
    backlog = f"{backlog}, {megabytes(stats['backlogSize'])}"
    facts = {
        "subscription": f"{name} on {short(topic)}",
        "type": _kind(stats) + ("" if stats.get("isDurable", True) else ", ends with its last consumer"),
        "backlog": backlog,
        "out": f"{stats['msgRateOut']:,.1f} messages/s, {stats['msgOutCounter']:,} in all",
        "acknowledged": f"{stats['messageAckRate']:,.1f} messages/s",
        "unacknowledged": f"{stats['unackedMessages']:,}",
    }
    if "msgDropRate" in stats:
        facts["dropped"] = f"{stats['msgDropRate']:,.1f} messages/s, {stats.get('droppedMessages', 0):,} in all"
    if stats.get("chunkedMessageRate"):
        facts["chunks out"] = f"{stats['chunkedMessageRate']:,.1f} a second"
    if stats.get("activeConsumerName"):
        facts["active"] = stats["activeConsumerName"]
    if stats["nonContiguousDeletedMessagesRanges"]:
        facts["acknowledged ranges"] = f"{stats['nonContiguousDeletedMessagesRanges']:,} beyond the first gap"
    if stats.get("secondsToDrain"):
        facts["drained in"] = _drained_in(stats)
    if stats["lastAckedTimestamp"]:
        facts["last acknowledged"] = since(stats["lastAckedTimestamp"])
    if "deadLetters" in stats:
        facts["dead letters"] = _letters(stats["deadLetters"])
    if why:
        facts["not dispatched"] = why["text"] + (f"; for {_passed(why['since'])}" if why["since"] else "")
    indent = max(map(len, facts))
    lines = [f"{fact:<{indent}}  {clean(text)}" for fact, text in facts.items()]
    rows = [
        {
            "consumer": each["consumerName"],
            "rate": each["msgRateOut"],
            "permits": each["availablePermits"],
            "unacked": each["unackedMessages"],
            "blocked": each["blockedConsumerOnUnackedMsgs"],
            "address": each.get("address", "").removeprefix("/"),
            "client": each.get("clientVersion"),
        }
        for each in stats["consumers"]
    ]
    if not rows:
        return FittedTable(lines, [])
    found = fitted(list(rows[0]), rows, {}, {"consumer": 12}, width, ("client", "address"))
    return FittedTable([*lines, "", *found.lines], [title_of(name) for name in found.hidden])


def _kind(stats: dict[str, Any]) -> str:
    return "-, never consumed" if stats["type"] == "None" else str(stats["type"])


def _letters(told: dict[str, Any]) -> str:
    target, times = short(told["deadLetterTopic"]), told["maxRedeliverCount"]
    text = f"{told['messages']:,} moved to {target}, each after {counted(times, 'redelivery', 'redeliveries')}"
    if told.get("refused"):
        text += f"; the last was rejected: {told['refused']}, {since(told['refusedSince'])}"
    return text


def since(wall: int) -> str:
    """Format the time since an instant (ms since 1970)."""
    return f"{_passed(wall)} ago"


def _passed(wall: int) -> str:
    return duration(max(time.time() - wall / 1000, 0))


def duration(seconds: float) -> str:
    """Format a duration in its largest unit."""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"


def document_lines(document: Row) -> list[str]:
    """Return the non-empty fields of a document, one per line."""
    told = {name: value for name, value in document.items() if value not in (None, [], {}, "")}
    width = max(map(len, told))
    return [f"{clean(name):<{width}}  {cell(value)}" for name, value in told.items()]


def _drained_in(stats: dict[str, Any]) -> str:
    """Return the time to drain the backlog of a subscription at current rates, with the cause if it is never."""
    rates = stats["msgRateOut"], stats["messageAckRate"]
    text = drained_in(stats["secondsToDrain"], backlog_fields([stats])["backlog"], *rates)
    if text == "now":
        return "now: the messages are in flight"
    if text == "never" and not stats["messageAckRate"]:
        return "never: nothing is acknowledged"
    if text == "never":
        return "never: messages are published at least as fast as acknowledged"
    return f"{text}, at the rates of the last minute"
