"""Plugins for a broker: found, looked at in a process of their own, then loaded into this one; and who does not return.

A look takes a second or so. It is taken beside the loop, and once: what was found is kept with the data for as long as
the plugin is made of the same. Only the hash that the settings name is waited for at the start, which it may refuse.
"""

from __future__ import annotations

import json
import logging
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

from pulsarbox.broker.plugins import Key, Load, Plugins
from pulsarbox.config import Settings
from pulsarbox.plugins import guard as guard_module
from pulsarbox.plugins.guard import Guard, PluginEndless
from pulsarbox.plugins.registry import Found, PluginError, choose, find, load
from pulsarbox.storage.format import KNOWN_PLUGINS
from pulsarbox.storage.lmdb.private_files import opener

if TYPE_CHECKING:
    from pulsarbox.plugins.probe import Report

log = logging.getLogger(__name__)

PROBE_SECONDS: Final = 10
LOAD_SECONDS: Final = 60
"""After that time whoever waits for a plugin waits no longer."""
AT_ONCE: Final = 4
"""Plugins that are being loaded at a time: clients may name as many as they like."""
LOOK_SECONDS: Final = 0.5
"""A call that is still being made at the second look, half a second to a second later, is ended."""
_KNOWN_MAX: Final = 200


def plugins_of(settings: Settings, data: Path | None) -> Plugins:
    """The plugins of a box with these settings; ``data``: its directory, None where it keeps everything in memory."""
    return Plugins(_Loader(settings, data), time.perf_counter_ns, beside=True)


class _Loader:
    """Gets a plugin by kind and name: finds it, has it looked at unless it is as it was, and loads it."""

    def __init__(self, settings: Settings, data: Path | None) -> None:
        self._directory = Path(settings.pluginsDirectory) if settings.pluginsDirectory else None
        self._known = None if data is None else data / KNOWN_PLUGINS

    def __call__(self, kind: str, name: str) -> Any:
        """An object of the plugin. Raises PluginError."""
        found = choose(find(self._directory), kind, name)
        report = self._looked_at(found)
        if not report.usable or (kind == "hashing" and report.problems):
            raise PluginError("; ".join(report.problems), report.trace)
        for problem in report.problems:
            log.warning("the %s plugin %r does not keep its contract: %s", kind, name, problem)
        plugin = load(found)
        log.info("the %s plugin %r is loaded from %s", kind, name, found.source)
        return plugin

    def _looked_at(self, found: Found) -> Report:
        """What a look at it finds, or found when it was the same. What cannot be used is looked at each time."""
        # Only where there is a plugin, and then in a thread, or before the box serves.
        from pulsarbox.plugins.fingerprint import fingerprint
        from pulsarbox.plugins.probe import Report, probe

        made_of = None if self._known is None or found.problem else fingerprint(found)
        if made_of is None:
            return probe(found, PROBE_SECONDS)
        known = _read(self._known)
        problems = known.get(made_of)
        if problems is not None:
            return Report(True, problems)
        report = probe(found, PROBE_SECONDS)
        if report.usable:
            known[made_of] = report.problems
            _write(self._known, dict(list(known.items())[-_KNOWN_MAX:]))
        return report


def _read(path: Path | None) -> dict[str, list[str]]:
    """What is not as it was written counts for nothing."""
    try:
        assert path is not None
        said = json.loads(path.read_text(encoding="utf-8"))
        return {str(name): [str(each) for each in problems] for name, problems in said.items()}
    except (OSError, ValueError, AttributeError, TypeError):
        return {}


def _write(path: Path | None, known: dict[str, list[str]]) -> None:
    assert path is not None
    beside = path.with_suffix(".new")
    try:
        with open(beside, "w", encoding="utf-8", opener=opener) as file:
            json.dump(known, file, indent=1)
        beside.replace(path)
    except OSError as error:
        log.info("what was found out about plugins is not kept: %s", error)


class Bringing:
    """Loads plugins beside the loop, a few at a time: each in a thread of its own, which may never come back."""

    def __init__(self, load: Load, brought: Callable[[Key, object], None]) -> None:
        """``brought`` is called in some thread with the plugin, or with the PluginError that says why not."""
        self._load = load
        self._brought = brought
        self._left: deque[Key] = deque()
        self._free = AT_ONCE
        self._lock = threading.Lock()

    def bring(self, *keys: Key) -> None:
        """Load these: each is brought once, ``LOAD_SECONDS`` after its begin at the latest."""
        with self._lock:
            self._left += keys
            begin = [self._left.popleft() for _ in range(min(self._free, len(self._left)))]
            self._free -= len(begin)
        for key in begin:
            self._begin(key)

    def _begin(self, key: Key) -> None:
        first = threading.Lock()

        def told(found: object) -> None:
            if first.acquire(blocking=False):
                late.cancel()
                self._brought(key, found)
                with self._lock:
                    self._free += 1
                self.bring()

        def run() -> None:
            try:
                told(self._load(*key))
            except PluginError as error:
                told(error)
            except BaseException as error:  # the thread ends here in any case, and somebody waits
                log.exception("the %s plugin %r could not be loaded", *key)
                told(PluginError(f"{type(error).__name__}: {error}"))

        too_late = PluginError(f"it was not loaded after {LOAD_SECONDS} seconds")
        late = threading.Timer(LOAD_SECONDS, told, [too_late])
        late.daemon = True
        late.start()
        threading.Thread(target=run, name=f"plugin {key[1]}", daemon=True).start()


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
        if threading.current_thread() is not threading.main_thread():
            return  # a codec that the housekeeper needs: its calls are none that are watched
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
