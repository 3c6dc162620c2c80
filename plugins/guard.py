"""Runtime guard around a plugin: counts and times its calls, checks results, and contains exceptions.

A guard belongs to one plugin in one process; its functions are called in place of the plugin's. The fallback depends on
the decision. *Decisions that are independent for each message* (a partition, a consumer) fall back on the built-in
router, and after ``ERRORS_MAX`` errors in a minute do so until the process ends: the guard has tripped. *Decisions that
must stay the same* (the hash of a key) never trip: a key whose hash fails uses the built-in hash, all others are
unaffected. A plugin without a fallback (a codec) raises ``PluginFailed``.

The clock is a parameter, so pure code can use this module. Source of the rules: docs/plugins.md.
"""

from __future__ import annotations

import traceback
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from pulsarbox.plugins.contracts import HASH_MAX, Choose, Unrouted

ERRORS_MAX: Final = 10
"""Errors within ``PERIOD_SECONDS`` that trip the guard of a router."""
PERIOD_SECONDS: Final = 60
SAMPLE: Final = 256
"""One call in this many is timed."""
SAMPLES_KEPT: Final = 512
"""Number of recent samples from which percentiles are computed."""

_PERIOD: Final = PERIOD_SECONDS * 1_000_000_000

CandidateT = TypeVar("CandidateT")


class PluginFailed(Exception):
    """A plugin without a fallback failed; the message names the plugin and the reason."""


class PluginEndless(BaseException):
    """Raised inside a plugin that does not return; a BaseException, so that ``except Exception`` does not catch it."""


class Trouble(NamedTuple):
    """A reportable event of a plugin: a failure to load, the first error of a period, or a trip."""

    kind: str
    name: str
    reason: str
    trace: str
    """Traceback; empty if nothing was raised."""
    tripped: bool
    """Whether the plugin is disabled."""
    loading: bool = False
    """Whether the plugin failed to load and was never called."""

    def __str__(self) -> str:
        if self.loading:
            return f"the {self.kind} plugin {self.name!r} cannot be used: {self.reason}"
        then = "; it is disabled until the next start, and the built-in one is used" if self.tripped else ""
        return f"the {self.kind} plugin {self.name!r} failed: {self.reason}{then}"


Tell = Callable[[Trouble], None]
Clock = Callable[[], int]
"""Monotonic time in nanoseconds."""


class Cost(NamedTuple):
    """Cumulative cost of a plugin."""

    calls: int
    errors: int
    p50_ns: int
    """Over the sampled calls; 0 without samples."""
    p99_ns: int
    tripped: bool
    last_error: str


def _anything(found: object) -> bool:
    return True


class Guard:
    """Statistics and error state of one plugin in use.

    Its functions count in local variables, because an attribute would cost as much as everything else. This is why each
    of them repeats the same few lines.
    """

    def __init__(self, kind: str, name: str, clock: Clock, tell: Tell) -> None:
        """``tell`` is called within the failing call and must return immediately."""
        self.kind = kind
        self.name = name
        self.errors = 0
        self.tripped = False
        self.last = ""
        """The last error message."""
        self._clock = clock
        self._tell = tell
        self._reported_at = -_PERIOD
        self._recent: deque[int] = deque(maxlen=ERRORS_MAX)
        """Times of the latest errors."""
        self._times: deque[int] = deque(maxlen=SAMPLES_KEPT)
        self._calls = 0
        """Calls that the guarded functions do not count themselves."""
        self._busy = False
        """Whether a call that the guarded functions do not track is in progress in the event loop's thread."""
        self._looks: list[Callable[[], tuple[int, bool]]] = []
        """For each guarded function: returns its uncollected count, and whether a call is in progress."""

    # Functions called in place of the plugin's

    def hashing(self, hash32: Callable[[bytes], int], instead: Callable[[bytes], int]) -> Callable[[bytes], int]:
        """Guard ``hash32`` of a plugin; a key for which it fails uses ``instead``."""
        timed, failed, most = self._timed, self._failed, HASH_MAX
        left, busy = SAMPLE, False

        def guarded(key: bytes) -> int:
            nonlocal left, busy
            busy = True
            left -= 1
            try:
                if left:
                    found = hash32(key)
                else:
                    left = SAMPLE
                    found = timed(hash32, key)
                if found.__class__ is int and 0 <= found <= most:  # faster than type(found)
                    busy = False
                    return found
                raise _OutOfContract(f"hash32 returned {found!r:.80}, expected a number from 0 to {HASH_MAX}")
            except KeyboardInterrupt:
                busy = False
                raise
            except BaseException as error:
                busy = False
                failed(error)
            return instead(key)

        self._looks.append(lambda: (SAMPLE - left, busy))
        return guarded

    def partitions(self, choose: Choose, instead: Choose) -> Choose:
        """Guard a router's partition function; a message for which it fails uses ``instead``."""
        timed, failed = self._timed, self._failed
        left, busy = SAMPLE, False

        def guarded(message: Unrouted, partitions: int) -> int:
            nonlocal left, busy
            if self.tripped:
                return instead(message, partitions)
            busy = True
            left -= 1
            try:
                if left:
                    found = choose(message, partitions)
                else:
                    left = SAMPLE
                    found = timed(choose, message, partitions)
                if found.__class__ is int and 0 <= found < partitions:
                    busy = False
                    return found
                raise _OutOfContract(f"choose returned {found!r:.80}, expected one of {partitions} partitions")
            except KeyboardInterrupt:
                busy = False
                raise
            except BaseException as error:
                busy = False
                failed(error, trips=True)
            return instead(message, partitions)

        self._looks.append(lambda: (SAMPLE - left, busy))
        return guarded

    def consumers(
        self,
        choose: Callable[[Sequence[CandidateT]], CandidateT],
        instead: Callable[[Sequence[CandidateT]], CandidateT],
    ) -> Callable[[Sequence[CandidateT]], CandidateT]:
        """Guard a choice among consumers; if it fails, ``instead`` chooses."""
        timed, failed = self._timed, self._failed
        left, busy = SAMPLE, False

        def guarded(ready: Sequence[CandidateT]) -> CandidateT:
            nonlocal left, busy
            if self.tripped:
                return instead(ready)
            busy = True
            left -= 1
            try:
                if left:
                    found = choose(ready)
                else:
                    left = SAMPLE
                    found = timed(choose, ready)
                for each in ready:
                    if each is found:
                        busy = False
                        return found
                raise _OutOfContract(f"choose returned {found!r:.80}, expected one of {len(ready)} consumers")
            except KeyboardInterrupt:
                busy = False
                raise
            except BaseException as error:
                busy = False
                failed(error, trips=True)
            return instead(ready)

        self._looks.append(lambda: (SAMPLE - left, busy))
        return guarded

    def decided(self, decide: Callable[..., Any], *arguments: Any, fits: Callable[[Any], bool] = _anything) -> Any:
        """Make one infrequent call about a subscription's consumers, whose result the caller caches.

        Raises PluginFailed if the call fails, if its result does not satisfy ``fits``, or if the guard has tripped.
        """
        if self.tripped:
            raise PluginFailed(f"the {self.kind} plugin {self.name!r} is disabled after repeated errors")
        self._calls += 1
        self._busy = True
        try:
            found = decide(*arguments) if self._calls & SAMPLE - 1 else self._timed(decide, *arguments, counts=0)
            if fits(found):
                return found
            raise _OutOfContract(
                f"{getattr(decide, '__name__', 'it')} returned {found!r:.80}, expected one of the consumers"
            )
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            self._failed(error, trips=True)
            raise PluginFailed(f"the {self.kind} plugin {self.name!r} failed: {self.last}") from error
        finally:
            self._busy = False

    def bytes_of(self, work: Callable[..., bytes]) -> Callable[..., bytes]:
        """Guard a method of a codec. There is no fallback: raises PluginFailed if it fails.

        It may be called in any thread, and is not covered by ``busy``.
        """

        def guarded(*arguments: Any) -> bytes:
            self._calls += 1
            try:
                found = work(*arguments) if self._calls & SAMPLE - 1 else self._timed(work, *arguments, counts=0)
                if type(found) is bytes:
                    return found
                raise _OutOfContract(f"it returned {type(found).__name__}, expected bytes")
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                self._failed(error)
                raise PluginFailed(f"the {self.kind} plugin {self.name!r} failed: {self.last}") from error

        return guarded

    # Cost

    @property
    def calls(self) -> int:
        """Number of calls so far."""
        return self._calls + sum(look()[0] for look in self._looks)

    @property
    def busy(self) -> bool:
        """Whether a call is in progress, for signal handlers."""
        return self._busy or any(look()[1] for look in self._looks)

    def cost(self) -> Cost:
        """Return calls, errors and times so far."""
        times = sorted(self._times)
        p50, p99 = (times[len(times) // 2], times[len(times) * 99 // 100]) if times else (0, 0)
        return Cost(self.calls, self.errors, p50, p99, self.tripped, self.last)

    def _timed(self, call: Callable[..., Any], *arguments: Any, counts: int = SAMPLE) -> Any:
        self._calls += counts
        begin = self._clock()
        found = call(*arguments)
        self._times.append(self._clock() - begin)
        return found

    def _failed(self, error: BaseException, *, trips: bool = False) -> None:
        self.errors += 1
        trace = ""
        if isinstance(error, _OutOfContract):
            self.last = str(error)
        else:
            self.last = _in_words(error)
            trace = "".join(traceback.format_exception(error))
        now = self._clock()
        recent = self._recent
        recent.append(now)
        if trips and len(recent) == ERRORS_MAX and now - recent[0] < _PERIOD:
            self.tripped = True
        if self.tripped or now - self._reported_at >= _PERIOD:
            self._reported_at = now
            self._tell(Trouble(self.kind, self.name, self.last, trace, self.tripped))


class _OutOfContract(Exception):
    """A plugin's result violates its contract."""


def _in_words(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # the plugin's own __str__ may raise
        return type(error).__name__
