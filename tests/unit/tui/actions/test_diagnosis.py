"""The diagnosis: what needs attention, in order, with estimates and remedies."""

from itertools import pairwise
from typing import Any

import pytest

from pulsarbox.protocol.policies.policy_values import AGE_QUOTA as AGE
from pulsarbox.protocol.policies.policy_values import SIZE_QUOTA as SIZE
from pulsarbox.tui.actions.action_table import BY_NAME
from pulsarbox.tui.actions.diagnosis import (
    AGE_QUOTA,
    DISK_BYTES,
    FALLING_MAX,
    KINDS,
    SIZE_QUOTA,
    BoxFinding,
    OverviewFacts,
    diagnosed,
    seconds_to_quota,
)
from pulsarbox.tui.app import SCREENS
from pulsarbox.tui.widgets import numbers

NOW = 1_795_300_000_000
ORDERS = "persistent://public/default/orders"
BUSY: dict[str, Any] = {"topics": 7, "publishRate": 538.0, "deliverRate": 323.0}


def behind(**more: Any) -> dict[str, Any]:
    """A subscription whose backlog grows by 147 messages a second."""
    row = {
        "topic": ORDERS,
        "subscription": "shipping",
        "backlog": 15_640,
        "change": 147.0,
        "inRate": 180.0,
        "outRate": 33.0,
        "unacked": 100,
        "consumers": 1,
        "delayed": 0,
        "trend": [100.0, 15_640.0],
        "cause": "no-permits",
    }
    return row | more


def still(**more: Any) -> dict[str, Any]:
    """A subscription whose backlog stands still."""
    return behind(change=0.0, inRate=0.0, outRate=0.0, trend=[15_640.0] * 20) | more


def quota(**more: Any) -> dict[str, Any]:
    """A quarter of a backlog quota is used."""
    row = {
        "subject": ORDERS,
        "topic": ORDERS,
        "policy": SIZE_QUOTA,
        "unit": "bytes",
        "used": 1 << 20,
        "limit": 4 << 20,
        "share": 0.25,
        "held": 0,
        "holding": False,
    }
    return row | more


def letters(**more: Any) -> dict[str, Any]:
    """A dead letter topic to which nothing is added."""
    return {"topic": f"{ORDERS}-shipping-DLQ", "left": 17, "rate": 0.0, "lost": False} | more


def found(
    totals: dict[str, Any] | None = None,
    subscriptions: tuple[dict[str, Any], ...] = (),
    quotas: tuple[dict[str, Any], ...] = (),
    dead: tuple[dict[str, Any], ...] = (),
) -> list[BoxFinding]:
    return diagnosed(OverviewFacts(BUSY | (totals or {}), subscriptions, quotas, dead, NOW))


def texts(*rows: dict[str, Any], quotas: tuple[dict[str, Any], ...] = ()) -> list[str]:
    return [each.text for each in found(subscriptions=rows, quotas=quotas)]


def test_the_policies_are_called_as_the_box_calls_them() -> None:
    assert (SIZE_QUOTA, AGE_QUOTA) == (SIZE, AGE)


def test_one_calm_line_if_nothing_is_wrong() -> None:
    (calm,) = found()
    assert (calm.kind, calm.severity, calm.text) == (
        "calm", "ok", "Nothing needs attention: 538/s in, 323/s out",
    )  # fmt: skip
    (calm,) = found({"publishRate": None, "deliverRate": None})
    assert calm.text == "Nothing needs attention: all backlogs drain", "a tenant may have no rates"


def test_an_empty_box_is_told_how_to_begin() -> None:
    (calm,) = diagnosed(OverviewFacts({}))
    assert "pulsarbox produce" in calm.text and calm.severity == "ok"


EVERY: dict[str, dict[str, Any]] = {
    "directory-lost": {"totals": {"lostDirectories": 1, "lackingCopies": 12}},
    "disk-full": {"totals": {"diskFree": 1 << 20, "diskUsed": 1 << 40}},
    "quota-full": {"quotas": (quota(holding=True, share=1.0),)},
    "quota-soon": {"subscriptions": (behind(),), "quotas": (quota(),)},
    "dead-letters-lost": {"dead": (letters(rate=0.4, lost=True),)},
    "falls-behind": {"subscriptions": (behind(),)},
    "copies-missing": {"totals": {"lackingCopies": 12}},
    "stuck": {"subscriptions": (still(cause="key-blocked"),)},
    "clients-blocked": {"totals": {"suspended": 2}},
    "publish-throttled": {"quotas": (quota(policy="publish-rate", unit="messages/s", limit=80.0, held=44_000),)},
    "dead-letters-growing": {"dead": (letters(rate=0.4),)},
    "dead-letters": {"dead": (letters(),)},
    "unused": {"subscriptions": (still(cause="no-consumer", consumers=0),)},
    "calm": {},
}
"""OverviewFacts with one finding of each kind."""


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_is_found_alone_and_leads_to_a_screen_with_an_action_of_its_rows(kind: str) -> None:
    (finding,) = found(**EVERY[kind])
    assert finding.kind == kind
    assert (finding.screen in SCREENS) == (kind != "calm")
    rows = {"quotas": "quota", "subscriptions": "subscription", "deadletters": "deadletters"}
    if finding.remedy:
        assert rows[finding.screen] in BY_NAME[finding.remedy].on
        assert finding.row is not None


@pytest.mark.parametrize(("worse", "less"), list(pairwise(KINDS[:-1])))
def test_they_are_in_the_order_of_their_kinds(worse: str, less: str) -> None:
    facts: dict[str, Any] = {}
    for each in (less, worse):
        for name, value in EVERY[each].items():
            facts[name] = facts.get(name, {}) | value if name == "totals" else (*facts.get(name, ()), *value)
    kinds = [each.kind for each in found(**facts)]
    assert kinds[0] == worse and kinds == sorted(kinds, key=KINDS.index)


def test_a_subscription_falls_behind_with_its_rates_and_the_time_to_the_quota() -> None:
    assert texts(behind(), quotas=(quota(used=1000, limit=70_000),)) == [
        "orders/shipping falls behind: 1 consumer takes 33/s of 180/s; at this rate 2 h to the quota"
    ]
    assert texts(behind()) == ["orders/shipping falls behind: 1 consumer takes 33/s of 180/s; 15,640 messages wait"]
    assert texts(behind(consumers=3, topic="persistent://shop/eu/orders", backlog=1_000_000)) == [
        "shop/eu/orders/shipping falls behind: 3 consumers take 33/s of 180/s; 1.00M messages wait"
    ]


@pytest.mark.parametrize(
    ("cause", "why", "severity", "remedy"),
    [
        ("no-consumer", "no consumer is connected, 180/s arrive", "error", ""),
        ("throttled", "its dispatch rate lets 33/s of 180/s through", "warning", ""),
        ("unacknowledged", "100 messages are unacknowledged, 180/s arrive", "warning", "cursor map"),
        ("unacked-limit", "100 messages are unacknowledged, 180/s arrive", "error", "cursor map"),
        ("key-blocked", "unacknowledged messages block keys, 33/s of 180/s are delivered", "error", "key map"),
        ("slow-connection", "the clients do not read, 33/s of 180/s are delivered", "warning", ""),
        ("reading", "1 consumer takes 33/s of 180/s", "warning", ""),
        (None, "1 consumer takes 33/s of 180/s", "warning", ""),
    ],
)
def test_the_cause_of_a_growing_backlog(cause: str | None, why: str, severity: str, remedy: str) -> None:
    (finding,) = found(subscriptions=(behind(cause=cause),))
    waiting = "15,540" if "unacknowledged, " in why else "15,640"
    assert finding.text == f"orders/shipping falls behind: {why}; {waiting} messages wait"
    assert (finding.severity, finding.remedy, finding.screen) == (severity, remedy, "subscriptions")


def test_no_consumer_takes_messages_after_the_last_one_has_left() -> None:
    (finding,) = found(subscriptions=(behind(consumers=0, cause=None),))
    told = "orders/shipping falls behind: no consumer is connected, 180/s arrive; 15,640 messages wait"
    assert (finding.text, finding.severity) == (told, "error"), "as with the cause"


def test_a_throttled_subscription_leads_to_the_limit_that_throttles_it() -> None:
    own = quota(subject=f"{ORDERS} shipping", policy="subscription-dispatch-rate", held=60_000)
    box = quota(subject="box", policy="dispatchThrottlingRateInMsg", held=60_000)
    other = quota(subject=f"{ORDERS} billing", policy="subscription-dispatch-rate", held=60_000)
    idle = quota(policy="dispatch-rate", held=0)
    (finding,) = found(subscriptions=(behind(cause="throttled"),), quotas=(other, box, idle, own))
    assert (finding.screen, finding.row, finding.remedy) == ("quotas", own, "quota set")
    (finding,) = found(subscriptions=(behind(cause="throttled"),), quotas=(other, box))
    assert finding.row == box
    (finding,) = found(subscriptions=(behind(cause="throttled"),), quotas=(other, idle))
    assert finding.screen == "subscriptions"


def test_the_fastest_growing_backlog_comes_first_and_the_nearest_quota_before_it() -> None:
    slow, fast = behind(subscription="slow", change=5.0), behind(subscription="fast", change=500.0)
    near = behind(subscription="near", topic="persistent://public/default/near", change=1.0)
    of_near = quota(subject=near["topic"], topic=near["topic"], used=999, limit=1000)
    order = [each.text.partition(" ")[0] for each in found(subscriptions=(slow, fast, near), quotas=(of_near,))]
    assert order == ["near/near", "orders/fast", "orders/slow"]


@pytest.mark.parametrize(
    "row",
    [
        behind(backlog=0),
        behind(backlog=60, change=30.0, trend=[30.0, 60.0, 45.0, 20.0, 60.0] * 4),
        behind(backlog=60, change=0.1, trend=[0.0] * 10 + [60.0] * 10),
        behind(change=0.01, outRate=10.0),
        behind(trend=[20_000.0, 15_640.0]),
        behind(change=-50.0, outRate=230.0),
        behind(cause="delayed"),
        behind(delayed=15_640),
        still(cause="taking-over"),
        still(cause="unacknowledged", outRate=10.0),
        behind(topic=letters()["topic"]),
    ],
    ids=[
        "none",
        "in flight",
        "just begun",
        "steady",
        "a burst",
        "drains",
        "delayed",
        "all delayed",
        "shortly",
        "acks",
        "letters",
    ],
)
def test_a_backlog_that_is_no_finding(row: dict[str, Any]) -> None:
    kinds = {each.kind for each in found(subscriptions=(row,), dead=(letters(),))}
    assert kinds == {"dead-letters"}


def test_a_burst_in_history_counts_because_it_has_no_trend() -> None:
    assert texts(behind(trend=None)) == texts(behind())


def test_a_stuck_subscription_says_since_when_and_why() -> None:
    (finding,) = found(subscriptions=(still(cause="key-blocked", causeSince=NOW - 720_000),))
    assert finding.text == "orders/shipping is stuck for 12 min: unacknowledged messages block the remaining keys"
    assert (finding.severity, finding.remedy) == ("error", "key map")
    assert texts(still(cause="no-permits", causeSince=0)) == [
        "orders/shipping is stuck: consumers have full receiver queues and request no messages"
    ]
    assert texts(still(cause="no-consumer", backlog=1)) == ["orders/shipping has no consumer: 1 message waits"]


@pytest.mark.parametrize(
    ("row", "seconds"),
    [
        (quota(), 3 * 15_640 / 147),
        (quota(used=4 << 20), 0),
        (quota(used=5 << 20), 0),
        (quota(used=0), None),
        (quota(used=None), None),
        (quota(limit=0), None),
        (quota(topic="persistent://public/default/other"), None),
    ],
)
def test_the_time_to_a_quota_of_size(row: dict[str, Any], seconds: float | None) -> None:
    assert seconds_to_quota(row, [behind()]) == (None if seconds is None else pytest.approx(seconds))


def test_the_largest_backlog_of_a_topic_counts_for_its_quota() -> None:
    small = behind(subscription="small", backlog=10, change=1000.0)
    assert seconds_to_quota(quota(), [small, behind()]) == pytest.approx(3 * 15_640 / 147)
    assert seconds_to_quota(quota(), [small, still()]) is None
    assert seconds_to_quota(quota(topic=None), [behind()]) is not None, "the subject of a topic is its name"


def test_the_oldest_message_ages_by_a_second_per_second_if_nothing_is_dispatched() -> None:
    age = quota(policy=AGE_QUOTA, unit="s", used=3000.0, limit=6600.0)
    assert seconds_to_quota(age, [still()]) == 3600
    assert seconds_to_quota(age, [behind()]) is None
    kinds = [each.text for each in found(subscriptions=(still(cause="no-consumer"),), quotas=(age,))]
    assert kinds == [
        "orders reaches its backlog quota of 1h50m in 60 min",
        "orders/shipping has no consumer: 15,640 messages wait",
    ]


def test_a_quota_that_is_reached_in_days_is_no_finding_of_its_own() -> None:
    assert texts(behind(change=0.1), quotas=(quota(),)) == [
        "orders/shipping falls behind: 1 consumer takes 33/s of 180/s; 15,640 messages wait"
    ]


def test_a_full_quota_is_told_once_and_before_all_backlogs() -> None:
    first, second = texts(behind(), quotas=(quota(holding=True, share=1.0),))
    assert first == (
        "orders accepts only as much as is consumed: its backlog has reached the quota of 4.00 MiB; "
        "the slowest subscription is shipping"
    )
    assert "falls behind" in second and "quota" not in second
    first, _ = texts(still(cause="no-consumer"), quotas=(quota(holding=True, share=1.0),))
    assert first.startswith("orders accepts no messages: its backlog")


@pytest.mark.parametrize(
    "state",
    [
        {"holding": True, "share": 1.0},
        {"holding": False, "share": 0.99},
        {"holding": False, "share": 0.9, "held": 40_000},
        {"holding": True, "share": 1.01, "held": 60_000},
    ],
)
def test_a_full_quota_is_the_same_finding_whether_it_holds_at_this_moment_or_not(state: dict[str, Any]) -> None:
    for row in (quota(**state), quota(then="hold", **state)):
        (finding,) = found(quotas=(row,))
        assert (finding.kind, finding.severity, finding.remedy) == ("quota-full", "error", "quota set")
        assert (
            finding.text == "orders accepts only as much as is consumed: its backlog has reached the quota of 4.00 MiB"
        )


def test_the_order_of_full_quotas_is_steady_and_a_loss_comes_first() -> None:
    def topic_quota(name: str, **more: Any) -> dict[str, Any]:
        return quota(subject=f"persistent://public/default/{name}", topic=f"persistent://public/default/{name}", **more)

    for share in (0.9, 1.0):
        audit = topic_quota("z-audit", then="evict", evictions=9, share=share)
        held, other = topic_quota("a", then="hold", share=1.0 + share / 9), topic_quota("b", then="hold", share=1.05)
        rows = sorted((audit, held, other), key=lambda row: -row["share"])
        assert [each.text.split(" ")[0] for each in found(quotas=tuple(rows))] == ["z-audit", "a", "b"]


def test_a_backlog_that_is_evicted_grows_only_between_evictions() -> None:
    for row in (behind(), behind(change=-5.0)):
        (finding,) = found(subscriptions=(row,), quotas=(quota(then="evict", evictions=9, share=0.95),))
        assert finding.text == (
            "orders drops its oldest messages: its backlog has reached the quota of 4.00 MiB; "
            "the slowest subscription is shipping"
        )


def test_a_backlog_at_its_quota_that_fluctuates_does_not_fall_behind() -> None:
    flat = behind(change=3.0, trend=[230.0, 240.0, 235.0, 238.0, 241.0] * 4)
    assert [each.kind for each in found(subscriptions=(flat,), quotas=(quota(then="hold", share=1.0),))] == [
        "quota-full"
    ]
    assert [each.kind for each in found(subscriptions=(flat,))] == ["falls-behind"]


def test_a_quota_that_held_producers_and_has_drained_is_no_finding() -> None:
    assert [each.kind for each in found(quotas=(quota(share=0.25, held=40_000),))] == ["calm"]


@pytest.mark.parametrize(
    ("row", "effect"),
    [
        (quota(then="evict", share=0.99, evictions=0), "drops its oldest messages"),
        (quota(then="evict", share=0.88, evictions=3), "drops its oldest messages"),
        (quota(then="refuse", share=1.0, holding=True), "refuses producers"),
    ],
)
def test_a_full_quota_names_the_effect_of_its_action(row: dict[str, Any], effect: str) -> None:
    (finding,) = found(quotas=(row,))
    assert finding.text == f"orders {effect}: its backlog has reached the quota of 4.00 MiB"
    assert (finding.kind, finding.severity) == ("quota-full", "error")


@pytest.mark.parametrize(
    ("then", "effect"),
    [("hold", "holds producers"), ("refuse", "refuses producers"), ("evict", "drops the oldest messages")],
)
def test_the_time_to_a_quota_says_what_it_does_then(then: str, effect: str) -> None:
    (finding,) = found(subscriptions=(behind(),), quotas=(quota(used=1000, limit=70_000, then=then),))
    assert finding.text.endswith(f"; at this rate 2 h to the quota, which {effect}")
    age = quota(policy=AGE_QUOTA, unit="s", used=3000.0, limit=6600.0, then=then)
    assert texts(still(), quotas=(age,))[0] == f"orders reaches its backlog quota of 1h50m in 60 min: it then {effect}"
    (finding,) = found(quotas=(quota(share=0.94, then=then, evictions=0),))
    assert finding.text == f"orders has used 94% of its backlog quota of 4.00 MiB: when it is full, it {effect}"


def test_a_quota_that_is_nearly_full_is_a_finding_without_its_backlog() -> None:
    (finding,) = found(quotas=(quota(share=0.94),))
    assert (finding.kind, finding.severity) == ("quota-soon", "warning")
    assert finding.text == "orders has used 94% of its backlog quota of 4.00 MiB"
    assert [each.kind for each in found(quotas=(quota(share=0.89),))] == ["calm"]
    other = behind(topic="persistent://public/default/other", subscription="s")
    of_other = quota(subject=other["topic"], topic=other["topic"], used=999, limit=1000)
    assert [each.screen for each in found(subscriptions=(other,), quotas=(quota(share=0.94), of_other))] == [
        "subscriptions", "quotas",
    ], "one that is reached in a known time comes first"  # fmt: skip


def test_a_growing_backlog_counts_behind_larger_ones() -> None:
    idle = tuple(still(subscription=f"s-{number}", cause="no-consumer", consumers=0) for number in range(30))
    small = behind(subscription="small", backlog=900, change=5.0, inRate=5.0, outRate=0.0, cause="no-consumer")
    facts = OverviewFacts(BUSY, idle, now=NOW, growing=(small,), growing_count=1, unused_count=291)
    assert [each.text for each in diagnosed(facts)] == [
        "orders/small falls behind: no consumer is connected, 5.0/s arrive; 900 messages wait",
        "291 subscriptions have no consumer; the largest: orders/s-0, 15,640 messages wait",
    ]
    twice = diagnosed(facts._replace(subscriptions=(*idle[1:], small)))
    assert [each.kind for each in twice] == ["falls-behind", "unused"], "each subscription counts once"
    limit = quota(used=94, limit=100, share=0.94)
    (first, *_) = diagnosed(facts._replace(subscriptions=(), quotas=(limit,)))
    assert first.kind == "quota-soon" and first.text.startswith("orders/small falls behind") and first.row == small


def test_findings_of_one_kind_are_one() -> None:
    unused = tuple(still(subscription=f"s-{number}", backlog=16 + number, cause="no-consumer") for number in range(25))
    assert texts(*unused) == ["25 subscriptions have no consumer; the largest: orders/s-24, 40 messages wait"]
    stuck = tuple(still(subscription=f"s-{number}", cause="key-blocked", backlog=9 - number) for number in range(3))
    assert texts(*stuck, still(cause="no-permits", backlog=1)) == [
        "orders/s-0 is stuck: unacknowledged messages block the remaining keys; likewise 2 other subscriptions",
        "orders/shipping is stuck: consumers have full receiver queues and request no messages",
    ]
    growing = tuple(behind(subscription=f"s-{number}", change=90.0 - number) for number in range(20))
    found_now = texts(*growing)
    assert len(found_now) == FALLING_MAX + 1 and found_now[0].startswith("orders/s-0 falls behind")
    assert found_now[-1] == "15 other subscriptions fall behind; the fastest: orders/s-5"
    (*_, last) = diagnosed(OverviewFacts(BUSY, growing, growing_count=70))
    assert last.text.startswith("At least 15 other subscriptions")


def test_messages_that_are_never_acknowledged_grow_and_do_not_wait() -> None:
    row = behind(backlog=739, unacked=739, change=12.0, inRate=370.0, outRate=370.0, cause="unacknowledged")
    row |= {"trend": [500.0 + 12 * at for at in range(20)]}
    assert not numbers.keeps_up(row) and numbers.drain(row) == "never"
    assert texts(row) == ["orders/shipping falls behind: 739 messages are unacknowledged, 370/s arrive"]
    assert texts(row | {"cause": "no-permits"}) == [
        "orders/shipping falls behind: 1 consumer takes 370/s of 370/s; 739 messages are unacknowledged"
    ]
    without = {name: value for name, value in row.items() if name != "trend"}
    assert numbers.keeps_up(without), "it may fluctuate"
    assert not numbers.keeps_up(without | {"change": 365.0})


def test_a_publish_rate_counts_from_a_second_on() -> None:
    row = quota(policy="publish-rate", unit="messages/s", limit=80.0, held=44_400)
    assert [each.text for each in found(quotas=(row,))] == [
        "Producers of orders were throttled for 74% of the last minute: the publish rate is 80/s"
    ]
    assert [each.kind for each in found(quotas=(row | {"held": 900},))] == ["calm"]
    box = row | {"subject": "box", "policy": "brokerPublisherThrottlingMaxByteRate", "unit": "bytes/s", "limit": 1024}
    assert "of the box were" in found(quotas=(box,))[0].text and "1.00 KiB/s" in found(quotas=(box,))[0].text


def test_a_disk_is_nearly_full_by_its_share_its_bytes_or_soon() -> None:
    def told(free: int, used: int, rate: float = 0.0) -> str:
        return found({"diskFree": free, "diskUsed": used, "publishBytes": rate})[0].text

    assert told(DISK_BYTES - 1, 1 << 40) == "The disk is nearly full: 2.00 GiB free"
    assert told(DISK_BYTES, 1 << 40).startswith("Nothing")
    assert told(1 << 30, 1 << 31).startswith("Nothing"), "much of a small disk"
    assert told(36 << 30, 1 << 40, 1 << 30) == (
        "The disk is filling up: 36.0 GiB free; at 1.00 GiB/s published it is full in 36 s"
    )
    assert told(36 << 30, 1 << 40, 1 << 20).startswith("Nothing")


def test_lost_directories_and_missing_copies_are_one_finding() -> None:
    assert [each.text for each in found({"lostDirectories": 1, "lackingCopies": 1})] == [
        "1 data directory is lost: 1 entry lacks a copy"
    ]
    assert found({"lackingCopies": 1_204})[0].text == "1,204 entries lack a copy"
    assert found({"lostDirectories": 2, "lackingCopies": 0})[0].text == "2 data directories are lost"
    assert found({"unread": 1})[0].text == "1 connection is not read: a limit holds back the clients"
    assert found({"suspended": 3})[0].text == "3 producers are suspended: a limit holds back the clients"


def test_dead_letter_topics_are_one_finding_for_each_kind_of_them() -> None:
    dead = (
        letters(topic="persistent://public/default/a-DLQ", left=1),
        letters(topic="persistent://public/default/b-DLQ", left=9),
        letters(topic="persistent://public/default/c-DLQ", rate=0.4, left=3),
        letters(topic="persistent://public/default/d-DLQ", left=0),
    )
    assert [each.text for each in found(dead=dead)] == [
        "Messages fail: c-DLQ receives 0.4/s and has 3 dead letters",
        "9 dead letters wait in b-DLQ; likewise in 1 other topic",
    ]


def test_a_finding_as_json_names_its_object() -> None:
    (finding,) = found(subscriptions=(behind(),))
    assert finding.as_json() == {
        "kind": "falls-behind",
        "severity": "warning",
        "text": finding.text,
        "screen": "subscriptions",
        "topic": ORDERS,
        "subscription": "shipping",
    }
    assert found()[0].as_json()["topic"] is None
