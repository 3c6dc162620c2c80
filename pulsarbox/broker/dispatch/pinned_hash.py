"""The hashes of keys by a plugin, kept while entries of the key are under way.

So a key stays where it is for as long as that matters, also with a plugin that fails now and then or changes its mind:
what follows goes behind what is there, and only once nothing of the key is under way may it go elsewhere.
"""

from collections.abc import Callable, Container
from typing import Final

from pulsarbox.broker.dispatch.replay import At
from pulsarbox.broker.dispatch.sticky_hash import key_of
from pulsarbox.storage.record import Entry

_MORE: Final = 1024
"""So many entries, and as many as were under way, come between two looks at which of them still are."""


class PinnedHash:
    """The hash of entries on one subscription."""

    def __init__(self, hash32: Callable[[bytes], int]) -> None:
        self._hash32 = hash32
        self._keys: dict[At, bytes] = {}
        """Of the entries that were asked for, those at least that are under way."""
        self._hashes: dict[bytes, int] = {}
        """Of these keys."""
        self._enough = _MORE

    def of(self, entry: Entry) -> int:
        """The hash of an entry's key, from now on under way."""
        key = key_of(entry)
        found = self._hashes.get(key)
        if found is None:
            found = self._hashes[key] = self._hash32(key)
        self._keys[entry[0], entry[1]] = key
        return found

    @property
    def full(self) -> bool:
        """Whether it is time to say what is still under way, see ``keep``."""
        return len(self._keys) >= self._enough

    def keep(self, *under_way: Container[At]) -> None:
        """Forget the keys of all entries but those."""
        keys = self._keys
        self._keys = {at: keys[at] for at in keys if any(at in each for each in under_way)}
        hashes = self._hashes
        self._hashes = {key: hashes[key] for key in self._keys.values()}
        self._enough = 2 * len(self._keys) + _MORE
