"""Plugins of a broker: discovery, probing in a separate process, loading, and termination of endless calls.

A probe takes about a second. It runs beside the loop, and once: its result is stored with the data until the plugin
changes. Startup waits only for the hash function that the settings name, and fails if it is unusable.
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
from pulsarbox.plugins.registry import PluginEntry, PluginError, choose, find, load
from pulsarbox.storage.format import KNOWN_PLUGINS
from pulsarbox.storage.lmdb.private_files import opener

if TYPE_CHECKING:
    from pulsarbox.plugins.probe import ProbeReport

log = logging.getLogger(__name__)

PROBE_SECONDS: Final = 10
LOAD_SECONDS: Final = 60
"""Timeout in seconds for loading a plugin."""
AT_ONCE: Final = 4
"""Plugins loaded concurrently: clients may request any number."""
LOOK_SECONDS: Final = 0.5
"""Seconds between checks. A call still running at its second check, half a second to a second later, is terminated."""
_KNOWN_MAX: Final = 200


def plugins_of(settings: Settings, data: Path | None) -> Plugins:
    """Return the plugins of a box with these settings; ``data`` is its directory, None for a box in memory."""
    return Plugins(_Loader(settings, data), time.perf_counter_ns, beside=True)


class _Loader:
    """Loads a plugin by kind and name: finds it, probes it unless it is unchanged, and imports it."""

    def __init__(self, settings: Settings, data: Path | None) -> None:
        self._directory = Path(settings.pluginsDirectory) if settings.pluginsDirectory else None
        self._known = None if data is None else data / KNOWN_PLUGINS

    def __call__(self, kind: str, name: str) -> Any:
        """Return an object of the plugin. Raises PluginError."""
        found = choose(find(self._directory), kind, name)
        report = self._probe_report(found)
        if not report.usable or (kind == "hashing" and report.problems):
            raise PluginError("; ".join(report.problems), report.trace)
        for problem in report.problems:
            log.warning("the %s plugin %r violates its contract: %s", kind, name, problem)
        plugin = load(found)
        log.info("loaded the %s plugin %r from %s", kind, name, found.source)
        return plugin

    def _probe_report(self, found: PluginEntry) -> ProbeReport:
        """Return the probe's report, cached while the plugin is unchanged. Unusable plugins are probed each time."""
        # Imported only if there is a plugin, and then in a thread or before the box serves.
        from pulsarbox.plugins.fingerprint import fingerprint
        from pulsarbox.plugins.probe import ProbeReport, probe

        made_of = None if self._known is None or found.problem else fingerprint(found)
        if made_of is None:
            return probe(found, PROBE_SECONDS)
        known = _read(self._known)
        problems = known.get(made_of)
        if problems is not None:
            return ProbeReport(True, problems)
        report = probe(found, PROBE_SECONDS)
        if report.usable:
            known[made_of] = report.problems
            _write(self._known, dict(list(known.items())[-_KNOWN_MAX:]))
        return report


def _read(path: Path | None) -> dict[str, list[str]]:
    """Read the cached reports; an invalid file counts as empty."""
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
        log.info("cannot cache the reports on plugins: %s", error)


class PluginLoading:
    """Loads plugins beside the loop, a few at a time, each in a separate thread, which may never finish."""

    def __init__(self, load: Load, brought: Callable[[Key, object], None]) -> None:
        """``brought`` is called in some thread with the plugin, or with the PluginError that explains its absence."""
        self._load = load
        self._brought = brought
        self._left: deque[Key] = deque()
        self._free = AT_ONCE
        self._lock = threading.Lock()

    def load(self, *keys: Key) -> None:
        """Load plugins: each is reported exactly once, within ``LOAD_SECONDS`` of its start."""
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
                self.load()

        def run() -> None:
            try:
                told(self._load(*key))
            except PluginError as error:
                told(error)
            except BaseException as error:  # the thread ends here in any case, and a caller waits
                log.exception("the %s plugin %r could not be loaded", *key)
                told(PluginError(f"{type(error).__name__}: {error}"))

        too_late = PluginError(f"it did not load within {LOAD_SECONDS} seconds")
        late = threading.Timer(LOAD_SECONDS, told, [too_late])
        late.daemon = True
        late.start()
        threading.Thread(target=run, name=f"plugin {key[1]}", daemon=True).start()


class PluginWatcher:
    """Terminates endless calls of plugins by raising an exception inside of them.

    A signal handler runs between two bytecode steps of the main thread, which runs the plugins. It raises only if those
    steps belong to the plugin or its callees, so no other code is ever interrupted. A plugin that blocks outside of
    Python is not interrupted; neither are boxes in threads of other programs.
    """

    def __init__(self, plugins: Plugins) -> None:
        self._plugins = plugins
        self._is_watching = False
        self._seen: dict[Guard, int] = {}
        """The number of the call in progress at the last check."""

    def begin(self) -> None:
        """Start watching with the first plugin. Only in the main thread of a dedicated process."""
        self._is_watching = True
        self._plugins.guarded.add(self._start)
        if self._plugins.guards:
            self._start()

    def _start(self) -> None:
        if not self._is_watching or threading.current_thread() is not threading.main_thread():
            return  # a codec for the housekeeper, whose calls are not watched
        signal.signal(signal.SIGALRM, self._poll)
        signal.siginterrupt(signal.SIGALRM, False)
        signal.setitimer(signal.ITIMER_REAL, LOOK_SECONDS, LOOK_SECONDS)

    def stop(self) -> None:
        """Stop watching."""
        self._is_watching = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_IGN)

    def _poll(self, number: int, frame: FrameType | None) -> None:
        before, self._seen = self._seen, dict(_being_made(self._plugins.guards.values()))
        if frame is None or frame.f_code.co_filename == guard_module.__file__:
            return
        for guard, call in self._seen.items():
            if before.get(guard) == call:
                raise PluginEndless(f"the call did not return within {LOOK_SECONDS:g} seconds and was terminated")


def _being_made(guards: Iterable[Guard]) -> Iterable[tuple[Guard, int]]:
    return ((guard, guard.calls) for guard in guards if guard.busy)
