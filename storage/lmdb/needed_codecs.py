"""Verification, before serving, that the codecs of all stored entries are available."""

import json
from collections.abc import Callable
from typing import Final, NamedTuple

from pulsarbox.errors import PersistenceError
from pulsarbox.plugins.compression.wire import CodecMissing
from pulsarbox.storage.catalog import owner_key
from pulsarbox.storage.compression.decoder import Codecs
from pulsarbox.storage.lmdb.meta_environment import MetaEnvironment

_SHOWN_MAX: Final = 10
ADVICE: Final = (
    "Install it, or put its file into pluginsDirectory. To do without it, start once more with it, set another codec "
    "for these topics (compression-at-rest), and let the box pack"
)


class Missing(NamedTuple):
    """An unavailable codec, and the topics that need it."""

    name: str
    tag: bytes
    reason: str
    topics: list[str]

    def __str__(self) -> str:
        shown = ", ".join(self.topics[:_SHOWN_MAX]) or "topics that are not known by name"
        more = f" and {len(self.topics) - _SHOWN_MAX} more" if len(self.topics) > _SHOWN_MAX else ""
        return f"{self.reason}; entries of {shown}{more} are compressed with it (tag {self.tag.decode('latin-1')!r})"


def missing_codecs(meta: MetaEnvironment, codecs: Codecs) -> list[Missing]:
    """Return the unavailable codecs that live entries need."""
    reasons: dict[bytes, tuple[str, str]] = {}
    for (tag, _), name in meta.needs().items():
        try:
            codecs.tagged(tag, name)
        except CodecMissing as error:
            reasons[tag] = name, str(error)
    topics = _topics(meta, set(reasons)) if reasons else {}
    return [Missing(name, tag, reason, topics[tag]) for tag, (name, reason) in reasons.items() if tag in topics]


def require_codecs(meta: MetaEnvironment, codecs: Codecs, path: str) -> None:
    """Raise PersistenceError if a codec is missing, since its entries could not be read."""
    missing = missing_codecs(meta, codecs)
    if missing:
        raise PersistenceError(f"{path}: {'; '.join(map(str, missing))}. {ADVICE}")


def _topics(meta: MetaEnvironment, tags: set[bytes]) -> dict[bytes, list[str]]:
    """Return the topics that have live entries under some tags."""
    ledgers: dict[bytes, set[int]] = {}
    for (volume, ledger_id, tag, _), usage in meta.usage().items():
        if tag in tags and usage.entries and meta.stretches_of([ledger_id], frozenset((volume,))):
            ledgers.setdefault(tag, set()).add(ledger_id)
    return {tag: sorted(set(_names(meta.get, of))) for tag, of in ledgers.items()}


def _names(get: Callable[[bytes], bytes | None], ledgers: set[int]) -> list[str]:
    rows = [get(owner_key(ledger_id).encode()) for ledger_id in ledgers]
    return [json.loads(row) for row in rows if row is not None]
