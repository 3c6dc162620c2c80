"""Distributions of latency and size (``broker.stats.commit_stats``) report the recorded values."""

import math
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarbox.broker.stats.commit_stats import (
    FINE_MS,
    LATENCY_MS,
    SAMPLE_ENTRIES,
    SAMPLE_SECONDS,
    SIZES,
    CommitTimes,
    Traffic,
    spread,
)
from pulsarbox.clock import Now
from pulsarbox.storage.ledger import ManagedLedger
from tests.unit.broker.playbook import AS_PULSAR, TOPIC, Box


def at(seconds: float) -> Now:
    return Now(seconds, 0)


def test_the_fine_bounds_hold_those_of_pulsar_and_grow() -> None:
    assert set(LATENCY_MS) <= set(FINE_MS)
    assert list(FINE_MS) == sorted(set(FINE_MS))
    assert max(b / a for a, b in pairwise(FINE_MS)) < 1.26


def test_entries_count_by_what_the_oldest_of_their_commit_has_waited() -> None:
    times = CommitTimes(at(0))
    times.committed(0.0004, 0.0, 3, 300)
    times.committed(0.0008, 0.003, 5, 500)  # 3.8 ms
    times.committed(30.0, 0.0, 2, 200)
    times.committed(0.01, 0.0, 0, 10)  # acknowledgements only
    found = times.last_minute(at(60))
    assert found.entries == pytest.approx(10)
    assert spread(10, found.shares) == (3, 0, 5, 0, 0, 0, 0, 0, 0, 2)
    assert found.mean_ms == pytest.approx((3 * 0.4 + 5 * 3.8 + 2 * 30_000) / 10, rel=0.001)
    assert (times.commits, times.entries, times.bytes) == (4, 10, 1010)
    assert times.seconds == pytest.approx(30.0112)


def test_what_is_older_than_a_minute_counts_no_more() -> None:
    times = CommitTimes(at(0))
    times.committed(0.5, 0.0, 100, 1)
    for second in range(0, 120, 10):
        times.sample_rates(at(second))
    times.committed(0.002, 0.0, 7, 1)
    found = times.last_minute(at(125))
    assert spread(round(found.entries), found.shares)[2] == round(found.entries) > 0


def test_a_box_without_entries_has_no_latencies() -> None:
    times = CommitTimes(at(0))
    found = times.last_minute(at(1))
    assert (found.entries, found.mean_ms, set(found.shares)) == (0, 0.0, {0.0})
    assert math.isnan(found.quantile(0.5))


@given(st.lists(st.floats(0.00006, 15), min_size=1, max_size=50), st.sampled_from((0.5, 0.95, 0.99, 1.0)))
def test_a_quantile_is_as_fine_as_the_bounds(seconds: list[float], share: float) -> None:
    times = CommitTimes(at(0))
    for each in seconds:
        times.committed(each, 0.0, 1, 1)
    exact = sorted(seconds)[math.ceil(share * len(seconds)) - 1] * 1000
    found = times.last_minute(at(60)).quantile(share)
    assert exact <= found * 1.000001
    assert found <= exact * 1.26


@given(st.integers(0, 10_000), st.lists(st.floats(0, 1000), min_size=1, max_size=12).filter(lambda x: sum(x) > 0.001))
def test_what_is_spread_over_buckets_is_all_there(count: int, weights: list[float]) -> None:
    total, upto, shares = sum(weights), 0.0, []
    for weight in weights:
        upto += weight
        shares.append(upto / total)
    shares[-1] = 1.0
    found = spread(count, tuple(shares))
    assert sum(found) == count
    assert min(found) >= 0


def test_of_sizes_one_commit_is_looked_into_at_a_time() -> None:
    times, seen = CommitTimes(at(0)), list[int]()

    class Seen:
        traffic = SimpleNamespace(add_sizes=lambda sizes: seen.append(len(sizes)))

    topic = cast(Any, Seen())
    entries = cast(Any, [SimpleNamespace(body=b"x")] * (SAMPLE_ENTRIES + 5))
    times.sample({topic: entries}, at(1))
    times.sample({topic: entries}, at(1 + SAMPLE_SECONDS / 2))
    times.sample({topic: entries[:3]}, at(1 + SAMPLE_SECONDS))
    assert seen == [SAMPLE_ENTRIES, 3]


def test_sizes_fall_into_pulsars_buckets_and_old_ones_fade() -> None:
    traffic = Traffic(ManagedLedger(1))
    assert spread(8, traffic.size_shares(600.0)) == (0, 0, 8, 0, 0, 0, 0, 0, 0), "not looked at: by their mean"
    traffic.add_sizes([1, 128, 129, 1024, 1025, 102_400, 102_401, 2_000_000])
    assert spread(8, traffic.size_shares(0.0)) == (2, 1, 1, 1, 0, 0, 1, 1, 1)
    assert len(SIZES) == 8
    for _ in range(2000):
        traffic.add_sizes([500])
    assert traffic.size_shares(0.0)[1] - traffic.size_shares(0.0)[0] > 0.99


def test_entries_count_that_are_trimmed_already() -> None:
    box = Box(managedLedgerMaxEntriesPerLedger=4, **AS_PULSAR)
    client = box.client()
    client.producer()
    topic = next(iter(box.broker.topics))
    box.advance(5.0)
    topic.sample(box.now)
    for i in range(30):
        client.send(i)
    box.advance(10.0)
    assert topic.ledger.confirmed_entries < 30, "nobody wants them"  # type: ignore[attr-defined]
    assert topic.traffic.entries_a_second(box.now) == pytest.approx(3.0)  # type: ignore[attr-defined]
    box.advance(70.0)
    topic.sample(box.now)
    box.advance(60.0)
    assert topic.traffic.entries_a_second(box.now) == 0.0  # type: ignore[attr-defined]
    assert str(topic.name) == TOPIC


def test_the_box_counts_its_commits_and_how_long_they_took() -> None:
    box = Box(auto=False)
    client = box.client(connect=True)
    client.ask("producer", topic=TOPIC, producer_id=1, request_id=1)
    while box.commit():
        pass
    times = box.broker.commits.times
    before = times.entries, times.commits
    client.send(0)
    box.advance(0.003)  # the entry waits for the next batch
    client.send(1)
    batch = box.broker.take_batch(box.now)
    assert batch is not None
    box.advance(0.004)
    box.engine.commit(batch)
    box.broker.committed(batch, box.now)
    assert (times.entries, times.commits) == (before[0] + 2, before[1] + 1)
    assert times.waited_ms == pytest.approx(2 * 7.0)
    client.send(2)
    failing = box.broker.take_batch(box.now)
    assert failing is not None
    box.broker.committed(failing, box.now, OSError("gone"))
    assert times.failed == 1
