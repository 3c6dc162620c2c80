"""Requests that make or delete many topics do so some at a time, with everybody else served in between."""

from collections.abc import Callable
from itertools import pairwise

import pytest

from pulsarbox.clock import Now
from pulsarbox.config import Settings
from pulsarbox.server.http.turns import STEPS_AT_ONCE
from tests.unit.server.http.harness import Box, with_box

COUNT = 45
DEFAULT = "public/default"
PARTITIONS = f"/persistent/{DEFAULT}/p/partitions"
ALLOWED = Settings(forceDeleteNamespaceAllowed=True, forceDeleteTenantAllowed=True)


def watched(box: Box) -> list[int]:
    """How many topics there are behind each turn, from now on."""
    seen: list[int] = []
    broker = box.broker
    on_timer: Callable[[Now], None] = broker.on_timer

    def turn(now: Now) -> None:
        on_timer(now)
        seen.append(len(list(broker.core.catalog.keys(f"topic/persistent://{DEFAULT}/"))))

    broker.on_timer = turn  # type: ignore[method-assign]
    return seen


def are_steps(seen: list[int]) -> bool:
    return all(abs(after - before) <= STEPS_AT_ONCE for before, after in pairwise(seen))


def test_partitions_are_made_and_deleted_some_at_a_time() -> None:
    async def scenario(box: Box) -> None:
        seen = watched(box)
        assert (await box.put(PARTITIONS, COUNT)).status == 204
        assert are_steps([STEPS_AT_ONCE, *seen]), "ten in the turn of the request"
        assert seen[-1] == COUNT
        assert len(seen) == COUNT // STEPS_AT_ONCE
        seen.clear()
        assert (await box.delete(PARTITIONS)).status == 204
        assert are_steps([COUNT - STEPS_AT_ONCE, *seen])
        assert seen[-1] == 0
        assert len(seen) == COUNT // STEPS_AT_ONCE

    with_box(scenario)


def test_missing_partitions_are_made_some_at_a_time() -> None:
    async def scenario(box: Box) -> None:
        await box.put(PARTITIONS, COUNT)
        for number in range(0, COUNT, 3):
            await box.delete(f"/persistent/{DEFAULT}/p-partition-{number}")
        seen = watched(box)
        assert (await box.post(f"/persistent/{DEFAULT}/p/createMissedPartitions")).status == 204
        assert seen[-1] == COUNT
        assert are_steps(seen)
        assert len(seen) == COUNT // STEPS_AT_ONCE

    with_box(scenario)


@pytest.mark.parametrize("path", ["/namespaces/public/default?force=true", "/tenants/public?force=true"])
def test_namespaces_are_deleted_some_topics_at_a_time(path: str) -> None:
    async def scenario(box: Box) -> None:
        await box.put(PARTITIONS, COUNT)
        seen = watched(box)
        assert (await box.delete(path)).status == 204
        assert are_steps([COUNT - STEPS_AT_ONCE, *seen])
        assert seen[-1] == 0
        assert not box.broker.tenants.has_namespace(DEFAULT)

    with_box(scenario, ALLOWED)


def test_who_deletes_what_is_being_deleted_is_told_so() -> None:
    async def scenario(box: Box) -> None:
        await box.put(PARTITIONS, COUNT)
        steps = box.broker.removal.of_namespace(DEFAULT, force=True)
        next(steps)
        got = await box.delete("/namespaces/public/default?force=true")
        assert (got.status, got.reason) == (409, "Namespace public/default is being deleted")
        got = await box.put(f"/persistent/{DEFAULT}/t")
        assert (got.status, got.reason) == (409, "Namespace public/default is being deleted")

    with_box(scenario, ALLOWED)
