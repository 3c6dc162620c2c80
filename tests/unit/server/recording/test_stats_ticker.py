"""Ticks once a second (``server.recording.stats_ticker``)."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pulsarbox.clock import Now
from pulsarbox.server.recording import stats_ticker
from pulsarbox.server.recording.stats_ticker import TOPICS_AT_ONCE, StatsTicker


async def test_it_ticks_and_looks_at_some_topics_at_a_time_until_all_were_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stats_ticker, "STEP_SECONDS", 0.001)
    told: list[str] = []
    enough = asyncio.Event()

    class Samples:
        def tick(self, now: Now) -> None:
            told.append("tick")
            if told.count("tick") == 3:
                enough.set()

        def step(self, now: Now, at_once: int) -> bool:
            assert at_once == TOPICS_AT_ONCE
            told.append("step")
            return told[-3:] == ["step"] * 3

    shell = cast(Any, SimpleNamespace(broker=SimpleNamespace(samples=Samples()), now=lambda: Now(0.0, 0)))
    ticker = StatsTicker(shell)
    ticker.start()
    await enough.wait()
    ticker.stop()
    before = len(told)
    await asyncio.sleep(0.01)
    assert len(told) == before, "no more once it is stopped"
    assert told[:8] == ["tick", "step", "step", "step"] * 2
