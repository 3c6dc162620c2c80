"""Events of a box: numbered, stored, and merged when frequent."""

import pytest

from pulsarbox.broker.events import BOOT_STEP, KINDS, PERIOD_SECONDS, RING, SEVERITIES, SUBJECTS_MAX, Event, Events
from pulsarbox.clock import Now


def at(seconds: float) -> Now:
    return Now(seconds, 1_700_000_000_000 + round(seconds * 1000))


def all_of(events: Events) -> list[Event]:
    return events.after(0, RING)


def test_an_event_has_a_number_a_time_a_severity_and_words() -> None:
    events = Events(3)
    events.report("quota-hit", "t", "full", at(5), limit=7)
    (event,) = all_of(events)
    assert event.as_json() == {
        "sequence": 3 * BOOT_STEP + 1,
        "time": 1_700_000_005_000,
        "severity": "warning",
        "kind": "quota-hit",
        "subject": "t",
        "text": "full",
        "count": 1,
        "fields": {"limit": 7},
    }


def test_a_kind_that_nobody_knows_cannot_be_told() -> None:
    with pytest.raises(KeyError):
        Events().report("nonsense", "", "", at(0))


def test_each_kind_has_a_severity_and_a_meaning() -> None:
    assert all(kind.severity in SEVERITIES and kind.meaning for kind in KINDS.values())


def test_a_teller_may_know_better_how_severe_it_is() -> None:
    events = Events()
    events.report("job-paused", "j", "failed", at(0), severity="error", id=4)
    assert (all_of(events)[0].severity, dict(all_of(events)[0].fields)) == ("error", {"id": 4})


def test_what_happens_again_is_told_as_a_number_when_the_period_is_over() -> None:
    events = Events()
    for _ in range(1001):
        events.report("dead-letters", "t", "one moved", at(1))
    assert [each.text for each in all_of(events)] == ["one moved"]
    events.settle(at(PERIOD_SECONDS))
    assert len(all_of(events)) == 1
    events.settle(at(1 + PERIOD_SECONDS))
    assert [(each.subject, each.count) for each in all_of(events)] == [("t", 1), ("t", 1000)]
    assert "1,000 more" in all_of(events)[1].text
    events.settle(at(500))
    assert len(all_of(events)) == 2


def test_counts_add_up_whatever_is_told_of_them() -> None:
    events = Events()
    for number in range(5000):
        events.report("client-connected", f"c{number % 700}", "here", at(number / 100), count=1 + number % 3)
    events.settle(at(1000))
    assert sum(each.count for each in all_of(events)) == sum(1 + number % 3 for number in range(5000))
    assert len(all_of(events)) <= 6 * (2 * SUBJECTS_MAX + 1)


def test_a_storm_of_one_kind_does_not_hide_another() -> None:
    events = Events()
    for number in range(SUBJECTS_MAX + 500):
        events.report("client-connected", f"c{number}", "here", at(0))
    events.report("quarantined", "t", "damaged", at(0))
    kinds = [each.kind for each in all_of(events)]
    assert (kinds.count("client-connected"), kinds[-1]) == (SUBJECTS_MAX, "quarantined")
    events.settle(at(60))
    assert (all_of(events)[-1].subject, all_of(events)[-1].count) == ("", 500)


def test_the_next_of_a_kind_ends_a_period_that_is_over() -> None:
    events = Events()
    events.report("evicted", "t", "first", at(0))
    events.report("evicted", "t", "second", at(1))
    events.report("evicted", "t", "third", at(PERIOD_SECONDS + 1))
    texts = [(each.text, each.count) for each in all_of(events)]
    assert texts == [("first", 1), ("1 more occurrence within 10 s", 1), ("third", 1)]


def test_repetitions_have_the_severity_of_their_event() -> None:
    events = Events()
    for part, severity in (("created", "info"), ("created refused", "warning")):
        for _ in range(3):
            events.report("changed", "t", part, at(0), part=part, severity=severity)
    events.settle(at(PERIOD_SECONDS + 1))
    assert [(each.severity, each.text) for each in all_of(events)] == [
        ("info", "created"),
        ("warning", "created refused"),
        ("info", "2 more occurrences within 10 s"),
        ("warning", "2 more occurrences within 10 s"),
    ]


def test_the_ring_is_bounded_and_is_read_from_any_number() -> None:
    events = Events()
    for number in range(RING + 10):
        events.report("changed", f"{number}", "", at(number * PERIOD_SECONDS))
    assert (events.first, events.last) == (11, RING + 10)
    assert [each.sequence for each in events.after(0, 3)] == [11, 12, 13]
    assert [each.sequence for each in events.after(15, 2)] == [16, 17]
    assert [each.sequence for each in events.after(RING + 9, 9)] == [RING + 10]
    assert events.after(RING + 10, 9) == []
    assert events.after(RING + 1000, 9) == []


def test_what_has_no_time_gets_it_when_it_is_settled() -> None:
    events = Events()
    events.report_undated("plugin-failed", "hashing x", "broken", kind_of="hashing")
    assert all_of(events) == []
    events.settle(at(9))
    assert (all_of(events)[0].time, all_of(events)[0].subject) == (at(9).wall, "hashing x")


def test_listeners_hear_of_each_event_in_order_and_may_leave() -> None:
    events, heard = Events(), []

    def once(event: Event) -> None:
        heard.append(("once", event.sequence))
        del events.listeners[once]

    events.listeners[once] = None
    events.listeners[lambda event: heard.append(("all", event.sequence))] = None
    events.report("started", "", "a", at(0))
    events.report("stopping", "", "b", at(0))
    assert heard == [("once", 1), ("all", 1), ("all", 2)]


def test_long_words_are_cut() -> None:
    events = Events()
    events.report("changed", "s" * 10_000, "t" * 10_000, at(0))
    (event,) = all_of(events)
    assert len(event.subject) == len(event.text) == 500
