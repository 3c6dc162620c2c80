"""Verification of passwords: a hash takes up to 50 ms, so threads of the shell compute it, outside the event loop.

At most THREADS_MAX checks run at a time. Waiting ones take turns by client host, so that a host that tries many
passwords delays another host by at most one check. Clients that present the same credentials at once, as all do
after a restart of the box, share one check.
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from typing import Final

from pulsarbox.broker.security.provider import LongCheck, Overloaded
from pulsarbox.clock import Now

THREADS_MAX: Final = 2
WAITING_MAX: Final = 1000
"""Waiting checks of all hosts; further ones are refused. The last one waits for 25 s."""
WAITING_OF_HOST_MAX: Final = 100
ASKERS_MAX: Final = 100
"""Clients that share a check: answering them takes 4 ms of one turn of the event loop."""

Checked = Callable[[bool, Exception | None, Now], None]
"""Receives whether the password matches, or False with an error."""


class PasswordChecks:
    """The unfinished verifications of one broker."""

    def __init__(self) -> None:
        self._waiting: OrderedDict[str, deque[LongCheck]] = OrderedDict()
        self._count = 0
        self._running = 0
        self._askers: dict[Hashable, list[Checked]] = {}
        """Of each unfinished verification."""

    def ask(self, host: str, check: LongCheck, then: Checked) -> None:
        """Queue a verification for a client host, or join the unfinished one with the same key.

        Raises Overloaded if too many are waiting.
        """
        askers = self._askers.get(check.key)
        if askers is not None:
            if len(askers) == ASKERS_MAX:
                raise Overloaded(f"{ASKERS_MAX} clients are waiting for the same verification; try again")
            askers.append(then)
            return
        of_host = self._waiting.get(host, ())
        if self._count >= WAITING_MAX or len(of_host) >= WAITING_OF_HOST_MAX:
            text = f"{self._count} passwords are waiting for verification, {len(of_host)} from this host; try again"
            raise Overloaded(text)
        self._askers[check.key] = [then]
        self._waiting.setdefault(host, deque()).append(check)
        self._count += 1

    def take(self) -> list[LongCheck]:
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

    def done(self, check: LongCheck, matches: bool, now: Now, error: Exception | None = None) -> None:
        """Complete a verification; with ``error`` it failed."""
        self._running -= 1
        for then in self._askers.pop(check.key):
            then(matches, error, now)
