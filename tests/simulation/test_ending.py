"""Topics terminated during a history: some seeds terminate one, and the rule detects violations."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from pulsarbox.broker.topic.termination import Termination
from tests.simulation.model.history import Violation
from tests.simulation.workload import Run
from tests.tools.campaigns import short

SEEDS = range(8, 200, 11)
SOONEST = {"forgotten_with_its_memory": 129}
"""Seeds to run first."""
STEPS = 1000


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize(("seeds", "steps"), short([((8, 30), 700), (SEEDS[:4], STEPS)], 1))
def test_topics_end_and_stay_so(seeds: Sequence[int], steps: int) -> None:
    ended = 0
    for seed in seeds:
        run = Run(seed)
        run.run(steps)
        ended += run.counts()["ended"]
    assert ended > len(seeds)


def takes_messages(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Termination, "check", lambda self: None)


def told_too_early(patch: pytest.MonkeyPatch) -> None:
    original = Termination.begin

    def begin(self: Termination, done: Any, failed: Any, now: Any) -> None:
        original(self, lambda at, when: None, failed, now)
        done(self._stored.ledger.last_confirmed, now)

    patch.setattr(Termination, "begin", begin)


def forgotten_with_its_memory(patch: pytest.MonkeyPatch) -> None:
    original = Termination.__init__

    def forget(self: Termination, topic: Any, stored: Any, row: Any, *services: Any) -> None:
        original(self, topic, stored, {name: value for name, value in row.items() if name != "terminated"}, *services)

    patch.setattr(Termination, "__init__", forget)


@pytest.mark.parametrize("bug", [takes_messages, told_too_early, forgotten_with_its_memory])
def test_what_is_wrong_with_an_end_is_noticed(
    bug: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    bug(monkeypatch)
    for seed in (SOONEST.get(bug.__name__, SEEDS[0]), *SEEDS):
        try:
            Run(seed).run(STEPS)
        except Violation as violation:
            if violation.rule == "ended":
                return
    pytest.fail("nobody noticed")
