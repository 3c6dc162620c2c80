"""Every request gets a response, also right after a restart; planted bugs that omit one are detected."""

from __future__ import annotations

import contextlib
import functools
import logging
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pulsarbox.broker.connection.opening import Opening
from pulsarbox.broker.persistence.group_commit import GroupCommit
from pulsarbox.broker.persistence.read_queue import ReadQueue
from pulsarbox.clock import Now
from pulsarbox.errors import PulsarBoxError
from tests.simulation.disk import ENGINES
from tests.simulation.model.history import Violation
from tests.simulation.mutants.registry import Patch
from tests.simulation.restarts import RestartRun
from tests.tools.campaigns import short

SEEDS = range(12)
STEPS = 2500
MUTANT_SEEDS = range(60)
EXPECTED = frozenset(
    (
        *("LOOKUP", "PARTITIONED_METADATA", "PRODUCER", "SUBSCRIBE", "CLOSE_PRODUCER", "CLOSE_CONSUMER", "ACK", "SEEK"),
        *("GET_LAST_MESSAGE_ID", "UNSUBSCRIBE", "NEW_TXN", "END_TXN", "TC_CLIENT_CONNECT_REQUEST"),
    )
)
MUTANTS: dict[str, Patch] = {}


def mutant(patch: Patch) -> Patch:
    """Register a bug that leaves a request without a response."""
    MUTANTS[patch.__name__] = patch
    return patch


@mutant
def a_command_that_is_abandoned_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    def abandon(self: Opening, now: Now) -> None:
        del self.cnx.opening[self._key]
        self.undo(now)

    patch.setattr(Opening, "abandon", abandon)


@mutant
def the_error_of_a_later_step_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    def step(self: Opening, work: Callable[[Now], None], now: Now) -> None:
        if self.pending:
            with contextlib.suppress(PulsarBoxError):
                work(now)

    patch.setattr(Opening, "step", step)


@mutant
def a_failed_commit_forgets_who_waits_for_it(patch: pytest.MonkeyPatch) -> None:
    original = GroupCommit.failed

    def failed(self: GroupCommit, batch: Any, now: Any, error: Exception) -> None:
        if self.in_flight is not None:
            self.in_flight.callbacks.clear()
        original(self, batch, now, error)

    patch.setattr(GroupCommit, "failed", failed)


@mutant
def of_two_that_wait_for_a_commit_the_second_takes_the_place_of_the_first(patch: pytest.MonkeyPatch) -> None:
    def after_commit(self: GroupCommit, callback: Any) -> None:
        self.open.callbacks[:] = [callback]
        self.open.urgent = True

    patch.setattr(GroupCommit, "after_commit", after_commit)


@mutant
def nobody_hears_of_a_read_that_fails(patch: pytest.MonkeyPatch) -> None:
    original = ReadQueue.done

    def done(self: ReadQueue, token: int, entries: list[Any], now: Any, error: Exception | None) -> None:
        if error is None:
            original(self, token, entries, now, error)

    patch.setattr(ReadQueue, "done", done)


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def play(seed: int) -> RestartRun:
    run = RestartRun(seed, ENGINES[seed % len(ENGINES)])
    run.run(STEPS)
    return run


@functools.cache
def played(seed: int) -> tuple[Counter[str], int]:
    """Return the counts of answers and the number of starts of a history, which runs once per process."""
    run = play(seed)
    return Counter(run.answers), run.box.life


@pytest.mark.parametrize("seed", short(SEEDS, 4))
def test_every_request_is_answered(seed: int) -> None:
    assert played(seed)


def test_the_seeds_ask_for_everything() -> None:
    answers: Counter[str] = Counter()
    lives = 0
    for seed in SEEDS:
        counts, starts = played(seed)
        answers.update(counts)
        lives += starts
        if set(answers) >= EXPECTED and lives > len(SEEDS):
            return
    pytest.fail(f"never answered: {sorted(EXPECTED - set(answers))}; {lives} starts")


def is_noticed(seed: int) -> bool:
    try:
        play(seed)
    except Violation as violation:
        return violation.rule == "answered"
    return False


@pytest.mark.parametrize("name", short(MUTANTS, 2))
def test_a_request_without_an_answer_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    MUTANTS[name](monkeypatch)
    assert any(is_noticed(seed) for seed in MUTANT_SEEDS)
