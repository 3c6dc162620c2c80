"""The entries that a data directory has, according to its tables and the indexes of its unsealed volumes.

Thread-safe. Entries move from unsealed volumes to the tables, so the volumes are looked at first.
"""

from collections.abc import Iterable, Mapping, Sequence

from pulsarbox.storage.lmdb.environment_pool import EnvironmentGone
from pulsarbox.storage.lmdb.volume_set import VolumeSet

Runs = list[tuple[int, int]]
"""First entries and ends (exclusive), sorted and disjoint."""


def coverage(volumes: VolumeSet, ledger_ids: Sequence[int]) -> Mapping[int, Runs]:
    """Return the entries of ledgers; those without entries are left out.

    Raises PersistenceError if an index is damaged, and lmdb.Error.
    """
    found: dict[int, Runs] = {}
    for number in volumes.live:
        try:
            with volumes.pool.using(number) as volume:
                extents = volume.extents(ledger_ids)
        except EnvironmentGone:
            continue  # sealed and removed meanwhile
        for ledger_id, extent in extents.items():
            found.setdefault(ledger_id, []).append(extent)
    with volumes.metas.using(0) as meta:
        dropped = set(meta.dropped())
        for one in meta.stretches_of(ledger_ids):
            found.setdefault(one.ledger_id, []).append((one.first, one.end))
    return {ledger_id: merged(runs) for ledger_id, runs in found.items() if ledger_id not in dropped}


def ledgers_of(volumes: VolumeSet) -> list[int]:
    """Return the ledgers that have entries, sorted. Raises PersistenceError, lmdb.Error."""
    found: set[int] = set()
    for number in volumes.live:
        try:
            with volumes.pool.using(number) as volume:
                found |= volume.all_ledgers()
        except EnvironmentGone:
            continue
    with volumes.metas.using(0) as meta:
        found.update(meta.ledger_ids())
        return sorted(found.difference(meta.dropped()))


def merged(runs: Iterable[tuple[int, int]]) -> Runs:
    """Return the union of runs."""
    union: Runs = []
    for first, end in sorted(runs):
        if union and first <= union[-1][1]:
            union[-1] = union[-1][0], max(end, union[-1][1])
        else:
            union.append((first, end))
    return union


def missing(wanted: tuple[int, int], runs: Iterable[tuple[int, int]]) -> Runs:
    """Return the parts of a run that are in none of the sorted ``runs``."""
    first, end = wanted
    found: Runs = []
    for low, high in runs:
        if high <= first or low >= end:
            continue
        if low > first:
            found.append((first, low))
        first = high
    if first < end:
        found.append((first, end))
    return found
