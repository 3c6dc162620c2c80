"""Computations too long for one turn of the event loop, run in slices.

One computation runs at a time. Waiting ones take turns by connection, so that a client with many delays another client
by at most one. A computation that fits into the rest of a slice finishes immediately.
"""

import logging
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeVar

from pulsarbox.broker.timers import Timers
from pulsarbox.clock import Now
from pulsarbox.errors import PulsarBoxError, ServiceNotReady
from pulsarbox.protocol.schema.steps import Steps

log = logging.getLogger(__name__)

T = TypeVar("T")

SLICE_STEPS: Final = 500
"""Steps in a slice: 1 ms."""
PERIOD_SECONDS: Final = 0.003
"""Time from one slice to the next: computations leave two thirds of the loop to everything else."""
WAITING_BYTES_MAX: Final = 64 << 20
"""Maximum bytes of commands and requests whose computations are unfinished; further ones are rejected."""


class _Computation(NamedTuple):
    asker: object
    size: int
    steps: Steps[Any]
    then: Callable[[Any, Now], None]


class Computations:
    """The computations of a broker."""

    def __init__(self, timers: Timers) -> None:
        self._timers = timers
        self._left = 0
        """Steps left in the current slice."""
        self._slice_ends = float("-inf")
        self._current: _Computation | None = None
        self._waiting: OrderedDict[object, deque[_Computation]] = OrderedDict()
        self._bytes: dict[object, int] = {}
        self._total = 0
        self._scheduled = False

    def run(
        self, asker: object, size: int, steps: Steps[T], then: Callable[[T | PulsarBoxError, Now], None], now: Now
    ) -> None:
        """Call ``then`` with the computation's result or error; immediately if it is short.

        ``asker`` is the requesting connection, or an object that represents several. ``size`` is the bytes the request
        holds until then. Raises ServiceNotReady if too much is waiting.
        """
        size = max(size, 1)
        if self._total and self._total + size > WAITING_BYTES_MAX:
            raise ServiceNotReady(
                f"{self._total} bytes of schemas of {len(self._bytes)} clients are waiting to be compared; try again"
            )
        computation = _Computation(asker, size, steps, then)
        self._total += size
        self._bytes[asker] = self._bytes.get(asker, 0) + size
        if self._current is not None or self._waiting:
            self._waiting.setdefault(asker, deque()).append(computation)
            return
        self._current = computation
        if now.monotonic >= self._slice_ends:
            self._begin_slice(now)
        self._advance(now)

    def held(self, asker: object) -> int:
        """Return the bytes held by the computations of a connection."""
        return self._bytes.get(asker, 0) if self._bytes else 0

    def drop(self, asker: object) -> None:
        """Abandon the computations of a closed connection without calling ``then``."""
        held = self._bytes.pop(asker, 0)
        if not held:
            return
        self._total -= held
        self._waiting.pop(asker, None)
        if self._current is not None and self._current.asker is asker:
            self._current = None

    def _begin_slice(self, now: Now) -> None:
        self._left = SLICE_STEPS
        self._slice_ends = now.monotonic + PERIOD_SECONDS

    def _slice(self, now: Now) -> None:
        self._scheduled = False
        self._begin_slice(now)
        self._advance(now)

    def _advance(self, now: Now) -> None:
        """Compute until the slice is used up or nothing is left."""
        while self._left > 0:
            if self._current is None:
                self._current = self._next()
            if self._current is None:
                return
            self._step(self._current, now)
        if not self._scheduled and (self._current is not None or self._waiting):
            self._scheduled = True
            self._timers.at(self._slice_ends, self._slice)

    def _next(self) -> _Computation | None:
        """Remove and return the next computation, from the asker that has waited longest."""
        if not self._waiting:
            return None
        asker, theirs = self._waiting.popitem(last=False)
        found = theirs.popleft()
        if theirs:
            self._waiting[asker] = theirs
        return found

    def _step(self, computation: _Computation, now: Now) -> None:
        result: Any
        try:
            self._left -= next(computation.steps)
            return
        except StopIteration as end:
            result = end.value
        except PulsarBoxError as error:
            result = error
        except Exception:
            log.exception("a computation failed")
            result = ServiceNotReady("The broker failed to process this request; its log has the details")
        self._left -= 1
        self._current = None
        self._total -= computation.size
        held = self._bytes[computation.asker] - computation.size
        if held > 0:
            self._bytes[computation.asker] = held
        else:
            del self._bytes[computation.asker]
        computation.then(result, now)
