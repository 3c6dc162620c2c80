"""Rates and quotas of a topic as text: limit, usage, level that set it, and throttled time."""

from collections.abc import Iterator
from typing import Any, Final

from pulsarbox.cli.commands.stats_text import drained_in, duration, since
from pulsarbox.cli.commands.unsubscribed_text import kept_words
from pulsarbox.cli.common.backlog_units import backlog_fields
from pulsarbox.cli.common.output import Row
from pulsarbox.cli.common.progress import messages
from pulsarbox.cli.common.terminal_text import clean, counted, megabytes
from pulsarbox.cli.connect.admin_client import short
from pulsarbox.names import TopicName, parse_topic
from pulsarbox.protocol.policies.policy_values import (
    AGE_QUOTA,
    QUOTA_ACTIONS,
    SIZE_QUOTA,
    quota_action,
    quota_seconds,
    quota_size,
)

COLUMNS: Final = ("limit", "of", "allowed", "used", "setBy", "waiting", "held", "why")
LEAST: Final = ("setBy", "waiting", "of", "why", "held")
CUT: Final = {"of": 12, "why": 20, "allowed": 20, "used": 14}
WIDE: Final = ("then", "subscription", "reason")
FIELDS: Final = (
    *("limit", "of", "topic", "subscription", "allowed", "used", "setBy", "waiting", "held", "why"),
    *("limits", "scope", "name", "periodSeconds", "messagesLimit", "bytesLimit", "messagesUsed", "bytesUsed"),
    *("nextPeriodMillis", "heldMillisLastMinute", "limitValue", "usedValue", "then", "reason"),
)
"""Fields of a row: those of rates, of quotas, and of waiting producers."""

Stats = dict[str, Any]
Held = dict[str, dict[str, Any]]

_THEN: Final = {
    QUOTA_ACTIONS["hold"]: "producers are blocked",
    QUOTA_ACTIONS["refuse"]: "producers are rejected",
    QUOTA_ACTIONS["evict"]: "the oldest messages are evicted",
}
_POLICIES: Final = {
    ("dispatch", "topic"): "dispatch-rate",
    ("dispatch", "subscription"): "subscription-dispatch-rate",
    ("publish", "topic"): "publish-rate",
    ("subscribe", "consumer"): "subscribe-rate",
}
_OF_A_SUBSCRIPTION: Final = ("dispatch-rate", "subscription-dispatch-rate", SIZE_QUOTA, AGE_QUOTA)
EXPLAINED: Final = (
    *("publish-rate", "dispatch-rate", "subscription-dispatch-rate", "subscribe-rate"),
    *(SIZE_QUOTA, AGE_QUOTA),
)
"""Policies that `quota explain` explains for a topic."""


def parts_of(topic: TopicName, stats: Stats) -> Iterator[tuple[TopicName, Stats]]:
    """Yield a topic with its statistics, or each partition with its own."""
    partitions = stats.get("partitions")
    if not partitions:
        yield topic, stats
        return
    for name in sorted(partitions, key=lambda each: parse_topic(each).partition_index):
        yield parse_topic(name), partitions[name]


def rows_of(topic: TopicName, stats: Stats, policies: Held, subscription: str | None) -> Iterator[Row]:
    """Yield the effective limits of a topic or partition as rows, or those of one subscription."""
    subscriptions = stats["subscriptions"]
    if subscription is None:
        for each in stats.get("limits", ()):
            yield _row(topic, "", each)
        for name, found in subscriptions.items():
            for each in found.get("limits", ()):
                if each["scope"] == "subscription":
                    yield _row(topic, name, each)
    else:
        for each in subscriptions.get(subscription, {}).get("limits", ()):
            yield _row(topic, subscription, each)
    yield from _quotas(topic, stats, policies)
    if subscription is None:
        yield from _producers(topic, stats)


def _row(topic: TopicName, subscription: str, report: dict[str, Any]) -> Row:
    of = {
        "broker": "the box",
        "topic": short(topic),
        "consumer": f"each consumer of {short(topic)}",
        "subscription": f"{subscription} on {short(topic)}",
    }.get(report["scope"], f"{report['scope']} {report['name']}")
    what = "times" if report["limits"] == "subscribe" else "messages"
    return {
        "limit": report["limits"],
        "of": of,
        "topic": str(topic),
        "subscription": subscription or None,
        "allowed": _amount(report, "Limit", what) + (" a second" if report["periodSeconds"] == 1 else
                                                     f" in {report['periodSeconds']} s"),
        "used": _amount(report, "Used", what, by="Limit"),
        "held": duration(report["heldMillisLastMinute"] / 1000) if report["heldMillisLastMinute"] else "",
        **report,
    }  # fmt: skip


def _amount(report: dict[str, Any], which: str, what: str, by: str = "") -> str:
    """Format messages and bytes, each only if limited."""
    said = []
    if report[f"messages{by or which}"]:
        said.append(_counted(report[f"messages{which}"], what))
    if report[f"bytes{by or which}"]:
        said.append(megabytes(report[f"bytes{which}"]))
    return " and ".join(said)


def _quotas(topic: TopicName, stats: Stats, policies: Held) -> Iterator[Row]:
    for limit, policy, allowed, used, words in (
        ("backlog size", SIZE_QUOTA, stats["backlogQuotaLimitSize"], stats["backlogSize"], megabytes),
        ("backlog age", AGE_QUOTA, stats["backlogQuotaLimitTime"], stats["oldestBacklogMessageAgeSeconds"], duration),
    ):
        if allowed < 0 or policy not in policies:
            continue
        found = policies[policy]
        over = used > allowed
        yield {
            "limit": limit,
            "of": short(topic),
            "topic": str(topic),
            "subscription": stats.get("oldestBacklogMessageSubscriptionName") if policy == AGE_QUOTA else None,
            "allowed": words(allowed),
            "used": words(max(used, 0)),
            "setBy": found["level"],
            "waiting": stats.get("waitingPublishers", 0) + len(stats.get("heldPublishers", ())) if over else 0,
            "held": "now" if over else "",
            "limitValue": allowed,
            "usedValue": max(used, 0),
            "then": quota_action(found["value"]),
        }


def _producers(topic: TopicName, stats: Stats) -> Iterator[Row]:
    """Yield the waiting producers: held by a backlog quota or a publish rate, or on a connection that is not read."""
    for each in (*stats.get("publishers", ()), *stats.get("heldPublishers", ())):
        why = each.get("why")
        if why is not None:
            held = each.get("held", {})
            yield {
                "limit": "producer",
                "of": f"{each['producerName'] or 'unnamed'} of {each['address'].removeprefix('/')}",
                "topic": str(topic),
                "subscription": None,
                "allowed": "",
                "used": f"{megabytes(held['bytes'])} held" if held.get("bytes") else "",
                "setBy": "",
                "waiting": held.get("receipts", 0),
                "held": "now",
                "why": f"{why['text']}, {since(why['since'])}",
                "reason": why["reason"],
            }


# Explanation


def explanation(topic: TopicName, stats: Stats, policies: Held, subscription: str | None) -> list[str]:
    """Return text lines for each limit: the value per level, the effective one, and its current usage."""
    parts = list(parts_of(topic, stats))
    lines: list[str] = []
    if subscription is not None:
        for part, of_part in parts:
            lines += _state(part, subscription, of_part["subscriptions"].get(subscription))
    rows = [row for part, of_part in parts for row in rows_of(part, of_part, policies, subscription)]
    for name in EXPLAINED if subscription is None else _OF_A_SUBSCRIPTION:
        if name in policies:
            lines += ["", *_chain(name, policies[name]), *_now(name, rows)]
    others = [row for row in rows if row["limit"] in ("publish", "dispatch") and row["scope"] not in
              ("topic", "subscription")]  # fmt: skip
    for row in others:
        said = f"{row['limit']} of {row['of']}: {row['allowed']}, set for the {row['setBy']}"
        lines += ["", said, f"  now        {_in_use(row)}"]
    if subscription is None and "unsubscribed" in stats:
        lines += ["", "unsubscribed retention", f"  now        {kept_words(stats['unsubscribed'])}"]
    for row in rows:
        if row["limit"] == "producer":
            lines += ["", clean(f"producer {row['of']}"), clean(f"  waits      {row['why']}")]
    return lines[1:] if lines and not lines[0] else lines


def _state(topic: TopicName, name: str, stats: Stats | None) -> list[str]:
    """Describe the backlog of a subscription: cause and time to drain."""
    if stats is None:
        return []
    entries = counted(stats["msgBacklog"], "entry", "entries")
    backlog = messages(stats["backlogMessages"]) if "backlogMessages" in stats else entries
    said = f"{name} on {short(topic)}: a backlog of {backlog}"
    rates = stats.get("msgRateOut", 0.0), stats.get("messageAckRate", 0.0)
    left = drained_in(stats.get("secondsToDrain"), backlog_fields([stats])["backlog"], *rates)
    if left == "now":
        said += ", in flight"
    elif left:
        said += f", drained {'' if left == 'never' else 'in '}{left} at the rates of the last minute"
    why = stats.get("why")
    lines = [clean(said)]
    if why:
        lines.append(clean(f"  not dispatched: {why['text']}" + (f", {since(why['since'])}" if why["since"] else "")))
    return lines


def _chain(name: str, policy: dict[str, Any]) -> list[str]:
    """List the levels in order of precedence, and mark the effective one."""
    said = {each["level"]: each["value"] for each in reversed(policy["levels"])}
    lines = [name]
    for level in ("topic", "namespace", "broker"):
        words = value_words(name, said[level]) if level in said else "not set"
        lines.append(clean(f"  {level:<9}  {words}{'    <- in effect' if level == policy['level'] else ''}"))
    return lines


def _now(name: str, rows: list[Row]) -> list[str]:
    """Describe the current usage of a policy's limits: of the throttling partitions, or else of the first."""
    if name in (SIZE_QUOTA, AGE_QUOTA):
        mine = [row for row in rows if row["limit"] == ("backlog size" if name == SIZE_QUOTA else "backlog age")]
    else:
        mine = [row for row in rows if "scope" in row and _POLICIES.get((row["limit"], row["scope"])) == name]
    busy = [row for row in mine if row["held"]] or mine[:1]
    several = len(mine) > 1
    return [clean(f"  now        {row['of'] + ': ' if several else ''}{_in_use(row)}") for row in busy]


def _in_use(row: Row) -> str:
    said = f"{row['used']} of {row['allowed']}"
    if row["limit"].startswith("backlog"):
        return said + (f": {_THEN.get(row['then'], row['then'])}" if row["held"] else "")
    if row["nextPeriodMillis"]:
        said += f", next period in {row['nextPeriodMillis'] / 1000:.1f} s"
    if row["waiting"]:
        said += f"; {row['waiting']} wait{'s' if row['waiting'] == 1 else ''}"
    if row["held"]:
        said += f"; throttled for {row['held']} of the last minute"
    return said


def value_words(name: str, value: Any) -> str:
    """Format the value of a rate or quota policy."""
    if not isinstance(value, dict):
        return "no limit" if value is None else str(value)
    if name in (SIZE_QUOTA, AGE_QUOTA):
        return _quota_words(name, value)
    if "subscribeThrottlingRatePerConsumer" in value:
        times = value["subscribeThrottlingRatePerConsumer"]
        return "no limit" if times <= 0 else f"{times:,} times in {value['ratePeriodInSecond']} s"
    said = []
    for name, number in value.items():
        if "Rate" in name and "In" in name and type(number) is int and number > 0 and not name.startswith("ratePeriod"):
            said.append(_counted(number, "messages") if name.endswith("InMsg") else megabytes(number))
    if not said:
        return "no limit"
    period = value.get("ratePeriodInSecond", 1) or 1
    words = " and ".join(said) + (" a second" if period == 1 else f" in {period} s")
    return words + (", in addition to the publish rate" if value.get("relativeToPublishRate") else "")


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what if number != 1 else what[:-1]}"


def _quota_words(name: str, value: dict[str, Any]) -> str:
    limit = quota_size(value) if name == SIZE_QUOTA else quota_seconds(value)
    if limit < 0:
        return "no limit"
    then = quota_action(value)
    return f"{megabytes(limit) if name == SIZE_QUOTA else duration(limit)}, then {_THEN.get(then, then)}"
