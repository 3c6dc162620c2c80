"""The history checker accepts correct histories, and each rule rejects a history that violates it."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from tests.crash.history import Checker, Verdict

Events = list[dict[str, Any]]
TOPIC, SUBSCRIPTION = "t", "s"


def sent(seq: int) -> dict[str, Any]:
    return {"kind": "sent", "topic": TOPIC, "producer": "p", "seq": seq}


def receipted(seq: int, entry: int) -> dict[str, Any]:
    return {**sent(seq), "kind": "receipted", "id": [1, entry, -1]}


def opened(consumer: str) -> dict[str, Any]:
    return {"kind": "opened", "topic": TOPIC, "subscription": SUBSCRIPTION, "consumer": consumer}


def received(seq: int, entry: int, consumer: str = "c1") -> dict[str, Any]:
    return {**opened(consumer), **receipted(seq, entry), "kind": "received"}


def acked(entry: int, consumer: str = "c1") -> dict[str, Any]:
    return {**opened(consumer), "kind": "acked", "id": [1, entry, -1]}


def log(seq: int, entry: int) -> dict[str, Any]:
    return {**receipted(seq, entry), "kind": "log"}


def good() -> Events:
    """Four messages; number 2 was published twice because its receipt was lost, and was received twice."""
    return [
        opened("c1"), sent(0), sent(1), sent(2), sent(3),
        receipted(0, 0), received(0, 0), receipted(1, 1), acked(0), received(1, 1), received(2, 2),
        {"kind": "killed"}, {"kind": "ready", "seconds": 0.2},
        receipted(2, 3), receipted(3, 4), received(1, 1), received(2, 2), received(2, 3), received(3, 4),
        acked(1), acked(2), acked(3), acked(4),
        opened("audit"), log(0, 0), log(1, 1), log(2, 2), log(2, 3), log(3, 4),
    ]  # fmt: skip


def judge(events: Iterable[dict[str, Any]], ordered: bool = True, queue: int = 3, once: bool = False) -> Verdict:
    topics = [TOPIC] if once else []
    return Checker([SUBSCRIPTION] if ordered else [], {SUBSCRIPTION: TOPIC}, queue, topics).check(events)


def duplicate(seq: int) -> dict[str, Any]:
    return {**sent(seq), "kind": "receipted", "id": [-1, -1, -1]}


def without(*dropped: dict[str, Any]) -> Callable[[Events], Events]:
    return lambda events: [event for event in events if event not in dropped]


def plus(*added: dict[str, Any]) -> Callable[[Events], Events]:
    return lambda events: [*events, *added]


def replaced(old: dict[str, Any], new: dict[str, Any]) -> Callable[[Events], Events]:
    return lambda events: [new if event == old else event for event in events]


def swapped(one: dict[str, Any], other: dict[str, Any]) -> Callable[[Events], Events]:
    def swap(events: Events) -> Events:
        first, second = events.index(one), events.index(other)
        events[first], events[second] = events[second], events[first]
        return events

    return swap


def test_a_good_history_passes_and_is_counted() -> None:
    verdict = judge(good())
    assert verdict.violations == []
    counts = verdict.counts
    assert (counts["sent"], counts["receipted"], counts["killed"]) == (4, 4, 1)
    assert (counts["delivered again"], counts["published twice by the client"]) == (2, 1)


def test_what_never_got_a_receipt_may_be_missing() -> None:
    assert judge(plus(sent(9))(good())).violations == []


@pytest.mark.parametrize(
    ("doctor", "rule"),
    [
        (without(log(3, 4)), "nothing receipted is lost"),
        (replaced(log(3, 4), log(3, 5)), "nothing receipted is lost"),
        (without(received(3, 4)), "each subscription gets all"),
        (plus(opened("c2"), received(0, 0, "c2")), "nothing after its ack receipt"),
        (plus(received(9, 9), received(9, 9), received(9, 9), received(9, 9), received(0, 0)), "nothing after"),
        (swapped(received(0, 0), received(1, 1)), "order"),
        (swapped(log(0, 0), log(1, 1)), "order"),
        (lambda events: replaced(log(0, 0), log(1, 0))(replaced(log(1, 1), log(0, 1))(events)), "order"),
        (plus(received(7, 7)), "nothing but what was sent"),
        (plus({**log(3, 5), "damaged": True}), "nothing but what was sent"),
        (plus(receipted(1, 0)), "one receipt for a place"),
    ],
    ids=[
        "lost", "moved", "missed", "again-to-a-new-consumer", "again-to-an-old-consumer", "delivered-out-of-order",
        "log-goes-back", "log-out-of-order", "invented", "damaged", "two-receipts",
    ],
)  # fmt: skip
def test_a_doctored_history_fails(doctor: Callable[[Events], Events], rule: str) -> None:
    assert [text for text in judge(doctor(good())).violations if text.startswith(rule)]


def test_order_is_asked_of_subscriptions_with_one_consumer_only() -> None:
    assert judge(swapped(received(0, 0), received(1, 1))(good()), ordered=False).violations == []


def test_a_delayed_message_comes_a_tick_before_its_time_at_most() -> None:
    history = [
        {"at": 1_000_000_000 * second, **event}
        for second, event in enumerate([opened("c1"), {**sent(0), "due": 5_000}, receipted(0, 0), received(0, 0)])
    ]
    late = [*history[:3], {**history[3], "at": 4_000_000_000}, {**log(0, 0), "at": 5_000_000_000}]
    assert judge(late, ordered=False).violations == []
    assert judge(late).counts["delayed"] == 1
    early = [*history, {**log(0, 0), "at": 5_000_000_000}]
    (violation,) = judge(early, ordered=False).violations
    assert violation == "nothing before its time: s got p 0 2.00 s before it was due"
    assert judge(early).violations == [], "one consumer alone gets it when its turn has come"


def test_a_copy_that_waited_in_the_queue_is_no_redelivery() -> None:
    verdict = judge(plus(received(3, 4))(good()))
    assert verdict.violations == []
    assert verdict.counts["acknowledged while in a queue"] == 1


def once() -> Events:
    """A history with deduplication: number 2 has the receipt of a duplicate, and is in the log once."""
    return [duplicate(2) if event == receipted(2, 3) else event for event in without(received(2, 3), log(2, 3))(good())]


def test_with_deduplication_a_good_history_passes_and_is_counted() -> None:
    verdict = judge(once(), once=True)
    assert verdict.violations == []
    assert (verdict.counts["stored exactly once"], verdict.counts["receipts of duplicates"]) == (4, 1)


@pytest.mark.parametrize(
    "doctor",
    [
        plus(log(3, 5)),
        without(log(1, 1), receipted(1, 1), received(1, 1)),
        without(log(2, 2), received(2, 2)),
        plus(sent(4), duplicate(4)),
        lambda events: good(),
    ],
    ids=["twice", "a-gap", "a-duplicate-of-nothing", "the-last-one-is-missing", "resent-by-the-client"],
)
def test_with_deduplication_a_doctored_history_fails(doctor: Callable[[Events], Events]) -> None:
    told = judge(doctor(once()), once=True).violations
    assert [text for text in told if text.startswith("exactly once")]
