"""Long computations: slices, turns, and requests queued meanwhile."""

from collections.abc import Callable
from typing import Any

import pytest

from pulsarbox.broker import long_computation
from pulsarbox.broker.long_computation import PERIOD_SECONDS, SLICE_STEPS, WAITING_BYTES_MAX, Computations
from pulsarbox.broker.timers import Timers
from pulsarbox.clock import Now
from pulsarbox.errors import NotAllowed, PulsarBoxError, ServiceNotReady
from pulsarbox.protocol.schema.steps import Steps


class Desk:
    """Computations, a clock, and the result of each computation."""

    def __init__(self) -> None:
        self.timers = Timers()
        self.time = 100.0
        self.computations = Computations(self.timers)
        self.done: list[tuple[str, Any]] = []
        self.steps: list[tuple[float, str]] = []
        """Requester and time of each step."""

    @property
    def now(self) -> Now:
        return Now(self.time, 0)

    def run(self, name: str, count: int, asker: object = "a", size: int = 1, error: Exception | None = None) -> None:
        def then(result: str | PulsarBoxError, now: Now) -> None:
            self.done.append((name, result))

        self.computations.run(asker, size, self._steps(name, count, error), then, self.now)

    def _steps(self, name: str, count: int, error: Exception | None) -> Steps[str]:
        for _ in range(count):
            self.steps.append((self.time, name))
            yield 1
        if error is not None:
            raise error
        return name

    def until(self, holds: Callable[[], object]) -> None:
        while not holds():
            at = self.timers.next().monotonic
            assert at is not None, "nothing is going on"
            self.time = max(self.time, at)
            self.timers.run(self.now)

    def finish(self) -> None:
        self.until(lambda: self.timers.next().monotonic is None)


def test_what_is_short_is_done_at_once() -> None:
    desk = Desk()
    desk.run("a", 10)
    desk.run("b", 10, error=NotAllowed("no"))
    assert desk.done[0] == ("a", "a") and isinstance(desk.done[1][1], NotAllowed)
    assert desk.timers.next().monotonic is None and not desk.computations.held("a")


def test_a_long_one_goes_on_in_slices() -> None:
    desk = Desk()
    desk.run("a", 10 * SLICE_STEPS)
    assert not desk.done and desk.computations.held("a") == 1
    desk.finish()
    times = [at for at, _ in desk.steps]
    slices = {at: times.count(at) for at in times}
    assert desk.done == [("a", "a")] and max(slices.values()) <= SLICE_STEPS and len(slices) >= 10
    assert min(after - before for before, after in zip(sorted(slices), sorted(slices)[1:], strict=False)) >= (
        PERIOD_SECONDS * 0.999
    )


def test_many_short_ones_share_a_slice() -> None:
    desk = Desk()
    for i in range(50):
        desk.run(f"s{i}", SLICE_STEPS // 10)
    assert len(desk.done) < 12, "what one turn takes is bounded, however many commands come in it"
    desk.finish()
    assert [name for name, _ in desk.done] == [f"s{i}" for i in range(50)]


def test_askers_take_turns() -> None:
    desk = Desk()
    for i in range(20):
        desk.run(f"greedy{i}", SLICE_STEPS, asker="greedy")
    desk.run("other", 10, asker="other")
    desk.until(lambda: any(name == "other" for name, _ in desk.done))
    assert len(desk.done) <= 4, "one of the greedy, not all"


def test_one_is_under_way_at_a_time() -> None:
    """The memory of all comparisons is thus bounded by the memory of one."""
    desk = Desk()
    for i in range(5):
        desk.run(f"c{i}", 2 * SLICE_STEPS, asker=i)
    desk.finish()
    names = [name for _, name in desk.steps]
    assert names == sorted(names)


def test_an_asker_that_is_gone() -> None:
    desk = Desk()
    desk.run("a", 5 * SLICE_STEPS, asker="gone", size=100)
    desk.run("b", 5, asker="gone", size=100)
    desk.run("c", 5, asker="here", size=7)
    desk.computations.drop("gone")
    desk.computations.drop("gone")
    desk.computations.drop("never there")
    assert desk.computations.held("gone") == 0 and desk.computations.held("here") == 7
    taken = len(desk.steps)
    desk.finish()
    assert desk.done == [("c", "c")] and len(desk.steps) == taken + 5 and not desk.computations.held("here")


def test_what_waits_has_a_bound() -> None:
    desk = Desk()
    desk.run("a", 5 * SLICE_STEPS, size=WAITING_BYTES_MAX)
    with pytest.raises(ServiceNotReady, match="try again"):
        desk.run("b", 5, asker="b", size=2)
    desk.finish()
    desk.run("b", 5, size=2 * WAITING_BYTES_MAX)
    assert [name for name, _ in desk.done] == ["a", "b"], "one alone is taken, whatever its size"


def test_a_failure_is_answered(caplog: pytest.LogCaptureFixture) -> None:
    desk = Desk()
    desk.run("a", 2 * SLICE_STEPS, error=ZeroDivisionError())
    desk.run("b", 5)
    desk.finish()
    assert isinstance(desk.done[0][1], ServiceNotReady) and desk.done[1] == ("b", "b")
    assert "a computation failed" in caplog.text


def test_what_follows_may_ask_for_more() -> None:
    desk = Desk()
    seen = []

    def then(result: str | PulsarBoxError, now: Now) -> None:
        seen.append(result)
        desk.run("next", 5)

    desk.computations.run("a", 1, desk._steps("first", 5, None), then, desk.now)
    desk.finish()
    assert seen == ["first"] and desk.done == [("next", "next")]
    assert long_computation.SLICE_STEPS == SLICE_STEPS
