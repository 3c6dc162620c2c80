"""Diagnosis of a box: what needs attention, the most urgent first, with the screen and action that help.

A pure function of the rows and numbers of the overview, so it also works on recorded history and without a screen.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final, NamedTuple

from pulsarbox.names import short_topic
from pulsarbox.tui.widgets import numbers

Row = Mapping[str, Any]

BAD: Final = "error"
WARN: Final = "warning"
CALM: Final = "ok"
MARKS: Final = {BAD: "✕", WARN: "▲", CALM: "✓"}

KINDS: Final = (
    "directory-lost",
    "disk-full",
    "quota-full",
    "quota-soon",
    "dead-letters-lost",
    "falls-behind",
    "copies-missing",
    "stuck",
    "clients-blocked",
    "publish-throttled",
    "dead-letters-growing",
    "dead-letters",
    "unused",
    "calm",
)
"""Kinds of findings, the most urgent first."""

DISK_SHARE: Final = 0.05
DISK_BYTES: Final = 2 << 30
"""The disk is nearly full if less than both bounds is free, as for the event ``disk-low``."""
DISK_SECONDS: Final = 3600.0
"""... or if the published bytes would fill it sooner."""
QUOTA_SECONDS: Final = 86_400.0
"""A quota that is reached later is not a finding of its own."""
HELD_MS: Final = 1000.0
"""Throttling of a publish rate, in milliseconds of the last minute, from which it is a finding."""
SIZE_QUOTA: Final = "backlog-quota:destination_storage"
AGE_QUOTA: Final = "backlog-quota:message_age"
"""Policies of the backlog quotas, in bytes and in seconds."""
_PUBLISH: Final = frozenset(
    {
        "publish-rate",
        "publishRateInMsgs",
        "publishRateInBytes",
        "brokerPublisherThrottlingMaxMessageRate",
        "brokerPublisherThrottlingMaxByteRate",
    }
)
FULL: Final = 0.98
"""Share of a backlog quota from which it is full, since messages pass whenever some are consumed."""
NEAR: Final = 0.9
"""Share of a backlog quota from which it is a finding, even if its backlog does not grow."""
_STILL_FULL: Final = 0.5
"""Share of a quota that has held producers in the last minute from which it is still full."""
_AFTER_EVICTION: Final = 0.85
"""Share of a quota that has evicted from which it still does: an eviction leaves 90 % or a little less."""
FALLING_MAX: Final = 5
"""Backlogs that grow with a finding of their own; one finding has the others."""


class BoxFinding(NamedTuple):
    """One thing that needs attention."""

    kind: str
    severity: str
    text: str
    screen: str = ""
    """Name of the screen that shows it, empty for none."""
    row: Row | None = None
    """Its row on that screen."""
    remedy: str = ""
    """Name of the action on the row that helps, empty for none."""
    urgency: float = 0.0
    """Order among findings of one kind, descending."""

    @property
    def mark(self) -> str:
        """A mark of the severity, so that color is not the only sign."""
        return MARKS[self.severity]

    def as_json(self) -> dict[str, Any]:
        """Return its stable members."""
        row = self.row or {}
        about = {name: row.get(name) or None for name in ("topic", "subscription")}
        return {"kind": self.kind, "severity": self.severity, "text": self.text, "screen": self.screen or None} | about


class OverviewFacts(NamedTuple):
    """Contents of the overview: numbers of the box, and rows of its tables."""

    totals: Mapping[str, Any]
    subscriptions: Sequence[Row] = ()
    quotas: Sequence[Row] = ()
    dead_letters: Sequence[Row] = ()
    now: int = 0
    """Time of the box (ms since 1970)."""
    growing: Sequence[Row] = ()
    """Subscriptions that grow the fastest, if ``subscriptions`` are not all that have a backlog."""
    growing_count: int = 0
    """Number of subscriptions that grow, at least; 0 if ``subscriptions`` are all."""
    unused_count: int = 0
    """Number of subscriptions with a backlog and without consumers; 0 if ``subscriptions`` are all."""

    def complete(self) -> "OverviewFacts":
        """Return the facts with the growing backlogs among the subscriptions."""
        known = {(row.get("topic"), row.get("subscription")) for row in self.subscriptions}
        more = [row for row in self.growing if (row.get("topic"), row.get("subscription")) not in known]
        return self._replace(subscriptions=[*self.subscriptions, *more], growing=()) if more else self


def diagnosed(facts: OverviewFacts) -> list[BoxFinding]:
    """Return the findings, the most urgent first; a calm one if there is nothing else.

    Dead letters of one kind are one finding, as are subscriptions without consumers, those that are stuck by the same
    cause, and the backlogs that grow beyond the fastest.
    """
    facts = facts.complete()
    found = [*_of_box(facts.totals), *_of_quotas(facts), *_of_backlogs(facts), *_of_dead_letters(facts.dead_letters)]
    if not found:
        return [_calm(facts.totals)]
    return sorted(found, key=lambda each: (KINDS.index(each.kind), -each.urgency))


def _calm(totals: Mapping[str, Any]) -> BoxFinding:
    if not totals.get("topics"):
        told = "Nothing needs attention. Publish a first message: pulsarbox produce hello 'Hello, world'"
        return BoxFinding("calm", CALM, told)
    rates = ", ".join(
        f"{numbers.rate(totals[name])}/s {word}"
        for name, word in (("publishRate", "in"), ("deliverRate", "out"))
        if totals.get(name) is not None
    )
    return BoxFinding("calm", CALM, f"Nothing needs attention: {rates or 'all backlogs drain'}")


# The box


def _of_box(totals: Mapping[str, Any]) -> Iterator[BoxFinding]:
    lost, lacking = totals.get("lostDirectories"), totals.get("lackingCopies")
    missing = f"{numbers.counted(lacking, 'entry lacks', 'entries lack')} a copy" if lacking else ""
    if lost:
        told = f"{numbers.counted(lost, 'data directory is', 'data directories are')} lost"
        yield BoxFinding("directory-lost", BAD, f"{told}: {missing}" if missing else told, "storage")
    elif lacking:
        yield BoxFinding("copies-missing", WARN, missing, "storage")
    yield from _of_disk(totals)
    for name, what in (("unread", "connection is not read"), ("suspended", "producer is suspended")):
        if totals.get(name):
            plural = what.replace(" is", "s are")
            told = f"{numbers.counted(totals[name], what, plural)}: a limit holds back the clients"
            yield BoxFinding("clients-blocked", WARN, told, "clients")


def _of_disk(totals: Mapping[str, Any]) -> Iterator[BoxFinding]:
    free, used = totals.get("diskFree"), totals.get("diskUsed")
    if free is None:
        return
    rate = totals.get("publishBytes") or 0.0
    left = free / rate if rate >= 1 else None
    is_low = free < min((free + (used or 0)) * DISK_SHARE, DISK_BYTES)
    if not is_low and (left is None or left > DISK_SECONDS):
        return
    soon = f"; at {numbers.size(rate)}/s published it is full in {numbers.span(left)}" if left is not None else ""
    state = "is nearly full" if is_low else "is filling up"
    yield BoxFinding("disk-full", BAD, f"The disk {state}: {numbers.size(free)} free{soon}", "storage")


# Quotas and limits


def _of_quotas(facts: OverviewFacts) -> Iterator[BoxFinding]:
    for row in sorted(facts.quotas, key=lambda row: str(row.get("subject"))):  # shares of full quotas fluctuate
        if row.get("policy") in (SIZE_QUOTA, AGE_QUOTA):
            yield from _of_backlog_quota(row, facts.subscriptions)
        elif row.get("policy") in _PUBLISH and (row.get("held") or 0) >= HELD_MS:
            yield _publish_throttled(row)


def _of_backlog_quota(row: Row, subscriptions: Sequence[Row]) -> Iterator[BoxFinding]:
    name, limit, share = _topic(row.get("subject")), _limit_of(row), row.get("share") or 0.0
    if _is_full(row):
        told = f"{_consequence(row, subscriptions)}: its backlog has reached the quota of {limit}"
        largest = _largest(row, subscriptions)
        if largest is not None:
            told += f"; the slowest subscription is {largest.get('subscription')}"
        yield BoxFinding("quota-full", BAD, told, "quotas", row, "quota set", float(row.get("then") == "evict"))
        return
    left = seconds_to_quota(row, subscriptions)
    is_soon = left is not None and left <= QUOTA_SECONDS
    if is_soon and _culprit(row, subscriptions) is not None:
        return  # the finding about the subscription has the time
    then = f": it then {_THEN[row['then']]}" if row.get("then") in _THEN else ""
    if left is not None and is_soon:
        told = f"{name} reaches its backlog quota of {limit} in {numbers.span(left)}{then}"
        yield BoxFinding("quota-soon", WARN, told, "quotas", row, "quota set", -left)
    elif share >= NEAR:
        told = f"{name} has used {numbers.percent(share)} of its backlog quota of {limit}"
        then = f": when it is full, it {_THEN[row['then']]}" if then else ""
        yield BoxFinding("quota-soon", WARN, told + then, "quotas", row, "quota set", -QUOTA_SECONDS * (2 - share))


_THEN: Final = {"hold": "holds producers", "refuse": "refuses producers", "evict": "drops the oldest messages"}
"""Effects of the actions of backlog quotas."""


def _is_full(row: Row) -> bool:
    """Return whether a backlog quota is full, also between the moments at which it holds producers or evicts."""
    share = row.get("share") or 0.0
    return bool(
        row.get("holding")
        or share >= FULL
        or ((row.get("held") or 0) >= HELD_MS and share >= _STILL_FULL)
        or (row.get("then") == "evict" and row.get("evictions") and share >= _AFTER_EVICTION)
    )


def _consequence(row: Row, subscriptions: Sequence[Row]) -> str:
    """Return the effect of a full quota on its topic, the same whether it holds producers at this moment or not."""
    name, largest = _topic(row.get("subject")), _largest(row, subscriptions)
    if row.get("then") == "evict":
        return f"{name} drops its oldest messages"
    if row.get("then") == "refuse":
        return f"{name} refuses producers"
    passes = largest is None or any((largest.get(rate) or 0.0) >= numbers.MOVING for rate in ("inRate", "outRate"))
    return f"{name} accepts only as much as is consumed" if passes else f"{name} accepts no messages"


def _limit_of(row: Row) -> str:
    limit = row.get("limit")
    return numbers.seconds(limit) if row.get("policy") == AGE_QUOTA else numbers.size(limit)


def seconds_to_quota(quota: Row, subscriptions: Sequence[Row]) -> float | None:
    """Return the seconds until a backlog quota is reached at the current rates; None if it is not approached.

    The size of a backlog grows as its number of messages does. The oldest message of a backlog ages by a second per
    second if nothing is dispatched.
    """
    used, limit = quota.get("used"), quota.get("limit")
    largest = _largest(quota, subscriptions)
    if not used or not limit or largest is None:
        return None
    if quota.get("policy") == AGE_QUOTA:
        rests = (largest.get("outRate") or 0.0) < numbers.MOVING
        return max(limit - used, 0.0) if rests else None
    change = largest.get("change") or 0.0
    return max(limit / used - 1, 0.0) * largest["backlog"] / change if change >= numbers.MOVING else None


def _largest(quota: Row, subscriptions: Sequence[Row]) -> Row | None:
    """Return the subscription with the largest backlog of a quota's topic, which the quota measures."""
    topic = _topic_of(quota)
    mine = [row for row in subscriptions if row.get("topic") == topic and row.get("backlog")]
    return max(mine, key=lambda row: row["backlog"], default=None)


def _topic_of(quota: Row) -> object:
    return quota.get("topic") or quota.get("subject")


def _culprit(quota: Row, subscriptions: Sequence[Row]) -> Row | None:
    largest = _largest(quota, subscriptions)
    return largest if largest is not None and _is_growing(largest) else None


def _publish_throttled(row: Row) -> BoxFinding:
    held = f"{numbers.percent((row.get('held') or 0) / 60_000)} of the last minute"
    unit = str(row.get("unit") or "")
    limit = f"{numbers.size(row.get('limit'))}/s" if unit == "bytes/s" else f"{numbers.rate(row.get('limit'))}/s"
    subject = _topic(row.get("subject"))
    of = "the box" if subject == "box" else subject
    told = f"Producers of {of} were throttled for {held}: the publish rate is {limit}"
    return BoxFinding("publish-throttled", WARN, told, "quotas", row, "quota set", row.get("held") or 0.0)


# Backlogs


def _of_backlogs(facts: OverviewFacts) -> Iterator[BoxFinding]:
    letters = {row.get("topic") for row in facts.dead_letters}  # these have findings of their own
    full = {_topic_of(row): row.get("then") for row in _backlog_quotas(facts) if _is_full(row)}
    falling: list[BoxFinding] = []
    stuck: dict[str, list[Row]] = {}
    unused: list[Row] = []
    for row in facts.subscriptions:
        cause = row.get("cause")
        if not row.get("backlog") or row.get("topic") in letters or numbers.keeps_up(dict(row)) or _only_delayed(row):
            continue
        topic = row.get("topic")
        if _is_growing(row) and (topic not in full or _outgrows(row, full[topic])):
            falling.append(_falls_behind(row, facts))
        elif cause in _STUCK and (row.get("outRate") or 0.0) < numbers.MOVING:
            stuck.setdefault(cause, []).append(row)
        elif cause == "no-consumer":
            unused.append(row)
    yield from _fastest(falling, facts)
    for rows in stuck.values():
        found = _stuck(max(rows, key=_backlog), facts)
        others = numbers.counted(len(rows) - 1, "other subscription")
        yield found if len(rows) == 1 else found._replace(text=f"{found.text}; likewise {others}")
    if unused:
        yield _unused(unused, facts.unused_count)


def _outgrows(row: Row, then: object) -> bool:
    """Return whether a backlog grows despite a full quota, and not only until it evicts or holds producers again."""
    return then != "evict" and numbers.keeps_growing(dict(row))


def _backlog(row: Row) -> float:
    return row.get("backlog") or 0.0


def _fastest(falling: Sequence[BoxFinding], facts: OverviewFacts) -> Iterator[BoxFinding]:
    """Yield the findings about the backlogs that grow the fastest, and one about the others."""
    yield from (each for each in falling if each.kind != "falls-behind")
    behind = sorted((each for each in falling if each.kind == "falls-behind"), key=lambda each: -each.urgency)
    few = FALLING_MAX if len(behind) > FALLING_MAX + 1 else len(behind)
    yield from behind[:few]
    if others := behind[few:]:
        count = f"{'At least ' if facts.growing_count > len(falling) else ''}{numbers.count(len(others))}"
        told = f"{count} other subscriptions fall behind; the fastest: {_named(others[0].row or {})}"
        yield others[0]._replace(severity=WARN, text=told)


def _unused(rows: Sequence[Row], count: int) -> BoxFinding:
    """Return one finding about subscriptions without consumers; ``count`` includes those that are not loaded."""
    largest = max(rows, key=_backlog)
    waiting = numbers.counted(largest["backlog"], "message waits", "messages wait")
    if max(count, len(rows)) == 1:
        told = f"{_named(largest)} has no consumer: {waiting}"
    else:
        many = numbers.count(max(count, len(rows)))
        told = f"{many} subscriptions have no consumer; the largest: {_named(largest)}, {waiting}"
    return BoxFinding("unused", WARN, told, "subscriptions", largest, urgency=largest["backlog"])


def _only_delayed(row: Row) -> bool:
    return row.get("cause") == "delayed" or (row.get("delayed") or 0) >= row["backlog"]


def _is_growing(row: Row) -> bool:
    """Return whether a backlog grows now, and has grown over its trend, so that one burst does not count."""
    trend: Sequence[float] = row.get("trend") or ()
    has_grown = len(trend) < 2 or trend[-1] > trend[0]
    return (row.get("change") or 0.0) >= numbers.MOVING and has_grown and not numbers.keeps_up(dict(row))


_STUCK: Final = {
    "no-permits": "consumers have full receiver queues and request no messages",
    "slow-connection": "the clients do not read the data sent to them",
    "unacked-limit": "too many messages are unacknowledged",
    "unacknowledged": "all messages are dispatched and none is acknowledged",
    "key-blocked": "unacknowledged messages block the remaining keys",
    "draining": "keys have moved, and their previous consumers have not acknowledged",
    "chunks": "the chunks belong to a consumer that requests no messages",
    "open-transaction": "the remaining messages wait for an open transaction",
}
"""Causes of a backlog that does not drain by itself, in words."""
_REMEDIES: Final = {
    "unacked-limit": "cursor map",
    "unacknowledged": "cursor map",
    "key-blocked": "key map",
    "draining": "key map",
    "open-transaction": "cursor map",
}
"""Action that shows what to do about a cause."""


def _stuck(row: Row, facts: OverviewFacts) -> BoxFinding:
    since = row.get("causeSince") or 0
    long = f" for {numbers.span((facts.now - since) / 1000)}" if 0 < since < facts.now else ""
    told = f"{_named(row)} is stuck{long}: {_STUCK[row['cause']]}"
    return BoxFinding("stuck", BAD, told, "subscriptions", row, _REMEDIES.get(row["cause"], ""), row["backlog"])


_WORDED: Final = frozenset({"throttled", "unacknowledged", "unacked-limit", "key-blocked", "slow-connection"})
"""Causes with a sentence of their own."""


def _falls_behind(row: Row, facts: OverviewFacts) -> BoxFinding:
    left = _seconds_left(row, facts)
    is_soon = left is not None and left <= QUOTA_SECONDS
    kind = "quota-soon" if is_soon else "falls-behind"
    end = f"at this rate {numbers.span(left)} to the quota{_then(row, facts)}" if is_soon else _waiting(row)
    told = "; ".join(filter(None, (f"{_named(row)} falls behind: {_why(row)}", end)))
    urgency = -left if left is not None and is_soon else row.get("change") or 0.0
    is_alarm = _is_unattended(row) or row.get("cause") in ("key-blocked", "unacked-limit")
    severity = BAD if is_soon or is_alarm else WARN
    limit = _throttling(row, facts.quotas) if row.get("cause") == "throttled" else None
    if limit is not None:
        return BoxFinding(kind, severity, told, "quotas", limit, "quota set", urgency)
    return BoxFinding(kind, severity, told, "subscriptions", row, _REMEDIES.get(str(row.get("cause")), ""), urgency)


def _waiting(row: Row) -> str:
    """Return the size of a backlog, without unacknowledged messages where these are stated; empty for none."""
    backlog, unacked = row["backlog"], row.get("unacked") or 0
    states_unacked = row.get("cause") in ("unacknowledged", "unacked-limit")
    if unacked >= backlog and not states_unacked:
        return numbers.counted(backlog, "message is unacknowledged", "messages are unacknowledged")
    waiting = max(backlog - unacked, 0) if states_unacked else backlog
    return numbers.counted(waiting, "message waits", "messages wait") if waiting else ""


def _then(row: Row, facts: OverviewFacts) -> str:
    """Return the effect of the backlog quota that a subscription reaches first, as the end of a sentence."""
    mine = [
        (left, quota.get("then"))
        for quota in _backlog_quotas_of(row, facts)
        if (left := seconds_to_quota(quota, facts.subscriptions)) is not None
    ]
    _, then = min(mine, key=lambda each: each[0], default=(0.0, None))
    return f", which {_THEN[then]}" if then in _THEN else ""


def _is_unattended(row: Row) -> bool:
    """Return whether a subscription has no consumer: they may have left since another cause was sampled."""
    cause = row.get("cause")
    return cause == "no-consumer" or (row.get("consumers") == 0 and cause not in _WORDED)


def _why(row: Row) -> str:
    """Return why a backlog grows, with the rates of arrival and delivery."""
    out, into = numbers.rate(row.get("outRate")), numbers.rate(row.get("inRate"))
    if _is_unattended(row):
        return f"no consumer is connected, {into}/s arrive"
    match row.get("cause"):
        case "throttled":
            return f"its dispatch rate lets {out}/s of {into}/s through"
        case "unacknowledged" | "unacked-limit":
            return (
                f"{numbers.counted(row.get('unacked'), 'message is', 'messages are')} unacknowledged, {into}/s arrive"
            )
        case "key-blocked":
            return f"unacknowledged messages block keys, {out}/s of {into}/s are delivered"
        case "slow-connection":
            return f"the clients do not read, {out}/s of {into}/s are delivered"
    consumers = row.get("consumers")
    if consumers is None:
        return f"{out}/s of {into}/s are delivered"
    return (
        f"1 consumer takes {out}/s of {into}/s"
        if consumers == 1
        else f"{numbers.count(consumers)} consumers take {out}/s of {into}/s"
    )


def _seconds_left(row: Row, facts: OverviewFacts) -> float | None:
    """Return the seconds until a subscription reaches a backlog quota; None if it approaches none."""
    found = [seconds_to_quota(quota, facts.subscriptions) for quota in _backlog_quotas_of(row, facts)]
    return min((each for each in found if each is not None), default=None)


def _backlog_quotas_of(row: Row, facts: OverviewFacts) -> list[Row]:
    """Return the backlog quotas that are not full and measure this subscription."""
    return [
        quota for quota in _backlog_quotas(facts) if not _is_full(quota) and _largest(quota, facts.subscriptions) is row
    ]


def _backlog_quotas(facts: OverviewFacts) -> list[Row]:
    return [quota for quota in facts.quotas if quota.get("policy") in (SIZE_QUOTA, AGE_QUOTA)]


def _throttling(row: Row, quotas: Sequence[Row]) -> Row | None:
    """Return the dispatch rate that throttles a subscription: the narrowest that holds."""
    names = (f"{row.get('topic')} {row.get('subscription')}", row.get("topic"), "box")
    holding = [
        quota
        for quota in quotas
        if "ispatch" in str(quota.get("policy")) and quota.get("held") and quota.get("subject") in names
    ]
    return min(holding, key=lambda quota: names.index(quota["subject"]), default=None)


# Dead letters


def _of_dead_letters(rows: Sequence[Row]) -> Iterator[BoxFinding]:
    """Yield one finding for each kind, about the topic that matters most of it."""
    found = sorted((_of_letters(row) for row in rows if row.get("left") or row.get("lost")), key=_by_kind)
    for _, same in groupby(found, key=lambda each: each.kind):
        first, *others = same
        more = f"; likewise in {numbers.counted(len(others), 'other topic')}" if others else ""
        yield first._replace(text=first.text + more)


def _by_kind(found: BoxFinding) -> tuple[int, float]:
    return KINDS.index(found.kind), -found.urgency


def _of_letters(row: Row) -> BoxFinding:
    name, rate, left = _topic(row.get("topic")), row.get("rate") or 0.0, row.get("left") or 0
    if rate >= numbers.MOVING and row.get("lost"):
        told = f"Dead letters are lost: {name} has no subscription and receives {numbers.rate(rate)}/s"
        return BoxFinding("dead-letters-lost", BAD, told, "deadletters", row, "sub create", rate)
    if rate >= numbers.MOVING:
        told = f"Messages fail: {name} receives {numbers.rate(rate)}/s and has {numbers.counted(left, 'dead letter')}"
        return BoxFinding("dead-letters-growing", WARN, told, "deadletters", row, "groups", rate)
    told = f"{numbers.counted(left, 'dead letter waits', 'dead letters wait')} in {name}"
    return BoxFinding("dead-letters", WARN, told, "deadletters", row, "groups", left)


def _topic(name: object) -> str:
    return short_topic(str(name or ""))


def _named(row: Row) -> str:
    return f"{_topic(row.get('topic'))}/{row.get('subscription')}"
