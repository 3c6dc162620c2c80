"""Work that is too long for one turn of the loop: done piece by piece, with everybody else served in between."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Final, TypeVar

from pulsarbox.clock import Now
from pulsarbox.errors import PulsarBoxError
from pulsarbox.server.http.framework.request import Answer, Call, Later

T = TypeVar("T")


def in_turns(
    call: Call,
    things: Iterable[T],
    work: Callable[[T, Now], None],
    finish: Callable[[Now, Later], None],
    at_once: int,
) -> Later:
    """Do ``work`` on each of the things, ``at_once`` of them a turn; then ``finish`` sees to the answer.

    An error that is raised on the way is the answer.
    """
    later = Later()
    left: Iterator[T] = iter(things)

    def turn(now: Now) -> None:
        try:
            some = list(islice(left, at_once))
            for thing in some:
                work(thing, now)
            if len(some) == at_once:
                call.broker.core.timers.at(now.monotonic, turn)
            else:
                finish(now, later)
        except PulsarBoxError as error:
            later.failed(error)

    turn(call.now)
    return later


STEPS_AT_ONCE: Final = 4
"""Of steps that make or delete a topic: making one takes 0.2 ms of a processor, deleting one 1.7."""


def in_steps(call: Call, steps: Iterable[Callable[[Now], None]], finish: Callable[[Now], Answer]) -> Later:
    """Take steps that change something, a few of them a turn; then ``finish`` has the answer.

    An error that is raised on the way is the answer; what was done before it stays done.
    """
    return in_turns(call, steps, lambda step, now: step(now), lambda now, later: later.give(finish(now)), STEPS_AT_ONCE)


def in_waves(
    call: Call,
    things: Iterable[T],
    begin: Callable[[T, Callable[[Now], None], Now], None],
    finish: Callable[[], Answer],
    at_once: int,
) -> Later:
    """Begin something on each of the things, which ends some time: ``at_once`` of them, and the next ones when these
    have ended. What many commits set free would else come back in one turn. ``finish`` has the answer.

    ``begin`` is given a function to be called at the end. An error that is raised on the way is the answer.
    """
    later = Later()
    left: Iterator[T] = iter(things)

    def wave(now: Now) -> None:
        try:
            some = list(islice(left, at_once))
            ended = counted(len(some) + 1, on if some else over)
            for thing in some:
                begin(thing, ended, now)
            ended(now)
        except PulsarBoxError as error:
            later.failed(error)

    def on(now: Now) -> None:
        call.broker.core.timers.at(now.monotonic, wave)

    def over(now: Now) -> None:
        later.give(finish())

    wave(call.now)
    return later


def counted(count: int, last: Callable[[Now], None]) -> Callable[[Now], None]:
    """A function that calls ``last`` when it is called for the ``count``-th time."""
    left = count

    def ended(now: Now) -> None:
        nonlocal left
        left -= 1
        if not left:
            last(now)

    return ended


def when_all(
    later: Later, count: int, finish: Callable[[], Answer]
) -> tuple[Callable[[Now], None], Callable[[Exception], None]]:
    """Two functions for ``count`` operations to tell how they ended; ``later`` is given the answer after the last.

    The first error is the answer where there was one.
    """
    left = count
    errors: list[Exception] = []

    def over() -> None:
        nonlocal left
        left -= 1
        if left:
            return
        if errors:
            later.failed(errors[0])
        else:
            later.give(finish())

    def done(now: Now) -> None:
        over()

    def failed(error: Exception) -> None:
        errors.append(error)
        over()

    return done, failed
