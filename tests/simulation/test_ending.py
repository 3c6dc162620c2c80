"""Topics terminated during a history: some seeds terminate one, and the rule detects violations."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pulsarbox.broker.topic.termination import Termination
from tests.simulation.model.history import Violation
from tests.simulation.workload import Run

SEEDS = range(8, 200, 11)
SOONEST = {"forgotten_with_its_memory": 129}
"""Seeds to run first."""
STEPS = 1000


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def test_topics_end_and_stay_so() -> None:
    ended = 0
    for seed in SEEDS[:4]:
        run = Run(seed)
        run.run(STEPS)
        ended += run.counts()["ended"]
    assert ended > 4


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
