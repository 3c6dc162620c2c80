"""Hashes computed by a plugin, pinned while entries of the key are in progress.

A key keeps its slot for as long as its order depends on it, even if the plugin fails intermittently or changes its
answer. It may move once no entry of the key is waiting or unacknowledged.
"""

from collections.abc import Callable, Container
from typing import Final

from pulsarbox.broker.dispatch.replay import At
from pulsarbox.broker.dispatch.sticky_hash import key_of
from pulsarbox.storage.record import Entry

_MORE: Final = 1024
"""Entries hashed between two sweeps, in addition to as many as the last sweep kept."""


class PinnedHash:
    """The hashes of the entries of one subscription."""

    def __init__(self, hash32: Callable[[bytes], int]) -> None:
        self._hash32 = hash32
        self._keys: dict[At, bytes] = {}
        """Keys by position; includes at least every entry in progress."""
        self._hashes: dict[bytes, int] = {}
        """Pinned hashes by key."""
        self._enough = _MORE

    def of(self, entry: Entry) -> int:
        """Return the hash of an entry's key and pin it."""
        key = key_of(entry)
        found = self._hashes.get(key)
        if found is None:
            found = self._hashes[key] = self._hash32(key)
        self._keys[entry.ledger_id, entry.entry_id] = key
        return found

    @property
    def full(self) -> bool:
        """Whether the caller should now call ``keep`` with the entries in progress."""
        return len(self._keys) >= self._enough

    def unpin_except(self, *under_way: Container[At]) -> None:
        """Unpin the keys of all other entries."""
        keys = self._keys
        self._keys = {at: keys[at] for at in keys if any(at in each for each in under_way)}
        hashes = self._hashes
        self._hashes = {key: hashes[key] for key in self._keys.values()}
        self._enough = 2 * len(self._keys) + _MORE
