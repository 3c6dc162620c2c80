"""Plugins for a broker: found, looked at in a process of their own, then loaded into this one; and who does not return.

The first use of a plugin takes as long as its checks in the other process, a second or so. The settings' own plugins
are loaded at the start; one that only a subscription names, when its first consumer comes.
"""

from __future__ import annotations

import logging
import signal
import time
from collections.abc import Iterable
from pathlib import Path
from types import FrameType
from typing import Any, Final

from pulsarbox.broker.plugins import Plugins
from pulsarbox.config import Settings
from pulsarbox.plugins import guard as guard_module
from pulsarbox.plugins.guard import Guard, PluginEndless
from pulsarbox.plugins.probe import probe
from pulsarbox.plugins.registry import PluginError, built_in, choose, find, get, load

log = logging.getLogger(__name__)

PROBE_SECONDS: Final = 10
LOOK_SECONDS: Final = 0.5
"""A call that is still being made at the second look, half a second to a second later, is ended."""


def plugins_of(settings: Settings) -> Plugins:
    """The plugins of a box with these settings."""
    directory = Path(settings.pluginsDirectory) if settings.pluginsDirectory else None

    def loaded(kind: str, name: str) -> Any:
        if name in built_in(kind):
            return get(kind, name)
        found = choose(find(directory), kind, name)
        report = probe(found, PROBE_SECONDS)
        if not report.usable or (kind == "hashing" and report.problems):
            raise PluginError("; ".join(report.problems), report.trace)
        for problem in report.problems:
            log.warning("the %s plugin %r does not keep its contract: %s", kind, name, problem)
        plugin = load(found)
        log.info("the %s plugin %r is loaded from %s", kind, name, found.source)
        return plugin

    return Plugins(loaded, time.perf_counter_ns)


class Watch:
    """Ends calls of plugins that do not come back, by an exception inside of them.

    A signal's handler runs between two steps of Python in the main thread, the plugin's own, and raises only where
    these are the plugin's steps, or of what it calls: nothing else is ever struck. A plugin that waits outside of
    Python does not hear it; that is a limit, as are boxes in threads of other programs.
    """

    def __init__(self, plugins: Plugins) -> None:
        self._plugins = plugins
        self._seen: dict[Guard, int] = {}
        """The number of the call that was being made at the last look."""

    def begin(self) -> None:
        """From the first plugin on. Only in the main thread of a process that is the box's own."""
        self._plugins.guarded = self._start
        if self._plugins.guards:
            self._start()

    def _start(self) -> None:
        signal.signal(signal.SIGALRM, self._look)
        signal.siginterrupt(signal.SIGALRM, False)
        signal.setitimer(signal.ITIMER_REAL, LOOK_SECONDS, LOOK_SECONDS)

    def stop(self) -> None:
        """No longer."""
        self._plugins.guarded = _nothing
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_IGN)

    def _look(self, number: int, frame: FrameType | None) -> None:
        before, self._seen = self._seen, dict(_being_made(self._plugins.guards.values()))
        if frame is None or frame.f_code.co_filename == guard_module.__file__:
            return
        for guard, call in self._seen.items():
            if before.get(guard) == call:
                raise PluginEndless(f"it had not come back after {LOOK_SECONDS:g} seconds and was ended")


def _nothing() -> None:
    """Nobody watches."""


def _being_made(guards: Iterable[Guard]) -> Iterable[tuple[Guard, int]]:
    return ((guard, guard.calls) for guard in guards if guard.busy)
