"""Metadata of ledgers in the text form of BookKeeper: numbers of copies, and the data directories that have them."""

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import quote_plus

from pulsarbox.broker.host import Host
from pulsarbox.broker.persistence.replication import CopyNumbers
from pulsarbox.broker.topic.topic import PersistentTopic
from pulsarbox.names import TopicName
from pulsarbox.storage.ledger import LedgerInfo

Runs = Sequence[tuple[int, int]]
"""First entries and ends (exclusive), sorted and disjoint."""
Ensembles = Mapping[int, tuple[str, ...]]
"""The directories with copies of consecutive entries, by the first of these."""

_ONE_COPY = CopyNumbers(1, 1, 1)


def ensembles_of(held: Mapping[str, Runs]) -> dict[int, tuple[str, ...]]:
    """Return the ensembles of a ledger from the entries that each directory has.

    A change of the directories begins an ensemble, as in BookKeeper; entries without a copy have an empty one.
    """
    edges = sorted({edge for runs in held.values() for run in runs for edge in run})
    found: dict[int, tuple[str, ...]] = {}
    before: tuple[str, ...] | None = None
    for first in edges[:-1]:
        names = tuple(name for name, runs in held.items() if any(low <= first < high for low, high in runs))
        if names != before:
            found[first] = before = names
    return found


def ledger_metadata(
    info: LedgerInfo, *, is_open: bool, copies: CopyNumbers, ensembles: Ensembles, name: TopicName
) -> str:
    """Return the metadata of a ledger as Pulsar prints it."""
    state = "OPEN" if is_open else f"CLOSED, length={info.size}, lastEntryId={info.entries - 1}"
    where = ", ".join(f"{first}=[{', '.join(names)}]" for first, names in ensembles.items())
    return (
        f"LedgerMetadata{{formatVersion=3, ensembleSize={copies.ensemble}, writeQuorumSize={copies.write_quorum},"
        f" ackQuorumSize={copies.ack_quorum}, state={state}, digestType=CRC32C, password=OMITTED,"
        f" ensembles={{{where}}}, customMetadata={{component={_base64('managed-ledger')},"
        f" pulsar/managed-ledger={_base64(_managed_ledger(name))}, application={_base64('pulsar')}}}}}"
    )


def with_metadata(topic: PersistentTopic, host: Host, stats: dict[str, Any], held: Mapping[str, Any]) -> dict[str, Any]:
    """Add metadata to the ledgers of internal statistics; ``held`` is Bookies.coverage, empty without bookies."""
    copies = _ONE_COPY if topic.copies is None else topic.copies.asked
    for row in stats["ledgers"]:
        info = topic.ledger.ledgers.get(row["ledgerId"])
        if info is not None:  # else it was dropped meanwhile
            has = {name: ledgers.get(info.ledger_id, ()) for name, ledgers in held.items()}
            where = ensembles_of(has) if held else {0: (host.folder or "memory",)}
            is_open = info is topic.ledger.current
            row["metadata"] = ledger_metadata(info, is_open=is_open, copies=copies, ensembles=where, name=topic.name)
    return stats


def under_replicated(host: Host, ledger_ids: Iterable[int]) -> set[int]:
    """Return the ledgers with entries that lack copies, among those given."""
    if host.bookies is None:
        return set()
    return {each.ledger_id for each in host.bookies.status().under_replicated}.intersection(ledger_ids)


def _managed_ledger(name: TopicName) -> str:
    return f"{name.namespace}/persistent/{quote_plus(name.local, safe='*')}"


def _base64(text: str) -> str:
    return f"base64:{b64encode(text.encode()).decode()}"
