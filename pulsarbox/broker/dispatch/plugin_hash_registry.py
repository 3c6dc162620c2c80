"""The plugin hashes of Key_Shared subscriptions, stored as rows so that a start detects a missing plugin.

Without the plugin, keys would silently move to other consumers: a box does not start without the hashes its
subscriptions use. A row is deleted with its subscription.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from pulsarbox.broker.dispatch.selectors.selector import key_hash
from pulsarbox.broker.plugins import HASHING, MURMUR3, Hash, Plugins
from pulsarbox.config import Settings
from pulsarbox.errors import PersistenceError
from pulsarbox.plugins.registry import PluginError
from pulsarbox.storage.catalog import Catalog, Row, cursor_key

if TYPE_CHECKING:
    from pulsarbox.broker.group_commit import GroupCommit
    from pulsarbox.broker.subscription.subscription import Subscription

log = logging.getLogger(__name__)

KEY_HASHES: Final = "keyhash/"
_SHOWN_MAX: Final = 10
_ADVICE: Final = (
    "Install it, or put its file into pluginsDirectory; or set keySharedHashingMissing = murmur3 to use murmur3 "
    "instead, which moves keys to other consumers"
)


def key_hash_of(subscription: "Subscription", plugins: Plugins, default: str) -> Hash | None:
    """Return the hash of a Key_Shared subscription and record its name for the next start; None for Murmur3.

    Raises ConsumerAssignError if the hash is unavailable.
    """
    own = subscription.properties.get(HASHING)
    name = own or default
    if not subscription.durable:
        return plugins.key_hash(name)
    core = subscription.topic.core
    key = _key(subscription.topic.ledger.topic_id, subscription.cursor.cursor_id)
    kept = core.catalog.get(key)
    found = plugins.key_hash(name, decided=kept is not None and kept["hashing"] == name)
    row: Row | None = None
    if name != MURMUR3:
        row = {
            "hashing": name,
            "own": own is not None,
            "topic": str(subscription.topic.name),
            "subscription": subscription.name,
        }
    if kept != row:
        core.commits.put_row(key, row)
    return found


def forget(topic_id: int, cursor_id: int, commits: "GroupCommit", catalog: Catalog) -> None:
    """Delete the row of a deleted subscription with the open batch."""
    key = _key(topic_id, cursor_id)
    if key in catalog:
        commits.put_row(key, None)


def rows(catalog: Catalog) -> list[tuple[str, Row]]:
    """Return the subscriptions with a plugin hash: keys, and ``{hashing, own, topic, subscription}``."""
    return [(key, row) for key in list(catalog.keys(KEY_HASHES)) if (row := catalog.get(key)) is not None]


def check(plugins: Plugins, settings: Settings, commits: "GroupCommit", catalog: Catalog) -> None:
    """At the start, load the hashes that subscriptions use. Raises PersistenceError if one is missing."""
    wanted: dict[str, list[Row]] = {settings.keySharedHashing: []}
    for key, row in rows(catalog):
        decided = not row["own"] and row["hashing"] != settings.keySharedHashing
        if decided or cursor_key(*_ids(key)) not in catalog:
            commits.put_row(key, None)  # the configured hash was changed, or an earlier version left the row behind
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


def _ids(key: str) -> tuple[int, int]:
    topic, _, cursor = key.removeprefix(KEY_HASHES).partition("/")
    return int(topic), int(cursor)


def _needed_by(of: Sequence[Mapping[str, Any]]) -> str:
    if not of:
        return f"it is the value of {HASHING}"
    shown = ", ".join(f"{row['topic']} ({row['subscription']})" for row in of[:_SHOWN_MAX])
    more = f" and {len(of) - _SHOWN_MAX} more" if len(of) > _SHOWN_MAX else ""
    return f"Key_Shared subscriptions use it: {shown}{more}"
