"""The plugins that a broker was handed: hashes of Key_Shared, choices among consumers, selectors, routers.

The broker never looks for plugins. The shell gives it a function that does, and a clock to time them with; without them
there are the built-in ones only. To look at a plugin takes a second, in which nothing else may stand still: so who
needs one asks for it (``want``), the shell takes what is asked for (``take_wanted``), gets it beside the loop and
brings it (``brought``). What cannot be had is replaced by the built-in one; but for hashes, see ``key_hashes``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

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

if TYPE_CHECKING:
    from pulsarbox.broker.events import Events

log = logging.getLogger(__name__)

MURMUR3: Final = "murmur3"
"""The hash of Pulsar's brokers; it stands in the header of each entry."""
HASHING: Final = "keySharedHashing"
"""Setting of the broker, and property of a subscription that goes before it; so are ``CHOICE`` and ``SELECTOR``."""

Load = Callable[[str, str], Any]
"""The plugin of a kind and name. Raises PluginError."""
Hash = Callable[[bytes], int]
Key = tuple[str, str]
"""Kind and name."""

_AGAIN_NANOS: Final = 10_000_000_000
"""What could not be had is looked for again after that time, when somebody asks."""
_MISSING_MAX: Final = 1000
_LATER: Final = "it is being loaded"


def _nothing_else(kind: str, name: str) -> Any:
    raise PluginError(f"there is no plugin {name!r} for {kind}: this box was given none")


class Plugins:
    """The plugins in use, each with its guard."""

    def __init__(self, load: Load = _nothing_else, clock: Callable[[], int] = int, *, beside: bool = False) -> None:
        """``clock``: nanoseconds that only grow; without one nothing is timed, and errors are all of one minute.

        ``beside``: the shell calls ``take_wanted``. Else ``load`` is called where something is needed.
        """
        self.guards: dict[Key, Guard] = {}
        self.missing: dict[Key, str] = {}
        """What was asked for and cannot be had, and why."""
        self.disabled: frozenset[Key] = frozenset()
        """What is not to be used from now on (``pluginsDisabled``)."""
        self.events: Events | None = None
        """Where troubles are told, besides the log; the core sets it."""
        self.guarded: Callable[[], None] = _nothing
        """Called when a plugin has come into use."""
        self.load = load
        self._clock = clock
        self._beside = beside
        self._there: dict[Key, Any] = {}
        self._failed: dict[Key, tuple[PluginError, int]] = {}
        """Why it cannot be had, and when that was found out."""
        self._wanted: list[Key] = []
        self._waiting: dict[Key, list[Callable[[Now], None]]] = {}
        """Who waits for what is being loaded."""
        self._hashes: dict[str, Hash] = {}
        self._choices: dict[str, Choose] = {}

    def take(self, settings: Settings) -> None:
        """Go by these settings from now on. What was missing, or was not asked any more, gets another chance."""
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
        """Whether any of these has to be loaded first; ``then`` is called when all are there, or cannot be had."""
        missing = [key for key in dict.fromkeys(keys) if not self._is_known(key)]
        if not self._beside or not missing:
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
        """Ask for what the settings name, so that it is there when it is needed."""
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
        """What is to be loaded, and then brought."""
        wanted, self._wanted = self._wanted, []
        return wanted

    def brought(self, key: Key, found: Any, now: Now) -> None:
        """A plugin that was wanted, or the PluginError that says why it cannot be had."""
        if isinstance(found, PluginError):
            self._cannot(key, found)
        else:
            self._there[key] = found
        for then in self._waiting.pop(key, ()):
            then(now)

    def _loaded(self, kind: str, name: str, *, at_once: bool = False) -> Any:
        """Raises PluginError, also where it is not there yet and would have to be waited for."""
        key = kind, name
        if name in built_in(kind):
            return get(kind, name)
        if key not in self._there:
            error = self._why_not(key)
            if error is not None:
                raise error
            if self._beside and not at_once:
                self.want([key], _no_matter)
                raise PluginError(_LATER)
            try:
                self._there[key] = self.load(kind, name)
            except PluginError as failed:
                self._cannot(key, failed)
                raise
        return self._there[key]

    def _cannot(self, key: Key, error: PluginError) -> None:
        for known in (self._failed, self.missing):  # clients may name what they like
            if len(known) >= _MISSING_MAX:
                del known[next(iter(known))]
        self._failed[key] = error, self._clock()
        if self.missing.get(key) != str(error):
            self.missing[key] = str(error)
            self._tell(Trouble(*key, str(error), error.trace, tripped=False, loading=True))

    def _guard(self, kind: str, name: str) -> Guard:
        guard = self.guards.get((kind, name))
        if guard is None:
            guard = self.guards[kind, name] = Guard(kind, name, self._clock, self._tell)
            self.guarded()
        return guard

    def _tell(self, trouble: Trouble) -> None:
        """A plugin fails or cannot be had; see Guard for how often."""
        log.error("%s%s", trouble, f"\n{trouble.trace}" if trouble.trace else "")
        if self.events is not None:
            subject = f"{trouble.kind} {trouble.name}"
            self.events.tell_undated("plugin-failed", subject, str(trouble), tripped=trouble.tripped)

    def _routing(self, name: str, form: str, what: str) -> Any:
        """A routing plugin of one form. Raises PluginError."""
        if ("routing", name) in self.disabled:
            raise PluginError("it is disabled")
        plugin = self._loaded("routing", name)
        if not hasattr(plugin, form):
            error = PluginError(f"it does not say {what}: it has no {form}()")
            self._cannot(("routing", name), error)
            raise error
        return plugin

    # Hashes of Key_Shared

    def key_hash(self, name: str, *, decided: bool = False) -> Hash | None:
        """The hash of that name; None for Murmur3, which entries carry. Raises ConsumerAssignError without it.

        ``decided``: keys of the subscription go by it already, so it is had though it is disabled.
        """
        if name == MURMUR3:
            return None
        if ("hashing", name) in self.disabled and not (decided and name in self._hashes):
            raise ConsumerAssignError(f"The hashing plugin '{name}' is disabled: pulsarbox plugins enable {name}")
        try:
            return self._hashes.get(name) or self.load_hash(name, at_once=False)
        except PluginError as error:
            raise ConsumerAssignError(f"The hashing plugin '{name}' cannot be used: {error}") from None

    def load_hash(self, name: str, *, at_once: bool = True) -> Hash:
        """The same, also where it takes a while. Raises PluginError."""
        plugin = self._loaded("hashing", name, at_once=at_once)
        found = self._hashes[name] = self._guard("hashing", name).hashing(plugin.hash32, key_hash)
        return found

    def replace_hash(self, name: str, instead: Hash) -> None:
        """What goes by a hash that cannot be had goes by another one."""
        self._hashes[name] = instead

    # Codecs

    def codec(self, kind: str, name: str) -> Any:
        """The codec of that name for what stands on the disk, with its guard. Raises PluginError.

        Other threads ask as well; that two of them load the same one does no harm.
        """
        if name in built_in(kind):
            return get(kind, name)
        return GuardedCompression(self._loaded(kind, name, at_once=True), self._guard(kind, name))

    def require_codec(self, name: str) -> None:
        """Raise PluginError where entries cannot be compressed with a codec on the disk."""
        if name == NONE:
            return
        if ("compression", name) in self.disabled:
            raise PluginError(f"it is disabled: pulsarbox plugins enable {name}")
        if name in built_in("compression"):
            get("compression", name)
        elif self._loaded("compression", name, at_once=True).rest_tag is None:
            raise PluginError("it is not for use on the disk: it has no rest_tag")

    # Consumers

    def choice_of(self, default: str, properties: Mapping[str, str]) -> Choose:
        """The choice among the consumers of a Shared subscription with these properties; see CHOICES.

        A name that is none, nor that of a plugin, counts as none.
        """
        for name in (properties.get(CHOICE), default):
            found = (CHOICES.get(name) or self._choice(name)) if name else None
            if found is not None:
                return found
        return round_robin

    def _choice(self, name: str) -> Choose | None:
        if name not in self._choices:
            try:
                plugin = self._routing(name, "choose", "which consumer is next")
            except PluginError:
                return None
            guarded = self._guard("routing", name).consumers(plugin.choose, round_robin)
            self._choices[name] = lambda ready: guarded(list(ready))
        return self._choices[name]

    def selector_of(
        self, mode: KeySharedMode, settings: Settings, properties: Mapping[str, str]
    ) -> StickyKeySelector[Consumer]:
        """The selector of a Key_Shared subscription with these properties, in a mode that its first consumer wants.

        Ranges that consumers choose for themselves are no matter of plugins.
        """
        for name in (properties.get(SELECTOR), settings.keySharedSelector):
            if not name or mode is not KeySharedMode.AUTO_SPLIT:
                continue
            if name in SELECTORS:
                return SELECTORS[name](settings)
            try:
                plugin = self._routing(name, "divide", "which consumer has which keys")
            except PluginError:
                continue
            return PluggedSelector(plugin, self._guard("routing", name), make_selector(mode, settings))
        return make_selector(mode, settings)

    def told_of(self, sub_type: int, properties: Mapping[str, str], settings: Settings) -> object:
        """What decides which plugins a subscription goes by: where it is another one, its dispatcher is made anew."""
        names = [properties.get(each) for each in (CHOICE, SELECTOR, HASHING)]
        there = [(key, key in self._there) for key in needed_by(sub_type, properties, settings)]
        return names, there

    # Partitions

    def router(self, name: str, hashing: str, producing: Callable[[Hash], Producing]) -> Partition:
        """What chooses partitions where the box does. Raises PluginError, also where it is not there yet.

        ``producing`` is given the hash of keys.
        """
        hash32 = self._loaded("hashing", hashing).hash32
        if hashing not in built_in("hashing"):
            hash32 = self._guard("hashing", hashing).hashing(hash32, key_hash)
        plugin = self._routing(name, "open", "which partition a message goes to")
        guard = None if name in built_in("routing") else self._guard("routing", name)
        try:
            return opened(plugin, producing(hash32), guard)
        except PluginError as error:  # of its options
            self._cannot(("routing", name), error)
            raise


def needed_by(sub_type: int, properties: Mapping[str, str], settings: Settings) -> Iterable[Key]:
    """What a subscription of a type, with these properties, needs of plugins."""
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
    """What ``pluginsDisabled`` names, as kind and name."""
    for each in text.split(","):
        kind, _, name = each.strip().partition(":")
        if name:
            yield kind, name


def _nothing() -> None:
    """Nobody wants to know."""


def _no_matter(now: Now) -> None:
    """Nobody waits."""
