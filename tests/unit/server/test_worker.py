"""Workers process in order, report errors, and lose no submitted work."""

from collections.abc import Callable
from threading import current_thread

from pulsarbox.server.worker import Worker


def worker(work: Callable[[int], int], told: list[tuple[int, int | None, Exception | None, str]]) -> Worker[int, int]:
    return Worker("worker", work, lambda *answer: told.append((*answer, current_thread().name)))


def test_tasks_are_done_in_order_and_to_the_last_in_its_own_thread() -> None:
    told: list[tuple[int, int | None, Exception | None, str]] = []
    one = worker(lambda number: 2 * number, told)
    for number in range(100):
        one.submit(number)
    one.start()
    one.stop()
    assert told == [(number, 2 * number, None, "worker") for number in range(100)]


def test_an_error_is_told_and_ends_nothing() -> None:
    told: list[tuple[int, int | None, Exception | None, str]] = []
    one = worker(lambda number: 1 // number, told)
    one.start()
    one.submit(0)
    one.submit(1)
    one.stop()
    (first, second) = told
    assert first[:2] == (0, None) and isinstance(first[2], ZeroDivisionError)
    assert second == (1, 1, None, "worker")
