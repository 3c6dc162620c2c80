"""Verification of passwords: a hash takes up to 50 ms, so threads of the shell compute it, outside the event loop.

At most THREADS_MAX checks run at a time. Waiting ones take turns by client host, so that a host that tries many
passwords delays another host by at most one check.
"""

from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Final, NamedTuple

from pulsarbox.broker.security.provider import Refused
from pulsarbox.clock import Now

THREADS_MAX: Final = 2
WAITING_MAX: Final = 1000
"""Waiting checks of all hosts; further ones are refused. The last one waits for 25 s."""
WAITING_OF_HOST_MAX: Final = 100

Checked = Callable[[bool, Exception | None, Now], None]


class Check(NamedTuple):
    """One verification."""

    work: Callable[[], bool]
    """Returns whether the password matches. Uses immutable data only: it runs in a thread."""
    then: Checked
    """Receives the result, or False with an error, in the event loop."""


class PasswordChecks:
    """The unfinished verifications of one broker."""

    def __init__(self) -> None:
        self._waiting: OrderedDict[str, deque[Check]] = OrderedDict()
        self._count = 0
        self._running = 0

    def ask(self, host: str, work: Callable[[], bool], then: Checked) -> None:
        """Queue a verification for a client host. Raises Refused if too many are waiting."""
        of_host = self._waiting.get(host, ())
        if self._count >= WAITING_MAX or len(of_host) >= WAITING_OF_HOST_MAX:
            raise Refused(f"{self._count} passwords are waiting for verification, {len(of_host)} from this host")
        self._waiting.setdefault(host, deque()).append(Check(work, then))
        self._count += 1

    def take(self) -> list[Check]:
        """Remove and return the verifications to start now; each is answered with ``done``."""
        taken = []
        while self._waiting and self._running < THREADS_MAX:
            host, checks = self._waiting.popitem(last=False)
            taken.append(checks.popleft())
            if checks:
                self._waiting[host] = checks
            self._count -= 1
            self._running += 1
        return taken

    def done(self, check: Check, matches: bool, now: Now, error: Exception | None = None) -> None:
        """Complete a verification; with ``error`` it failed."""
        self._running -= 1
        check.then(matches, error, now)
