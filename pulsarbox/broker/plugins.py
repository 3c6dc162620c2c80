"""The broker's plugins: Key_Shared hashes, consumer choices, selectors, partition routers and codecs.

The broker does not discover plugins. The shell passes a loader, and a clock to time the plugins; without a loader, only
built-in plugins exist. Loading takes up to a second, which must not block the loop: code that needs a plugin requests
it (``want``), the shell takes the requests (``take_wanted``), loads outside the loop and returns the result
(``loaded``). An unavailable plugin is replaced by the built-in one, except for hashes (see ``key_hash``).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from pulsarbox.broker.callbacks import Callbacks
from pulsarbox.broker.dispatch.consumer_choice import CHOICES, Choose, round_robin
from pulsarbox.broker.dispatch.consumer_choice import PROPERTY as CHOICE
from pulsarbox.broker.dispatch.selectors.choice import PROPERTY as SELECTOR
from pulsarbox.broker.dispatch.selectors.choice import SELECTORS, make_selector
from pulsarbox.broker.dispatch.selectors.key_shared_meta import KeySharedMode
from pulsarbox.broker.dispatch.selectors.plugged import PluggedSelector
from pulsarbox.broker.dispatch.selectors.selector import StickyKeySelector, key_hash
from pulsarbox.broker.subscription.consumer import Consumer
from pulsarbox.clock import Now
from pulsarbox.config import Settings
from pulsarbox.errors import ConsumerAssignError
from pulsarbox.plugins.compression.guarded import GuardedCompression
from pulsarbox.plugins.compression.rest import NONE
from pulsarbox.plugins.contracts import Choose as Partition
from pulsarbox.plugins.contracts import Producing
from pulsarbox.plugins.guard import Guard, Trouble
from pulsarbox.plugins.opening import opened
from pulsarbox.plugins.registry import PluginError, built_in, get
from pulsarbox.protocol.PulsarApi_pb2 import CommandSubscribe

log = logging.getLogger(__name__)

MURMUR3: Final = "murmur3"
"""The hash that Pulsar's brokers use; each entry's header holds it."""
HASHING: Final = "keySharedHashing"
"""Broker setting, and the subscription property that overrides it. ``CHOICE`` and ``SELECTOR`` are, too."""

Load = Callable[[str, str], Any]
"""Loads the plugin of a kind and name. Raises PluginError."""
Hash = Callable[[bytes], int]
Key = tuple[str, str]
"""Kind and name."""

_AGAIN_NANOS: Final = 10_000_000_000
"""Delay until an unavailable plugin may be loaded again."""
_MISSING_MAX: Final = 1000
_LATER: Final = "it is being loaded"


def _nothing_else(kind: str, name: str) -> Any:
    raise PluginError(f"there is no plugin {name!r} for {kind}: this box was created without plugins")


class Plugins:
    """Loaded plugins, each with its guard."""

    def __init__(self, load: Load = _nothing_else, clock: Callable[[], int] = int, *, beside: bool = False) -> None:
        """Create an empty registry.

        ``clock``: monotonic nanoseconds; without it, calls are not timed and all errors count as of the same minute.
        ``beside``: the shell calls ``take_wanted``. Otherwise ``load`` is called on demand.
        """
        self.guards: dict[Key, Guard] = {}
        self.missing: dict[Key, str] = {}
        """Requested plugins that are unavailable, and why."""
        self.disabled: frozenset[Key] = frozenset()
        """Plugins in ``pluginsDisabled``."""
        self.failed: Callbacks[Trouble] = Callbacks()
        """Called with each failure that is logged."""
        self.guarded: Callbacks[[]] = Callbacks()
        """Called when a plugin comes into use."""
        self.load = load
        self._clock = clock
        self._run_in_thread = beside
        self._there: dict[Key, Any] = {}
        self._failed: dict[Key, tuple[PluginError, int]] = {}
        """Why a plugin is unavailable, and when that was found."""
        self._wanted: list[Key] = []
        self._waiting: dict[Key, list[Callable[[Now], None]]] = {}
        """Callbacks waiting for a plugin to load."""
        self._hashes: dict[str, Hash] = {}
        self._choices: dict[str, Choose] = {}

    def apply_settings(self, settings: Settings) -> None:
        """Apply changed settings; give missing and tripped plugins another chance."""
        disabled = frozenset(named(settings.pluginsDisabled))
        for key, guard in self.guards.items():
            if key in self.disabled and key not in disabled:
                guard.tripped = False
            elif key in disabled and key[0] == "routing":
                guard.tripped = True
        if disabled != self.disabled:
            self.missing.clear()
            self._failed.clear()
        self.disabled = disabled

    # Loading

    def want(self, keys: Iterable[Key], then: Callable[[Now], None]) -> bool:
        """Request plugins; return whether any has to be loaded.

        If so, ``then`` is called once all are loaded or have failed.
        """
        missing = [key for key in dict.fromkeys(keys) if not self._is_known(key)]
        if not self._run_in_thread or not missing:
            return False
        left = len(missing)

        def one(now: Now) -> None:
            nonlocal left
            left -= 1
            if not left:
                then(now)

        for key in missing:
            if key not in self._waiting:
                self._wanted.append(key)
            self._waiting.setdefault(key, []).append(one)
        return True

    def prepare(self, settings: Settings) -> None:
        """Preload the plugins named in the settings."""
        wanted = [("routing", settings.routing), ("hashing", settings.routingHashing)]
        for sub_type in (CommandSubscribe.Shared, CommandSubscribe.Key_Shared):
            wanted += needed_by(sub_type, {}, settings)
        self.want(wanted, _no_matter)

    def _is_known(self, key: Key) -> bool:
        kind, name = key
        return name in built_in(kind) or key in self._there or key in self.disabled or self._why_not(key) is not None

    def _why_not(self, key: Key) -> PluginError | None:
        failed = self._failed.get(key)
        return failed[0] if failed is not None and self._clock() - failed[1] < _AGAIN_NANOS else None

    def take_wanted(self) -> list[Key]:
        """Remove and return the plugins to load; the shell answers with ``loaded``."""
        wanted, self._wanted = self._wanted, []
        return wanted

    def loaded(self, key: Key, found: Any, now: Now) -> None:
        """Complete the loading of a plugin; ``found`` is the plugin or a PluginError."""
        if isinstance(found, PluginError):
            self._cannot(key, found)
        else:
            self._there[key] = found
        for then in self._waiting.pop(key, ()):
            then(now)

    def _loaded(self, kind: str, name: str, *, at_once: bool = False) -> Any:
        """Return a plugin. Raises PluginError, also if it is not loaded yet and loading must not block."""
        key = kind, name
        if name in built_in(kind):
            return get(kind, name)
        if key not in self._there:
            error = self._why_not(key)
            if error is not None:
                raise error
            if self._run_in_thread and not at_once:
                self.want([key], _no_matter)
                raise PluginError(_LATER)
            try:
                self._there[key] = self.load(kind, name)
            except PluginError as failed:
                self._cannot(key, failed)
                raise
        return self._there[key]

    def _cannot(self, key: Key, error: PluginError) -> None:
        for known in (self._failed, self.missing):  # bounded, because clients choose the names
            if len(known) >= _MISSING_MAX:
                del known[next(iter(known))]
        self._failed[key] = error, self._clock()
        if self.missing.get(key) != str(error):
            self.missing[key] = str(error)
            self._report(Trouble(*key, str(error), error.trace, tripped=False, loading=True))

    def _guard(self, kind: str, name: str) -> Guard:
        guard = self.guards.get((kind, name))
        if guard is None:
            guard = self.guards[kind, name] = Guard(kind, name, self._clock, self._report)
            self.guarded()
        return guard

    def _report(self, trouble: Trouble) -> None:
        """Report that a plugin failed or is unavailable; Guard limits how often."""
        log.error("%s%s", trouble, f"\n{trouble.trace}" if trouble.trace else "")
        self.failed(trouble)

    def _routing(self, name: str, form: str, what: str) -> Any:
        """Return a routing plugin of one form. Raises PluginError."""
        if ("routing", name) in self.disabled:
            raise PluginError("it is disabled")
        plugin = self._loaded("routing", name)
        if not hasattr(plugin, form):
            error = PluginError(f"it has no {form}(), which {what}")
            self._cannot(("routing", name), error)
            raise error
        return plugin

    # Hashes of Key_Shared

    def key_hash(self, name: str, *, decided: bool = False) -> Hash | None:
        """Return the hash of that name; None for Murmur3, which entries carry. Raises ConsumerAssignError.

        ``decided``: the subscription already uses this hash, which is therefore available even if disabled.
        """
        if name == MURMUR3:
            return None
        if ("hashing", name) in self.disabled and not (decided and name in self._hashes):
            raise ConsumerAssignError(f"The hashing plugin '{name}' is disabled: run `pulsarbox plugins enable {name}`")
        try:
            return self._hashes.get(name) or self.load_hash(name, at_once=False)
        except PluginError as error:
            raise ConsumerAssignError(f"The hashing plugin '{name}' cannot be used: {error}") from None

    def load_hash(self, name: str, *, at_once: bool = True) -> Hash:
        """Return the hash of that name, loading it synchronously by default. Raises PluginError."""
        plugin = self._loaded("hashing", name, at_once=at_once)
        found = self._hashes[name] = self._guard("hashing", name).hashing(plugin.hash32, key_hash)
        return found

    def replace_hash(self, name: str, instead: Hash) -> None:
        """Use another hash in place of an unavailable one."""
        self._hashes[name] = instead

    # Codecs

    def codec(self, kind: str, name: str) -> Any:
        """Return the guarded codec of that name for data at rest. Raises PluginError.

        Safe to call from other threads: loading the same plugin twice is harmless.
        """
        if name in built_in(kind):
            return get(kind, name)
        return GuardedCompression(self._loaded(kind, name, at_once=True), self._guard(kind, name))

    def require_codec(self, name: str) -> None:
        """Raise PluginError if the codec cannot compress entries at rest."""
        if name == NONE:
            return
        if ("compression", name) in self.disabled:
            raise PluginError(f"it is disabled: run `pulsarbox plugins enable {name}`")
        if name in built_in("compression"):
            get("compression", name)
            return
        known = ("compression", name) in self.missing
        try:
            tag = self._loaded("compression", name, at_once=True).rest_tag
        except PluginError:
            if not known:  # the caller rejects the name: it is not in use
                self.missing.pop(("compression", name), None)
            raise
        if tag is None:
            raise PluginError("it does not support compression at rest: it has no rest_tag")

    # Consumers

    def choice_of(self, default: str, properties: Mapping[str, str]) -> Choose:
        """Return the consumer choice of a Shared subscription with these properties; see CHOICES.

        Unknown names are ignored.
        """
        for name in (properties.get(CHOICE), default):
            found = (CHOICES.get(name) or self._choice(name)) if name else None
            if found is not None:
                return found
        return round_robin

    def _choice(self, name: str) -> Choose | None:
        if name not in self._choices:
            try:
                plugin = self._routing(name, "choose", "selects the next consumer")
            except PluginError:
                return None
            guarded = self._guard("routing", name).consumers(plugin.choose, round_robin)
            self._choices[name] = lambda ready: guarded(list(ready))
        return self._choices[name]

    def selector_of(
        self, mode: KeySharedMode, settings: Settings, properties: Mapping[str, str]
    ) -> StickyKeySelector[Consumer]:
        """Return the selector of a Key_Shared subscription with these properties, in its first consumer's mode.

        Plugins do not apply to ranges that consumers choose themselves (Sticky).
        """
        for name in (properties.get(SELECTOR), settings.keySharedSelector):
            if not name or mode is not KeySharedMode.AUTO_SPLIT:
                continue
            if name in SELECTORS:
                return SELECTORS[name](settings)
            try:
                plugin = self._routing(name, "divide", "assigns keys to consumers")
            except PluginError:
                continue
            return PluggedSelector(plugin, self._guard("routing", name), make_selector(mode, settings))
        return make_selector(mode, settings)

    def generation_of(self, sub_type: int, properties: Mapping[str, str], settings: Settings) -> object:
        """Return a value that changes whenever the subscription's dispatcher must be rebuilt for other plugins."""
        names = [properties.get(each) for each in (CHOICE, SELECTOR, HASHING)]
        there = [(key, key in self._there) for key in needed_by(sub_type, properties, settings)]
        return names, there

    # Partitions

    def router(self, name: str, hashing: str, producing: Callable[[Hash], Producing]) -> Partition:
        """Return a partition router for the box's own producers. Raises PluginError, also if it is not loaded yet.

        ``producing`` receives the hash of keys.
        """
        hash32 = self._loaded("hashing", hashing).hash32
        if hashing not in built_in("hashing"):
            hash32 = self._guard("hashing", hashing).hashing(hash32, key_hash)
        plugin = self._routing(name, "open", "selects the partition of a message")
        guard = None if name in built_in("routing") else self._guard("routing", name)
        try:
            return opened(plugin, producing(hash32), guard)
        except PluginError as error:  # raised by its options
            self._cannot(("routing", name), error)
            raise


def needed_by(sub_type: int, properties: Mapping[str, str], settings: Settings) -> Iterable[Key]:
    """Yield the plugins that a subscription of a type needs, given its properties."""
    if sub_type == CommandSubscribe.Shared:
        for name in (properties.get(CHOICE), settings.sharedConsumerSelection):
            if name and name not in CHOICES:
                yield "routing", name
    elif sub_type == CommandSubscribe.Key_Shared:
        for name in (properties.get(SELECTOR), settings.keySharedSelector):
            if name and name not in SELECTORS:
                yield "routing", name
        hashing = properties.get(HASHING) or settings.keySharedHashing
        if hashing != MURMUR3:
            yield "hashing", hashing


def named(text: str) -> Iterable[Key]:
    """Yield the kind and name of each plugin in ``pluginsDisabled``."""
    for each in text.split(","):
        kind, _, name = each.strip().partition(":")
        if name:
            yield kind, name


def _no_matter(now: Now) -> None:
    """Do nothing: no caller waits."""
