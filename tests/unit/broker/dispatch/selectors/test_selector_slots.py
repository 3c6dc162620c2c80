"""Hashes and slots, compared with values computed by Pulsar."""

import pytest
from mmh3 import hash as murmur3_32

from pulsarbox.broker.dispatch.selectors.consistent_hashing import ConsistentHashingSelector
from pulsarbox.broker.dispatch.selectors.hash_range import HashRangeSelector
from pulsarbox.broker.dispatch.selectors.selector import StickyKeySelector, key_hash
from pulsarbox.broker.dispatch.selectors.sticky_ranges import StickyRangesSelector
from tests.unit.broker.dispatch.selectors.consumers import Someone


@pytest.mark.parametrize(
    ("key", "value"),
    [(b"key1", 462881061), (b"key2", 1936800180), (b"k1", 2110152746), (b"key01", 39696932)],
)
def test_hash_of_a_key(key: bytes, value: int) -> None:
    assert key_hash(key) == value


@pytest.mark.parametrize("selector", [HashRangeSelector[Someone](), StickyRangesSelector[Someone]()])
def test_slots_of_ranges_begin_at_zero(selector: StickyKeySelector[Someone]) -> None:
    assert murmur3_32(b"Order-3459134", 0, False) == 3112179635
    assert selector.slot(3112179635) == selector.slot(key_hash(b"Order-3459134")) == 6067
    assert selector.slot(key_hash(b"key1")) == 293
    assert selector.slot(key_hash(b"key2")) == 14772
    assert [selector.slot(hash_) for hash_ in (0, 65536, 1, 65535)] == [1, 1, 1, 65535]


def test_slots_of_the_ring_begin_at_one() -> None:
    selector = ConsistentHashingSelector[Someone](100)
    assert selector.slot(key_hash(b"key1")) == 7357
    assert selector.slot(key_hash(b"key2")) == 44326
    assert [selector.slot(hash_) for hash_ in (0, 65534, 65535)] == [1, 65535, 1]
    assert selector.slot(3112179635) == selector.slot(3112179635 & 0x7FFFFFFF), "the sign bit does not count"
