"""Racks of bookies, by group, and affinity groups of namespaces. A box has no bookies; it stores them for tools."""

from typing import Final

from pulsarbox.broker.cluster.bounded_rows import BoundedRows
from pulsarbox.broker.persistence.group_commit import GroupCommit
from pulsarbox.storage.catalog import Catalog, Row

_ALL: Final = "racks"


class BookieRacks:
    """All racks: one row, {group: {bookie: info}}, as in Pulsar."""

    def __init__(self, catalog: Catalog, commits: GroupCommit) -> None:
        self._rows = BoundedRows(catalog, commits, "bookies/", "the racks of bookies")
        self.affinity_groups = BoundedRows(catalog, commits, "bookieaffinity/", "bookie affinity groups", counted=False)
        """By namespace."""

    def groups(self) -> Row:
        """Return all bookies by group."""
        return self._rows.get(_ALL) or {}

    def get(self, bookie: str) -> Row | None:
        """Return the rack of a bookie, or None if it is not stored."""
        return next((group[bookie] for group in self.groups().values() if bookie in group), None)

    def put(self, group: str, bookie: str, info: Row) -> None:
        """Store the rack of a bookie, which moves to ``group``. Raises PreconditionFailed beyond the limit."""
        groups = _without(self.groups(), bookie)
        groups[group] = dict(sorted((groups.get(group, {}) | {bookie: info}).items()))
        self._rows.put(_ALL, dict(sorted(groups.items())))

    def delete(self, bookie: str) -> bool:
        """Delete the rack of a bookie. Return whether it was stored."""
        stored = self.get(bookie) is not None
        if stored:
            self._rows.put(_ALL, _without(self.groups(), bookie))
        return stored

    def forget_namespace(self, namespace: str) -> None:
        """Delete the affinity group of a namespace."""
        self.affinity_groups.delete(namespace)


def _without(groups: Row, bookie: str) -> Row:
    left = {name: {key: info for key, info in group.items() if key != bookie} for name, group in groups.items()}
    return {name: group for name, group in left.items() if group}
