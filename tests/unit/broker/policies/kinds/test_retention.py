"""Retention in virtual time: the combinations of Pulsar's cookbook, and data that is never deleted."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarbox.broker.policies.kinds.retention import (
    LedgerBounds,
    Retention,
    current_ledger_retention,
    ledger_bounds,
)
from tests.unit.broker.playbook import AS_PULSAR, Box
from tests.unit.broker.policies.kept import (
    DAY,
    HOUR,
    MINUTE,
    backlog,
    ledgers,
    publish,
    set_policy,
    set_topic_policy,
    subscribed,
    topic_of,
    unload,
)

MIB = 1 << 20


def retention(minutes: int, megabytes: int) -> dict[str, int]:
    return {"retentionTimeInMinutes": minutes, "retentionSizeInMB": megabytes}


def clear(box: Box, subscription: str = "s") -> None:
    """Acknowledge all messages."""
    topic_of(box).subscriptions[subscription].clearing.clear(lambda now: None, box.now)
    box.turn()


def stored(box: Box) -> int:
    """Return the stored bytes of all entries."""
    return topic_of(box).ledger.size


def acknowledged(box: Box, megabytes: int) -> None:
    """Publish and acknowledge an amount of data."""
    publish(box, megabytes * 4, MIB // 4)
    clear(box)


# Time limit, size limit (-1: unlimited), and the remainder of 6 MiB after one hour and after three hours.
ROWS = [
    pytest.param(-1, -1, 6, 6, id="infinite"),
    pytest.param(-1, 3, 3, 3, id="size alone"),
    pytest.param(120, -1, 6, 0, id="time alone"),
    pytest.param(0, 0, 0, 0, id="disabled"),
    pytest.param(120, 3, 3, 0, id="both: size first"),
    pytest.param(120, 100, 6, 0, id="both: time first"),
]


@pytest.mark.parametrize(("minutes", "megabytes", "after_an_hour", "after_three"), ROWS)
@pytest.mark.parametrize("unloaded", [False, True])
def test_the_rows_of_the_table(
    minutes: int, megabytes: int, after_an_hour: int, after_three: int, *, unloaded: bool
) -> None:
    box = Box(managedLedgerMaxSizePerLedgerMbytes=1)
    subscribed(box, "s")
    set_policy(box, retention_policies=retention(minutes, megabytes))
    acknowledged(box, 6)
    if unloaded:
        unload(box)
    for hours, left in ((1, after_an_hour), (2, after_three)):
        box.advance(hours * HOUR)
        if unloaded:
            assert not list(box.broker.topics)
        size = topic_of(box).ledger.size
        assert left * MIB <= size < (left + 1.2) * MIB if left else size == 0
        box.advance(2 * MINUTE)
    assert backlog(box) == 0


@pytest.mark.parametrize("values", [(0, 5), (5, 0), (0, -1), (-1, 0)])
def test_a_single_0_of_the_brokers_own_values_disables_it(values: tuple[int, int]) -> None:
    box = Box(defaultRetentionTimeInMinutes=values[0], defaultRetentionSizeInMB=values[1])
    subscribed(box, "s")
    acknowledged(box, 2)
    box.advance(11 * MINUTE)
    assert stored(box) == 0


@pytest.mark.parametrize(("minutes", "megabytes"), [(0, 0), (1, 1), (-1, 1), (1, -1)])
def test_what_is_not_acknowledged_is_never_touched(minutes: int, megabytes: int) -> None:
    box = Box(managedLedgerMaxSizePerLedgerMbytes=1)
    subscribed(box, "s", "other")
    set_policy(box, retention_policies=retention(minutes, megabytes))
    publish(box, 12, MIB // 4)
    clear(box, "other")
    box.advance(30 * DAY)
    assert (backlog(box), stored(box) >= 3 * MIB) == (12, True)


def test_expiry_acknowledges_and_retention_governs_what_is_acknowledged() -> None:
    box = Box()
    subscribed(box, "s")
    set_policy(box, retention_policies=retention(120, -1), message_ttl_in_seconds=HOUR)
    publish(box, 5, 100)
    box.advance(HOUR + 1)
    assert (backlog(box), stored(box) > 0) == (0, True)
    box.advance(HOUR - 2)
    assert stored(box) > 0
    box.advance(2)
    assert stored(box) == 0


def test_readers_hold_nothing_and_without_a_subscription_everything_can_go() -> None:
    box = Box(managedLedgerMaxSizePerLedgerMbytes=1, keepAliveIntervalSeconds=1_000_000, **AS_PULSAR)
    reader = box.client()
    reader.subscribe("r", durable=False, initialPosition=1)
    publish(box, 8, MIB // 4)
    assert stored(box) < 2 * MIB
    box.advance(11 * MINUTE)
    assert stored(box) == 0
    sent = publish(box, 1)
    reader.flow(10)
    assert reader.received() == sent


def test_the_disk_is_given_back() -> None:
    box = Box(managedLedgerMaxSizePerLedgerMbytes=1)
    subscribed(box, "s")
    set_policy(box, retention_policies=retention(60, -1))
    sent = publish(box, 8, MIB // 4)
    clear(box)
    box.advance(HOUR + 10)
    assert ledgers(box)[0] > sent[-1][0]
    for ledger in {ledger for ledger, _ in sent}:
        assert not list(box.disk.index.positions(ledger))


def test_an_idle_ledger_goes_as_soon_as_its_last_subscription_has_acknowledged_it() -> None:
    box = Box()
    subscribed(box, "s", "late")
    publish(box, 3, 100)
    clear(box)
    box.advance(20 * MINUTE)
    assert stored(box) > 0
    clear(box, "late")
    assert stored(box) == 0


def test_a_topic_in_use_does_not_get_a_ledger_a_message() -> None:
    box = Box()
    subscribed(box, "s")
    for _ in range(120):
        publish(box, 1)
        clear(box)
        box.advance(30)
    assert box.broker.commits.new_id() < 20, "ids are for ledgers above all"


@pytest.mark.parametrize("level", ["topic", "namespace", "broker"])
@pytest.mark.parametrize("unloaded", [False, True])
def test_a_change_has_its_effect_at_once(level: str, *, unloaded: bool) -> None:
    box = Box(managedLedgerMaxSizePerLedgerMbytes=1)
    subscribed(box, "s")
    set_policy(box, retention_policies=retention(-1, -1) if level != "broker" else None)
    if level == "broker":
        box.broker.configuration.update("defaultRetentionTimeInMinutes", "-1", box.now)
        box.broker.configuration.update("defaultRetentionSizeInMB", "-1", box.now)
    acknowledged(box, 4)
    box.advance(HOUR)
    if unloaded:
        if list(box.broker.topics):
            unload(box)
    elif not list(box.broker.topics):
        topic_of(box)
    assert len(ledgers(box)) >= 4
    shorter: dict[str, Any] = retention(30, -1)
    if level == "topic":
        set_topic_policy(box, "retentionPolicies", shorter)
    elif level == "namespace":
        set_policy(box, retention_policies=shorter)
    else:
        box.broker.configuration.update("defaultRetentionTimeInMinutes", "30", box.now)
    box.advance(0.1)
    assert len(ledgers(box)) == 1
    assert bool(list(box.broker.topics)) is not unloaded


@given(st.integers(-1, 10_000_000), st.integers(-1, 1 << 40))
def test_a_ledger_is_an_eighth_of_what_is_kept_at_most(time_ms: int, size: int) -> None:
    most = LedgerBounds(2 << 30, 4 * 3_600_000)
    bounds = ledger_bounds(Retention(time_ms, size), most)
    assert bounds.size <= most.size
    assert bounds.age <= most.age
    assert size <= 8 << 20 or bounds.size * 8 <= size
    assert time_ms <= 8 * 60_000 or bounds.age * 8 <= time_ms
    goes = current_ledger_retention(Retention(time_ms, size), 600_000)
    assert (goes == -1) == (time_ms < 0 and size != 0)
    assert goes == -1 or goes >= 600_000
