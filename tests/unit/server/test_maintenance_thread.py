"""The thread that maintains data directories: steps in order, pauses, holds, failures."""

import threading
from queue import SimpleQueue

import pytest

from pulsarbox.server import maintenance_thread
from pulsarbox.server.maintenance_thread import MaintenanceThread
from pulsarbox.storage.ensemble.keeping.upkeep import Maintained

SECONDS = 30
"""Upper bound for a wait in these tests."""


class Steps:
    """Steps whose results the test provides: one per ``give``."""

    def __init__(self) -> None:
        self.results: SimpleQueue[Maintained | Exception | None] = SimpleQueue()
        self.begun: SimpleQueue[int] = SimpleQueue()
        self.pause = 0.0

    def step(self, monotonic: float, wall: int) -> Maintained | None:
        self.begun.put(wall)
        result = self.results.get(timeout=SECONDS)
        if isinstance(result, Exception):
            raise result
        return result

    def wait(self, monotonic: float) -> float:
        return self.pause


REPAIRED = Maintained("repaired", "5 entries were copied", 500)


def test_steps_follow_each_other_and_their_results_are_passed_on() -> None:
    steps, done = Steps(), SimpleQueue[Maintained]()
    thread = MaintenanceThread(steps, done.put)
    thread.start()
    for _ in range(3):
        steps.begun.get(timeout=SECONDS)
        assert thread.busy
        steps.results.put(REPAIRED)
        assert done.get(timeout=SECONDS) == REPAIRED
    steps.results.put(None)
    thread.stop()
    assert not thread.busy


def test_a_step_with_nothing_to_do_is_not_passed_on() -> None:
    steps, done = Steps(), SimpleQueue[Maintained]()
    thread = MaintenanceThread(steps, done.put)
    thread.start()
    steps.results.put(None)
    steps.results.put(REPAIRED)
    assert done.get(timeout=SECONDS) == REPAIRED
    steps.results.put(None)
    thread.stop()
    assert done.empty()


def test_a_stop_ends_a_pause() -> None:
    steps = Steps()
    steps.pause = 10 * SECONDS
    thread = MaintenanceThread(steps, lambda done: None)
    thread.start()
    steps.results.put(None)
    steps.begun.get(timeout=SECONDS)
    thread.stop()


def test_no_step_begins_while_the_thread_is_held() -> None:
    steps, done = Steps(), threading.Event()
    thread = MaintenanceThread(steps, lambda each: done.set())
    thread.hold()
    thread.hold()
    thread.start()
    thread.resume()
    steps.results.put(REPAIRED)
    assert not thread.busy and steps.begun.empty()
    thread.resume()
    assert done.wait(SECONDS)
    steps.results.put(None)
    thread.stop()


def test_a_held_thread_can_be_stopped() -> None:
    thread = MaintenanceThread(Steps(), lambda done: None)
    thread.hold()
    thread.start()
    thread.stop()


def test_a_failed_step_is_logged_once_and_retried(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(maintenance_thread, "FAILED_SECONDS", 0.0)
    steps, done = Steps(), SimpleQueue[Maintained]()
    thread = MaintenanceThread(steps, done.put)
    thread.start()
    for _ in range(3):
        steps.results.put(OSError("the disk is gone"))
    steps.results.put(REPAIRED)
    assert done.get(timeout=SECONDS) == REPAIRED
    steps.results.put(None)
    thread.stop()
    assert [each.getMessage() for each in caplog.records] == [
        "maintenance of the data directories failed, retrying: OSError('the disk is gone')"
    ]
