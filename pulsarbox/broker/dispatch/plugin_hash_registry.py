"""The plugin hashes of Key_Shared subscriptions, stored as rows so that a start detects a missing plugin.

Without the plugin, keys would silently move to other consumers: a box does not start without the hashes its
subscriptions use. A row is deleted with its subscription.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from pulsarbox.broker.dispatch.selectors.selector import key_hash
from pulsarbox.broker.persistence.group_commit import GroupCommit
from pulsarbox.broker.plugins import HASHING, MURMUR3, Hash, Plugins
from pulsarbox.broker.services import HasCatalog, HasCommits
from pulsarbox.config import Settings
from pulsarbox.errors import PersistenceError
from pulsarbox.names import TopicName
from pulsarbox.plugins.registry import PluginError
from pulsarbox.storage.catalog import Catalog, Row
from pulsarbox.storage.cursor import ManagedCursor

log = logging.getLogger(__name__)

KEY_HASHES: Final = "keyhash/"
_SHOWN_MAX: Final = 10
_ADVICE: Final = (
    "Install it, or put its file into pluginsDirectory; or set keySharedHashingMissing = murmur3 to use murmur3 "
    "instead, which moves keys to other consumers"
)


class HashServices(HasCatalog, HasCommits, Protocol):
    """The services of the broker that record hashes."""

    @property
    def plugins(self) -> Plugins:
        """The plugins, among them hashes."""


def key_hash_of(
    services: HashServices, topic: TopicName, cursor: ManagedCursor, properties: Mapping[str, str], default: str
) -> Hash | None:
    """Return the hash of a Key_Shared subscription and record its name for the next start; None for Murmur3.

    ``properties`` are those of the subscription. Raises ConsumerAssignError if the hash is unavailable.
    """
    plugins = services.plugins
    own = properties.get(HASHING)
    name = own or default
    if not cursor.durable:
        return plugins.key_hash(name)
    key = _key(cursor.ledger.topic_id, cursor.cursor_id)
    kept = services.catalog.get(key)
    found = plugins.key_hash(name, decided=kept is not None and kept["hashing"] == name)
    row: Row | None = None
    if name != MURMUR3:
        row = {
            "hashing": name,
            "own": own is not None,
            "topic": str(topic),
            "subscription": cursor.name,
        }
    if kept != row:
        services.commits.put_row(key, row)
    return found


def forget(topic_id: int, cursor_id: int, commits: GroupCommit, catalog: Catalog) -> None:
    """Delete the row of a deleted subscription with the open batch."""
    key = _key(topic_id, cursor_id)
    if key in catalog:
        commits.put_row(key, None)


def rows(catalog: Catalog) -> list[tuple[str, Row]]:
    """Return the subscriptions with a plugin hash: keys, and ``{hashing, own, topic, subscription}``."""
    return [(key, row) for key in list(catalog.keys(KEY_HASHES)) if (row := catalog.get(key)) is not None]


def check(plugins: Plugins, settings: Settings, commits: GroupCommit, catalog: Catalog) -> None:
    """At the start, load the hashes that subscriptions use. Raises PersistenceError if one is missing."""
    wanted: dict[str, list[Row]] = {settings.keySharedHashing: []}
    for key, row in rows(catalog):
        if not row["own"] and row["hashing"] != settings.keySharedHashing:
            commits.put_row(key, None)  # the configured hash was changed
        else:
            wanted.setdefault(row["hashing"], []).append(row)
    for name, of in wanted.items():
        if name == MURMUR3:
            continue
        try:
            plugins.load_hash(name)
        except PluginError as error:
            said = f"the hashing plugin {name!r} cannot be used: {error}; {_needed_by(of)}"
            if settings.keySharedHashingMissing == "refuse":
                raise PersistenceError(f"{said}. {_ADVICE}") from None
            log.warning("%s; using %s instead, as set by keySharedHashingMissing", said, MURMUR3)
            plugins.replace_hash(name, key_hash)


def _key(topic_id: int, cursor_id: int) -> str:
    return f"{KEY_HASHES}{topic_id}/{cursor_id}"


def _needed_by(of: Sequence[Mapping[str, Any]]) -> str:
    if not of:
        return f"it is the value of {HASHING}"
    shown = ", ".join(f"{row['topic']} ({row['subscription']})" for row in of[:_SHOWN_MAX])
    more = f" and {len(of) - _SHOWN_MAX} more" if len(of) > _SHOWN_MAX else ""
    return f"Key_Shared subscriptions use it: {shown}{more}"
