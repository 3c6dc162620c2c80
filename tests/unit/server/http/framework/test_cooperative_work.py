"""Requests that create or delete many topics proceed in steps and serve other clients in between."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from pulsarbox.clock import Now
from pulsarbox.config import Settings
from pulsarbox.errors import Conflict
from pulsarbox.server.http.framework.cooperative_work import STEPS_AT_ONCE, in_waves
from pulsarbox.server.http.framework.request import DONE, HttpRequest, HttpResponse
from pulsarbox.server.http.resources.namespace_topics import WAVE
from tests.unit.broker import playbook
from tests.unit.server.http.clients import Client
from tests.unit.server.http.harness import HttpBox

COUNT = 45
DEFAULT = "public/default"
PARTITIONS = f"/persistent/{DEFAULT}/p/partitions"
ALLOWED = Settings(forceDeleteNamespaceAllowed=True, forceDeleteTenantAllowed=True)


def watched(box: HttpBox) -> list[int]:
    """Record the number of topics after each turn."""
    seen: list[int] = []
    broker = box.broker
    on_timer: Callable[[Now], None] = broker.on_timer

    def turn(now: Now) -> None:
        on_timer(now)
        seen.append(len(list(broker.catalog.keys(f"topic/persistent://{DEFAULT}/"))))

    broker.on_timer = turn  # type: ignore[method-assign]
    return seen


def are_steps(seen: list[int]) -> bool:
    return all(abs(after - before) <= STEPS_AT_ONCE for before, after in pairwise(seen))


async def test_partitions_are_made_and_deleted_some_at_a_time(box: HttpBox) -> None:
    seen = watched(box)
    assert (await box.put(PARTITIONS, COUNT)).status == 204
    assert are_steps([STEPS_AT_ONCE, *seen]), "the first ones in the turn of the request"
    assert seen[-1] == COUNT
    assert len(seen) == COUNT // STEPS_AT_ONCE
    seen.clear()
    assert (await box.delete(PARTITIONS)).status == 204
    assert are_steps([COUNT - STEPS_AT_ONCE, *seen])
    assert seen[-1] == 0
    assert len(seen) == COUNT // STEPS_AT_ONCE


async def test_missing_partitions_are_made_some_at_a_time(box: HttpBox) -> None:
    await box.put(PARTITIONS, COUNT)
    for number in range(0, COUNT, 3):
        await box.delete(f"/persistent/{DEFAULT}/p-partition-{number}")
    seen = watched(box)
    assert (await box.post(f"/persistent/{DEFAULT}/p/createMissedPartitions")).status == 204
    assert seen[-1] == COUNT
    assert are_steps(seen)
    assert len(seen) == COUNT // STEPS_AT_ONCE


@pytest.mark.parametrize("path", ["/namespaces/public/default?force=true", "/tenants/public?force=true"])
@pytest.mark.settings(ALLOWED)
async def test_namespaces_are_deleted_some_topics_at_a_time(box: HttpBox, path: str) -> None:
    await box.put(PARTITIONS, COUNT)
    seen = watched(box)
    assert (await box.delete(path)).status == 204
    assert are_steps([COUNT - STEPS_AT_ONCE, *seen])
    assert seen[-1] == 0
    assert not box.broker.tenants.has_namespace(DEFAULT)


@pytest.mark.settings(ALLOWED)
async def test_who_deletes_what_is_being_deleted_is_told_so(box: HttpBox) -> None:
    await box.put(PARTITIONS, COUNT)
    steps = box.broker.removal.of_namespace(DEFAULT, force=True)
    next(steps)
    got = await box.delete("/namespaces/public/default?force=true")
    assert (got.status, got.reason) == (409, "Namespace public/default is being deleted")
    got = await box.put(f"/persistent/{DEFAULT}/t")
    assert (got.status, got.reason) == (409, "Namespace public/default is being deleted")


async def test_topics_are_unloaded_some_behind_one_commit(box: HttpBox) -> None:
    for number in range(COUNT):
        Client(box).publish(f"persistent://{DEFAULT}/t-{number}", 1)
    broker, left = box.broker, [COUNT]
    take_batch = broker.take_batch

    def turn(now: Now) -> Any:  # no batch to commit: the call releases the waiting requests
        batch = take_batch(now)
        left.append(len(list(broker.topics)))
        return batch

    broker.take_batch = turn  # type: ignore[method-assign]
    assert (await box.put(f"/namespaces/{DEFAULT}/unload")).status == 204
    assert left[-1] == 0
    assert max(before - after for before, after in pairwise(left)) == WAVE


def call_of(box: playbook.Box) -> HttpRequest:
    return HttpRequest(box.broker, box.now, {}, {}, b"", "")


def test_a_wave_begins_when_the_one_before_has_ended() -> None:
    box = playbook.Box()
    begun: list[int] = []
    ends: list[Callable[[Now], None]] = []

    def begin(number: int, ended: Callable[[Now], None], now: Now) -> None:
        begun.append(number)
        ends.append(ended)

    given: list[HttpResponse] = []
    in_waves(call_of(box), range(5), begin, lambda: DONE, 2).on_complete(given.append)
    for expected in ([0, 1], [0, 1, 2, 3], [0, 1, 2, 3, 4]):
        box.broker.on_timer(box.now)
        assert begun == expected
        assert not given
        while ends:
            ends.pop()(box.now)
            assert begun == expected, "in a turn of its own"
    box.broker.on_timer(box.now)
    assert given == [DONE]


def test_waves_end_with_the_first_error_and_may_have_nothing_to_do() -> None:
    box = playbook.Box()

    def begin(number: int, ended: Callable[[Now], None], now: Now) -> None:
        if number == 3:
            raise Conflict("no")
        ended(now)

    given: list[HttpResponse] = []
    in_waves(call_of(box), range(9), begin, lambda: DONE, 2).on_complete(given.append)
    for _ in range(9):
        box.broker.on_timer(box.now)
    assert [each.status for each in given] == [409]
    in_waves(call_of(box), [], begin, lambda: DONE, 2).on_complete(given.append)
    assert given[1:] == [DONE]
