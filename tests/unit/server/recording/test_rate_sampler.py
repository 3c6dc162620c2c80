"""Periodic sampling of counters (``server.recording.rate_sampler``)."""

import asyncio
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pulsarbox.clock import Now
from pulsarbox.server.recording import rate_sampler
from pulsarbox.server.recording.rate_sampler import RateSampler


class Looked:
    """A topic that counts its samples."""

    def __init__(self, enough: asyncio.Event | None = None) -> None:
        self.times = 0
        self._enough = enough

    def sample(self, now: Now) -> None:
        self.times += 1
        if self.times == 2 and self._enough is not None:
            self._enough.set()


async def test_every_topic_is_looked_at_some_at_a_time_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_sampler, "KEPT_EVERY_SECONDS", 0.001)
    enough = asyncio.Event()
    topics = [*(Looked() for _ in range(rate_sampler.TOPICS_AT_ONCE * 2)), Looked(enough)]
    at_once: list[int] = []
    boxes: list[Now] = []

    def now() -> Now:
        at_once.append(sum(topic.times for topic in topics))
        return Now(0.0, 0)

    shell = cast(Any, SimpleNamespace(broker=SimpleNamespace(topics=topics, sample=boxes.append), now=now))
    sampler = RateSampler(shell)
    sampler.start()
    await enough.wait()
    sampler.stop()
    before = [topic.times for topic in topics]
    await asyncio.sleep(0.01)
    assert [topic.times for topic in topics] == before
    assert len(boxes) >= 2, "so is the box as a whole"
    assert max(after - before for before, after in pairwise(at_once)) <= rate_sampler.TOPICS_AT_ONCE
