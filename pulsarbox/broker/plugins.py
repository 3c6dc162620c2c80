"""The plugins that a broker was handed: the hashes of Key_Shared, and choices among consumers of Shared.

The broker never looks for plugins. The shell gives it a function that does, and a clock to time them with; without them
there are the built-in ones only. A choice that cannot be had is replaced by the built-in one. A hash is not: keys would
move to other consumers with nobody knowing, so a box does not start without the hashes its subscriptions go by.

Which subscription goes by which hash stands in rows of its own (``KEY_HASHES``), of plugins only. A row whose
subscription is gone is dropped at the next start.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from pulsarbox.broker.consumer import Consumer
from pulsarbox.broker.dispatch.selectors.selector import key_hash
from pulsarbox.config import Settings
from pulsarbox.errors import ConsumerAssignError, PersistenceError
from pulsarbox.plugins.compression.guarded import GuardedCompression
from pulsarbox.plugins.compression.rest import NONE
from pulsarbox.plugins.guard import Guard, Trouble
from pulsarbox.plugins.registry import PluginError, built_in, get
from pulsarbox.storage.catalog import Catalog, Row, cursor_key

if TYPE_CHECKING:
    from pulsarbox.broker.group_commit import GroupCommit
    from pulsarbox.broker.subscription import Subscription

log = logging.getLogger(__name__)

KEY_HASHES: Final = "keyhash/"
MURMUR3: Final = "murmur3"
"""The hash of Pulsar's brokers; it stands in the header of each entry."""
HASHING: Final = "keySharedHashing"
"""Setting of the broker, and property of a subscription that goes before it."""

Load = Callable[[str, str], Any]
"""The plugin of a kind and name. Raises PluginError."""
Hash = Callable[[bytes], int]
Choice = Callable[[Iterable[Consumer]], Consumer]

_SHOWN_MAX: Final = 10


def _nothing_else(kind: str, name: str) -> Any:
    raise PluginError(f"there is no plugin {name!r} for {kind}: this box was given none")


class Plugins:
    """The plugins in use, each with its guard."""

    def __init__(self, load: Load = _nothing_else, clock: Callable[[], int] = int) -> None:
        """``clock``: nanoseconds that only grow. Without one nothing is timed, and errors are all of one minute."""
        self.guards: dict[tuple[str, str], Guard] = {}
        """By kind and name."""
        self.missing: dict[tuple[str, str], str] = {}
        """What was asked for and cannot be had, and why."""
        self.disabled: frozenset[tuple[str, str]] = frozenset()
        """What is not to be used from now on (``pluginsDisabled``)."""
        self.guarded: Callable[[], None] = _nothing
        """Called when a plugin has come into use."""
        self._load = load
        self._clock = clock
        self._hashes: dict[str, Hash] = {}
        self._choices: dict[str, Choice | None] = {}

    def take(self, settings: Settings) -> None:
        """Go by these settings from now on. What was missing, or was not asked any more, gets another chance."""
        disabled = frozenset(named(settings.pluginsDisabled))
        for key, guard in self.guards.items():
            if key in self.disabled and key not in disabled:
                guard.tripped = False
            elif key in disabled and key[0] == "routing":
                guard.tripped = True
        if disabled != self.disabled:
            self._choices = {name: choice for name, choice in self._choices.items() if choice is not None}
            self.missing.clear()
        self.disabled = disabled

    # Hashes

    def key_hash(self, name: str) -> Hash | None:
        """The hash of that name; None for Murmur3, which entries carry. Raises ConsumerAssignError without it."""
        if name == MURMUR3:
            return None
        if ("hashing", name) in self.disabled and name not in self._hashes:
            raise ConsumerAssignError(f"The hashing plugin '{name}' is disabled: pulsarbox plugins enable {name}")
        try:
            return self._hash(name)
        except PluginError as error:
            raise ConsumerAssignError(f"The hashing plugin '{name}' cannot be used: {error}") from None

    def _hash(self, name: str) -> Hash:
        found = self._hashes.get(name)
        if found is None:
            plugin = self._loaded("hashing", name)
            found = self._hashes[name] = self._guard("hashing", name).hashing(plugin.hash32, key_hash)
        return found

    def check_hashes(self, settings: Settings, commits: GroupCommit, catalog: Catalog) -> None:
        """At the start: whether all hashes are there that subscriptions go by. Raises PersistenceError if not."""
        wanted: dict[str, list[Row]] = {settings.keySharedHashing: []}
        for key, row in rows(catalog):
            decided = not row["own"] and row["hashing"] != settings.keySharedHashing
            if decided or cursor_key(*_ids(key)) not in catalog:
                commits.put_row(key, None)  # it is gone, or the operator has chosen another hash
            else:
                wanted.setdefault(row["hashing"], []).append(row)
        for name, of in wanted.items():
            if name == MURMUR3:
                continue
            try:
                self._hash(name)
            except PluginError as error:
                said = f"the hashing plugin {name!r} cannot be used: {error}; {_needed_by(of)}"
                if settings.keySharedHashingMissing == "refuse":
                    raise PersistenceError(f"{said}. {_ADVICE}") from None
                log.warning("%s; they go by %s, as keySharedHashingMissing says", said, MURMUR3)
                self._hashes[name] = key_hash

    # Codecs

    def codec(self, kind: str, name: str) -> Any:
        """The codec of that name for what stands on the disk, with its guard. Raises PluginError.

        Other threads ask as well; that two of them load the same one does no harm.
        """
        if name in built_in(kind):
            return get(kind, name)
        return GuardedCompression(self._loaded(kind, name), self._guard(kind, name))

    def require_codec(self, name: str) -> None:
        """Raise PluginError where entries cannot be compressed with a codec on the disk."""
        if name == NONE:
            return
        if ("compression", name) in self.disabled:
            raise PluginError(f"it is disabled: pulsarbox plugins enable {name}")
        if name in built_in("compression"):
            get("compression", name)
        elif self._load("compression", name).rest_tag is None:
            raise PluginError("it is not for use on the disk: it has no rest_tag")

    # Choices among consumers

    def choice(self, name: str) -> Choice | None:
        """The choice of that name; None where it cannot be had, which is logged once."""
        if name not in self._choices:
            self._choices[name] = self._made_choice(name)
        return self._choices[name]

    def _made_choice(self, name: str) -> Choice | None:
        try:
            if ("routing", name) in self.disabled:
                raise PluginError("it is disabled")
            plugin = self._loaded("routing", name)
            if not hasattr(plugin, "choose"):
                raise PluginError(f"{name!r} chooses among partitions, not among consumers")
        except PluginError as error:
            self.missing["routing", name] = str(error)
            log.error("the routing plugin %r cannot be used, consumers take turns instead: %s", name, error)
            return None
        guarded = self._guard("routing", name).consumers(plugin.choose, _first)

        def choose(ready: Iterable[Consumer]) -> Consumer:
            found: Consumer = guarded(list(ready))
            return found

        return choose

    # All

    def _loaded(self, kind: str, name: str) -> Any:
        try:
            return self._load(kind, name)
        except PluginError as error:
            self.missing[kind, name] = str(error)
            if error.trace:
                log.error("the %s plugin %r failed while it was loaded:\n%s", kind, name, error.trace)
            raise

    def _guard(self, kind: str, name: str) -> Guard:
        guard = self.guards[kind, name] = Guard(kind, name, self._clock, _tell)
        self.guarded()
        return guard


def key_hash_of(subscription: Subscription, plugins: Plugins, default: str) -> Hash | None:
    """The hash that a Key_Shared subscription goes by, which is kept for the next start; None for Murmur3.

    Raises ConsumerAssignError where it cannot be had.
    """
    own = subscription.properties.get(HASHING)
    name = own or default
    found = plugins.key_hash(name)
    if subscription.durable:
        core = subscription.topic.core
        key = f"{KEY_HASHES}{subscription.topic.ledger.topic_id}/{subscription.cursor.cursor_id}"
        row: Row | None = {
            "hashing": name,
            "own": own is not None,
            "topic": str(subscription.topic.name),
            "subscription": subscription.name,
        }
        if name == MURMUR3:
            row = None
        if core.catalog.get(key) != row:
            core.commits.put_row(key, row)
    return found


def rows(catalog: Catalog) -> list[tuple[str, Row]]:
    """The subscriptions that go by a hash other than Murmur3: keys, and ``{hashing, own, topic, subscription}``."""
    return [(key, row) for key in list(catalog.keys(KEY_HASHES)) if (row := catalog.get(key)) is not None]


def named(text: str) -> Iterable[tuple[str, str]]:
    """What ``pluginsDisabled`` names, as kind and name."""
    for each in text.split(","):
        kind, _, name = each.strip().partition(":")
        if name:
            yield kind, name


_ADVICE: Final = (
    "Install it, or put its file into pluginsDirectory; or let them go by murmur3 with keySharedHashingMissing = "
    "murmur3, which gives keys to other consumers"
)


def _ids(key: str) -> tuple[int, int]:
    topic, _, cursor = key.removeprefix(KEY_HASHES).partition("/")
    return int(topic), int(cursor)


def _needed_by(of: Sequence[Mapping[str, Any]]) -> str:
    if not of:
        return "keySharedHashing names it"
    shown = ", ".join(f"{row['topic']} ({row['subscription']})" for row in of[:_SHOWN_MAX])
    more = f" and {len(of) - _SHOWN_MAX} more" if len(of) > _SHOWN_MAX else ""
    return f"Key_Shared subscriptions go by it: {shown}{more}"


def _nothing() -> None:
    """Nobody wants to know."""


def _first(ready: Sequence[Consumer]) -> Consumer:
    return ready[0]


def _tell(trouble: Trouble) -> None:
    log.error("%s%s", trouble, f"\n{trouble.trace}" if trouble.trace else "")
