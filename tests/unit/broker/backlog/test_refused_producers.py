"""Producers refused by a backlog quota: remembered while they retry, within bounds."""

from pulsarbox.broker.backlog.refused_producers import PRODUCERS_MAX, QUIET_MS, RefusedProducers
from pulsarbox.clock import Now


def at(millis: int) -> Now:
    return Now(millis / 1000, millis)


def test_a_producer_is_remembered_from_its_first_attempt_until_it_is_admitted() -> None:
    refused = RefusedProducers()
    first, is_new = refused.note("t", "p", "host:1", 5, at(1000))
    again, is_still_new = refused.note("t", "p", "host:1", 5, at(4000))
    assert (is_new, is_still_new, again is first, again.since, again.last) == (True, False, True, 1000, 4000)
    assert refused.waiting(at(5000)) == [first] and first.waits(at(5000))
    refused.forget("host:1", 5)
    assert refused.waiting(at(5000)) == [] and not first.waits(at(5000))


def test_a_producer_that_no_longer_tries_is_forgotten() -> None:
    refused = RefusedProducers()
    refused.note("t", "old", "host:1", 1, at(0))
    new, _ = refused.note("t", "new", "host:1", 2, at(QUIET_MS - 1))
    assert refused.waiting(at(QUIET_MS)) == [new]


def test_only_the_last_producers_are_remembered_however_many_are_refused() -> None:
    refused = RefusedProducers()
    made = [refused.note("t", f"p{each}", "host:1", each, at(each))[0] for each in range(50 * PRODUCERS_MAX)]
    assert refused.waiting(at(50 * PRODUCERS_MAX)) == made[-PRODUCERS_MAX:]
    assert [each.is_over for each in made].count(False) == PRODUCERS_MAX


def test_another_name_on_the_same_id_is_another_producer() -> None:
    refused = RefusedProducers()
    first, _ = refused.note("t", "a", "host:1", 1, at(0))
    second, is_new = refused.note("t", "b", "host:1", 1, at(10))
    assert (is_new, first.is_over, refused.waiting(at(20))) == (True, True, [second])
    assert second.words == "producer 'b' at host:1"
