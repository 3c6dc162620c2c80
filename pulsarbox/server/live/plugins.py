"""The live view of plugins: all available ones, the cost of those in use, and their errors."""

from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path
from typing import Any, Final, NamedTuple
from weakref import WeakKeyDictionary

from pulsarbox.broker.broker import Broker
from pulsarbox.broker.dispatch.plugin_hash_registry import rows as rows_of_hashes
from pulsarbox.clock import Now
from pulsarbox.plugins.registry import PluginEntry, find
from pulsarbox.server.live.view import LiveView, ViewScope, kept

Told = dict[str, Any]

LOOK_SECONDS: Final = 30.0
"""Seconds between scans for plugins, both files and distributions."""
_FOUND: Final[WeakKeyDictionary[Broker, tuple[float, list[PluginEntry]]]] = WeakKeyDictionary()


class Plugin(NamedTuple):
    """One plugin; ``told`` as in ``used``."""

    kind: str
    name: str
    source: str | None
    """None for a requested plugin that is missing."""
    reported: Told


def used(broker: Broker) -> dict[tuple[str, str], Told]:
    """Return plugins by kind and name that were requested since startup, are used by subscriptions, or are disabled.

    Times are sampled from one call in 256, in nanoseconds.
    """
    found: dict[tuple[str, str], Told] = {}
    for (kind, name), guard in broker.plugins.guards.items():
        cost = guard.cost()
        _of(found, kind, name).update(
            state="not asked any more" if cost.tripped else "in use",
            calls=cost.calls,
            errors=cost.errors,
            p50Nanos=cost.p50_ns,
            p99Nanos=cost.p99_ns,
            lastError=cost.last_error,
        )
    for (kind, name), reason in broker.plugins.missing.items():
        _of(found, kind, name).update(state="missing", lastError=reason)
    for kind, name in broker.plugins.disabled:
        _of(found, kind, name)["state"] = "disabled"
    for _, row in rows_of_hashes(broker.catalog):
        of = {"topic": row["topic"], "subscription": row["subscription"]}
        _of(found, "hashing", row["hashing"])["subscriptions"].append(of)
    return found


def _of(found: dict[tuple[str, str], Told], kind: str, name: str) -> Told:
    nothing = {"calls": 0, "errors": 0, "p50Nanos": 0, "p99Nanos": 0, "lastError": "", "subscriptions": []}
    return found.setdefault((kind, name), {"kind": kind, "name": name, "state": "idle"} | nothing)


def _there(broker: Broker, now: Now) -> list[PluginEntry]:
    """Return the available plugins, cached, without importing them."""
    looked, found = _FOUND.get(broker, (0.0, []))
    if not found or now.monotonic - looked >= LOOK_SECONDS:
        directory = broker.settings.pluginsDirectory
        found = find(Path(directory) if directory else None)
        _FOUND[broker] = now.monotonic, found
    return found


def things(broker: Broker, scope: ViewScope, now: Now) -> Iterator[Plugin]:
    """Yield all plugins; a tenant has none."""
    if scope.prefix:
        return
    told = used(broker)
    for each in _there(broker, now):
        nothing = {"state": "cannot be used" if each.problem else "idle", "lastError": each.problem}
        yield Plugin(each.kind, each.name, each.source, told.pop((each.kind, each.name), nothing))
    for (kind, name), each_told in told.items():
        yield Plugin(kind, name, None, each_told)


def _told(name: str) -> Any:
    return kept(lambda plugin: plugin.reported.get(name, 0))


COLUMNS: Final = {
    "kind": kept(attrgetter("kind")),
    "name": kept(attrgetter("name")),
    "source": kept(attrgetter("source")),
    "state": _told("state"),
    "calls": _told("calls"),
    "p50Nanos": _told("p50Nanos"),
    "p99Nanos": _told("p99Nanos"),
    "errors": _told("errors"),
    "lastError": kept(lambda plugin: plugin.reported["lastError"] or None),
    "subscriptions": kept(lambda plugin: len(plugin.reported.get("subscriptions", ()))),
}

PLUGINS: Final = LiveView("plugins", COLUMNS, things, sort="calls", searched=lambda plugin: (plugin.kind, plugin.name))
