"""Computations in slices: other tasks run between them."""

import asyncio

from pulsarbox.tui import slices


async def test_other_tasks_run_between_slices(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(slices, "SLICE", 0.0)
    taken, order, paused = list[int](), list[str](), list[int]()

    async def other() -> None:
        for _ in range(3):
            order.append(f"other after {len(taken)}")
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        group.create_task(slices.in_slices(range(5), taken.append, lambda: paused.append(len(taken))))
        group.create_task(other())
    assert taken == [0, 1, 2, 3, 4] and paused == [1, 2, 3, 4, 5]
    assert order == ["other after 1", "other after 2", "other after 3"]
