"""Both AUTO_SPLIT selectors, by example and under random sequences of joining and leaving consumers."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pulsarbox.broker.dispatch.selectors.consistent_hashing import ConsistentHashingSelector
from pulsarbox.broker.dispatch.selectors.hash_range import HashRangeSelector
from pulsarbox.broker.dispatch.selectors.selector import StickyKeySelector, key_hash
from pulsarbox.errors import ConsumerAssignError
from tests.tools.campaigns import examples
from tests.unit.broker.dispatch.selectors.consumers import SLOTS, Someone, by_ranges, owners

MAKERS: dict[str, Callable[[], StickyKeySelector[Someone]]] = {
    "hash range": HashRangeSelector,
    "ring": lambda: ConsistentHashingSelector(100),
    "ring of few points": lambda: ConsistentHashingSelector(2),
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
class TestAll:
    def test_without_consumers(self, make: Callable[[], StickyKeySelector[Someone]]) -> None:
        selector = make()
        assert selector.select(1) is None
        assert selector.ranges() == {}
        selector.remove(Someone("never came"))

    @given(steps=st.lists(st.tuples(st.booleans(), st.integers(0, 5)), max_size=14))
    @settings(max_examples=examples(40))
    def test_only_who_comes_gains_and_only_what_the_leaver_had_moves(
        self, make: Callable[[], StickyKeySelector[Someone]], steps: list[tuple[bool, int]]
    ) -> None:
        selector = make()
        here: list[Someone] = []
        before, cuts_before = by_ranges(selector), {1, 65535}
        for come, number in steps:
            comer = leaver = None
            losers: list[Someone] = []
            if come or not here:
                comer = Someone(f"c{number}")
                here.append(comer)
                losers = list(selector.add(comer))
            else:
                leaver = here.pop(number % len(here))
                selector.remove(leaver)
            after = by_ranges(selector)
            assert (None in after[1:65536]) == (not here), "each slot has an owner"
            ends = {end for ranges in selector.ranges().values() for pair in ranges for end in pair}
            cuts = {1, 65535, *(end for end in ends if 1 <= end <= 65535)}
            assert all(selector.select(slot) is after[slot] for slot in cuts)
            # Owners change only at cuts, so the ends of all ranges represent all slots.
            moved = [(before[slot], after[slot]) for slot in cuts | cuts_before if before[slot] is not after[slot]]
            if comer is not None:
                assert all(new is comer for _, new in moved)
                assert len(losers) == len(set(losers)), "each is named once"
                assert set(losers) == {old for old, _ in moved} - {None}
            else:
                assert all(old is leaver for old, _ in moved)
                assert leaver not in after
            before, cuts_before = after, cuts

    def test_a_thousand_consumers_come_and_go(self, make: Callable[[], StickyKeySelector[Someone]]) -> None:
        selector = make()
        crowd = [Someone(f"consumer-{i}") for i in range(1000)]
        for each in crowd:
            selector.add(each)
        assert None not in owners(selector)
        for each in crowd[1:]:
            selector.remove(each)
        assert set(owners(selector)) == {crowd[0]}
        selector.remove(crowd[0])
        assert selector.select(7) is None


def test_hash_ranges_are_halved_from_below() -> None:
    selector = HashRangeSelector[Someone]()
    a, b, c, d = (Someone(name) for name in "abcd")
    assert selector.add(a) == []
    assert selector.ranges() == {a: [(0, 65536)]}
    assert selector.add(b) == [a]
    assert selector.ranges() == {b: [(0, 32768)], a: [(32769, 65536)]}
    assert selector.add(c) == [b], "of equal ranges the lowest is divided"
    assert selector.add(d) == [a]
    assert selector.ranges() == {c: [(0, 16384)], b: [(16385, 32768)], d: [(32769, 49152)], a: [(49153, 65536)]}
    assert (selector.select(16384), selector.select(16385)) == (c, b)
    selector.remove(b)
    assert selector.ranges() == {c: [(0, 16384)], d: [(16385, 49152)], a: [(49153, 65536)]}
    selector.remove(a)
    assert selector.ranges() == {c: [(0, 16384)], d: [(16385, 65536)]}


def test_hash_ranges_of_one_slot_cannot_be_divided() -> None:
    selector = HashRangeSelector[Someone]()
    for i in range(65536):
        selector._insert(i, i + 1, Someone("c"))  # add() would search for the largest range 65536 times
    with pytest.raises(ConsumerAssignError) as refusal:
        selector.add(Someone("one more"))
    assert str(refusal.value) == "No more range can assigned to new consumer, assigned consumers 65536"


def _point(name: str, number: int, i: int) -> int:
    return key_hash(f"{name}\0{number}\0{i}".encode()) % 65535 + 1


def test_points_follow_from_the_name() -> None:
    selector = ConsistentHashingSelector[Someone](100)
    a, b = Someone("first"), Someone("second")
    selector.add(a)
    selector.add(b)
    ring = sorted((_point(each.name, 0, i), each.name) for each in (a, b) for i in range(100))
    assert len({point for point, _ in ring}) == 200, "an example without collisions"
    for slot in (*SLOTS[::97], 1, 65535):
        name = next((name for point, name in ring if point >= slot), ring[0][1])
        owner = selector.select(slot)
        assert owner is not None and owner.name == name


KEYS = [f"key{i}" for i in range(24)]


def keys_of(selector: StickyKeySelector[Someone]) -> dict[Someone, str]:
    """Return the numbers of the keys that each consumer owns."""
    found: dict[Someone, list[str]] = {}
    for i, key in enumerate(KEYS):
        owner = selector.select(selector.slot(key_hash(key.encode())))
        assert owner is not None
        found.setdefault(owner, []).append(str(i))
    return {owner: " ".join(numbers) for owner, numbers in found.items()}


def test_keys_go_where_a_broker_sent_them() -> None:
    """Ranges as reported in the topic statistics of Pulsar 4.2.4."""
    selector = ConsistentHashingSelector[Someone](100)
    alpha, beta, gamma, delta, epsilon = (Someone(name) for name in ("alpha", "beta", "gamma", "delta", "epsilon"))
    selector.add(alpha)
    selector.add(beta)
    assert keys_of(selector)[alpha] == "2 5 7 10 13 14 15 16 18 21 22 23"
    selector.add(gamma)
    assert keys_of(selector) == {
        alpha: "2 5 13 14 15 16 18 21 22 23",
        beta: "0 1 4 6 12 17",
        gamma: "3 7 8 9 10 11 19 20",
    }
    ranges = selector.ranges()[alpha]
    assert len(ranges) == 59
    assert ranges[:4] == [(122, 1121), (1128, 1584), (5338, 6078), (7754, 7893)]
    selector.add(delta)
    selector.add(epsilon)
    assert keys_of(selector) == {
        alpha: "5 13 14 18 22 23",
        beta: "0 1 4 6 12",
        gamma: "3 8 9 10 11 19",
        delta: "15 21",
        epsilon: "2 7 16 17 20",
    }
    selector.remove(alpha)
    selector.remove(beta)
    assert keys_of(selector) == {
        gamma: "1 3 5 8 9 10 11 14 19 22 23",
        delta: "0 6 12 13 15 21",
        epsilon: "2 4 7 16 17 18 20",
    }


def test_keys_of_one_name_go_where_a_broker_sent_them() -> None:
    selector = ConsistentHashingSelector[Someone](100)
    first, second, third = (Someone("same") for _ in range(3))
    for each in (first, second, third):
        selector.add(each)
    assert keys_of(selector) == {
        first: "1 8 9 12 14 15 18 19 21",
        second: "0 2 4 5 10 11 16 17 20 22 23",
        third: "3 6 7 13",
    }


def test_consumers_of_one_name_are_numbered() -> None:
    selector = ConsistentHashingSelector[Someone](100)
    first, second, third = Someone("same"), Someone("same"), Someone("same")
    for each in (first, second, third):
        selector.add(each)
    for number, each in enumerate((first, second, third)):
        assert selector.select(_point("same", number, 0)) is each
    selector.remove(second)
    again = Someone("same")
    selector.add(again)
    assert selector.select(_point("same", 1, 0)) is again, "the lowest number that is free"


def test_who_comes_back_has_the_same_slots() -> None:
    selector = ConsistentHashingSelector[Someone](100)
    for name in ("a", "b", "c"):
        selector.add(Someone(name))
    before = [each.name for each in owners(selector) if each]
    gone = next(each for each in selector.ranges() if each.name == "b")
    selector.remove(gone)
    selector.add(Someone("b"))
    assert [each.name for each in owners(selector) if each] == before


def test_colliding_points_go_to_the_next_in_turn() -> None:
    """Names that collide at one slot: the first owns the slot, and the others queue in order."""
    by_slot: dict[int, list[str]] = {}
    for i in range(2000):
        by_slot.setdefault(_point(f"n{i}", 0, 0), []).append(f"n{i}")
    slot, names = max(by_slot.items(), key=lambda item: len(item[1]))
    selector = ConsistentHashingSelector[Someone](1)
    here = [Someone(name) for name in names[:2]]
    for each in here:
        selector.add(each)
    late = Someone(names[0])  # a second consumer of the same name has number 1, and thus another slot
    selector.add(late)
    assert selector.select(slot) is here[0]
    assert here[1] not in owners(selector), "it has no slots as long as the other has its point"
    selector.remove(here[0])
    assert selector.select(slot) is here[1]
    selector.add(here[0])
    selector.remove(here[0])
    assert selector.select(slot) is here[1], "one that waits may leave"
    selector.remove(here[1])
    assert set(owners(selector)) == {late}


def test_ranges_of_the_ring_are_joined_and_wrap_round() -> None:
    selector = ConsistentHashingSelector[Someone](3)
    a = Someone("a")
    selector.add(a)
    assert selector.ranges() == {a: [(1, 65535)]}
