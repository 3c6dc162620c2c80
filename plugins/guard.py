"""What stands around a plugin at run time: it counts, measures, checks what comes back, and contains what is raised.

A guard belongs to one plugin in one process; the functions that it makes are called in place of the plugin's. Two rules
say what happens where the plugin fails. *What can be decided anew for each message* (a partition, a consumer) goes the
built-in way at once, and after ``ERRORS_MAX`` errors in a minute that way only, until the process ends: the guard has
tripped. *What has to be the same each time* (the hash of a key) never trips: a key whose hash fails goes by the
built-in hash, all others stay where they are. What has no substitute (a codec) raises ``PluginFailed``.

Time is a parameter, so the pure rooms can use this one. Source of the rules: docs/plugins.md.
"""

from __future__ import annotations

import traceback
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from pulsarbox.plugins.contracts import HASH_MAX, Choose, Unrouted

ERRORS_MAX: Final = 10
"""Errors in ``PERIOD_SECONDS`` after which a router is not asked any more."""
PERIOD_SECONDS: Final = 60
SAMPLE: Final = 256
"""Of so many calls one is timed."""
SAMPLES_KEPT: Final = 512
"""The latest of those times, from which the percentiles are."""

_PERIOD: Final = PERIOD_SECONDS * 1_000_000_000

CandidateT = TypeVar("CandidateT")


class PluginFailed(Exception):
    """A plugin without a substitute failed; the text names it and says how."""


class PluginEndless(BaseException):
    """Raised inside of a plugin that does not come back; no ``except Exception`` of it stops that."""


class Trouble(NamedTuple):
    """Something to be told about a plugin: it cannot be had; the first error of a period; it trips."""

    kind: str
    name: str
    reason: str
    trace: str
    """Where it was raised, as Python shows it; empty where nothing was raised."""
    tripped: bool
    """It is not asked any more."""
    loading: bool = False
    """It could not be loaded; it was not asked yet."""

    def __str__(self) -> str:
        if self.loading:
            return f"the {self.kind} plugin {self.name!r} cannot be used: {self.reason}"
        then = "; it is not asked any more: from here on the built-in one decides" if self.tripped else ""
        return f"the {self.kind} plugin {self.name!r} failed: {self.reason}{then}"


Tell = Callable[[Trouble], None]
Clock = Callable[[], int]
"""Nanoseconds that only grow."""


class Cost(NamedTuple):
    """What a plugin has cost so far."""

    calls: int
    errors: int
    p50_ns: int
    """Of the sampled calls; 0 where there was none."""
    p99_ns: int
    tripped: bool
    last_error: str


def _anything(found: object) -> bool:
    return True


class Guard:
    """What is known of one plugin in use.

    Its functions count in variables of their own: an attribute would cost as much as all the rest. So the same few
    lines stand in each of them.
    """

    def __init__(self, kind: str, name: str, clock: Clock, tell: Tell) -> None:
        """``tell`` is called inside of the call that failed: it returns at once."""
        self.kind = kind
        self.name = name
        self.errors = 0
        self.tripped = False
        self.last = ""
        """The last error, in words."""
        self._clock = clock
        self._tell = tell
        self._told = -_PERIOD
        self._recent: deque[int] = deque(maxlen=ERRORS_MAX)
        """When the last errors were."""
        self._times: deque[int] = deque(maxlen=SAMPLES_KEPT)
        self._calls = 0
        """As far as they are not counted by the functions."""
        self._busy = False
        """A call that the functions do not count is being made, in the thread that decides."""
        self._looks: list[Callable[[], tuple[int, bool]]] = []
        """What the functions have counted, and whether a call is being made."""

    # What is called in place of the plugin

    def hashing(self, hash32: Callable[[bytes], int], instead: Callable[[bytes], int]) -> Callable[[bytes], int]:
        """``hash32`` of a plugin; a key for which it fails goes by ``instead``."""
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
                if found.__class__ is int and 0 <= found <= most:  # type(found) takes longer
                    busy = False
                    return found
                raise _OutOfContract(f"hash32 gave {found!r:.80}, which is not a number from 0 to {HASH_MAX}")
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
        """What a router has opened; a message for which it fails goes by ``instead``."""
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
                raise _OutOfContract(f"of {partitions} partitions it chose {found!r:.80}")
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
        """A choice among consumers; where it fails ``instead`` chooses."""
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
                raise _OutOfContract(f"of {len(ready)} consumers it chose {found!r:.80}, which is none of them")
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
        """One call about the consumers of a subscription, which is seldom: what was decided is kept.

        Raises PluginFailed where it fails, where the answer does not fit, and where it is not asked any more.
        """
        if self.tripped:
            raise PluginFailed(f"the {self.kind} plugin {self.name!r} is not asked any more")
        self._calls += 1
        self._busy = True
        try:
            found = decide(*arguments) if self._calls & SAMPLE - 1 else self._timed(decide, *arguments, counts=0)
            if fits(found):
                return found
            raise _OutOfContract(f"{getattr(decide, '__name__', 'it')} gave {found!r:.80}, which is none of those here")
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            self._failed(error, trips=True)
            raise PluginFailed(f"the {self.kind} plugin {self.name!r} failed: {self.last}") from error
        finally:
            self._busy = False

    def bytes_of(self, work: Callable[..., bytes]) -> Callable[..., bytes]:
        """A method of a codec. Nothing stands in for it: raises PluginFailed where it fails.

        It may be called by threads; who watches does not see it.
        """

        def guarded(*arguments: Any) -> bytes:
            self._calls += 1
            try:
                found = work(*arguments) if self._calls & SAMPLE - 1 else self._timed(work, *arguments, counts=0)
                if type(found) is bytes:
                    return found
                raise _OutOfContract(f"it gave {type(found).__name__}, not bytes")
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                self._failed(error)
                raise PluginFailed(f"the {self.kind} plugin {self.name!r} failed: {self.last}") from error

        return guarded

    # What it has cost

    @property
    def calls(self) -> int:
        """Made so far."""
        return self._calls + sum(look()[0] for look in self._looks)

    @property
    def busy(self) -> bool:
        """Whether a call is being made right now: for who looks from a signal's handler."""
        return self._busy or any(look()[1] for look in self._looks)

    def cost(self) -> Cost:
        """Calls, errors and times so far."""
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
        if self.tripped or now - self._told >= _PERIOD:
            self._told = now
            self._tell(Trouble(self.kind, self.name, self.last, trace, self.tripped))


class _OutOfContract(Exception):
    """What came back is not what the contract says."""


def _in_words(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # its __str__ is the plugin's as well
        return type(error).__name__
