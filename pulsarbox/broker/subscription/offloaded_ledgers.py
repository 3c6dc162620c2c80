"""Ledgers of a topic that an offload to files or tables has copied, as far as the box still has them.

The offload reports them with a property of the subscription that holds the topic for its target: the IDs of the first
and the last offloaded ledger. The property is stored, backed up and deleted with the subscription.
"""

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from pulsarbox.names import OFFLOAD_SUBSCRIPTION, OFFLOADED_PROPERTY
from pulsarbox.storage.catalog import cursor_key

if TYPE_CHECKING:
    from pulsarbox.storage.catalog import Catalog
    from pulsarbox.storage.ledger import ManagedLedger
    from pulsarbox.storage.recovery import StoredTopic

_RANGE: Final = re.compile(r"(\d{1,18})-(\d{1,18})")


class LedgerRange(NamedTuple):
    """IDs of the first and the last ledger."""

    first: int
    last: int


class NamedSubscription(Protocol):
    """The members of a subscription that are used here."""

    name: str
    properties: dict[str, str]


def range_of(name: str, properties: Mapping[str, str]) -> LedgerRange | None:
    """Return the ledgers that the subscription of an offload reports; None for other subscriptions and values."""
    if not name.startswith(OFFLOAD_SUBSCRIPTION):
        return None
    found = _RANGE.fullmatch(properties.get(OFFLOADED_PROPERTY, ""))
    return None if found is None else LedgerRange(int(found[1]), int(found[2]))


def ranges_of(subscriptions: Iterable[NamedSubscription]) -> list[LedgerRange]:
    """Return the ledgers that offloads report to the subscriptions of a topic in memory, one range per target."""
    found = (range_of(each.name, each.properties) for each in subscriptions)
    return [each for each in found if each is not None]


def stored_ranges(stored: "StoredTopic", catalog: "Catalog") -> list[LedgerRange]:
    """Return them for a topic that is not in memory."""
    found = []
    for cursor in stored.cursors.values():
        if cursor.name.startswith(OFFLOAD_SUBSCRIPTION):
            row = catalog.get(cursor_key(stored.ledger.topic_id, cursor.cursor_id)) or {}
            found.append(range_of(cursor.name, row.get("properties") or {}))
    return [each for each in found if each is not None]


def is_offloaded(ledger_id: int, ranges: Iterable[LedgerRange]) -> bool:
    """Return whether a closed ledger is in one of the ranges."""
    return any(each.first <= ledger_id <= each.last for each in ranges)


def offloaded_bytes(ledger: "ManagedLedger", ranges: list[LedgerRange]) -> int:
    """Return the bytes of the offloaded ledgers that the box still has, as ``ManagedLedger.size`` counts them."""
    if not ranges:
        return 0
    current = ledger.current
    return sum([
        each.size for each in ledger.ledgers.values() if each is not current and is_offloaded(each.ledger_id, ranges)
    ])  # fmt: skip
