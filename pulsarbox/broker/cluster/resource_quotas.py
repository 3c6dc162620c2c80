"""Resource quotas of bundles: the load that a load balancer would assume. A box has none, and stores them."""

from typing import Final

from pulsarbox.broker.cluster.bounded_rows import BoundedRows
from pulsarbox.broker.persistence.group_commit import GroupCommit
from pulsarbox.storage.catalog import Catalog, Row

INITIAL: Final[Row] = {
    "msgRateIn": 40.0,
    "msgRateOut": 120.0,
    "bandwidthIn": 100000.0,
    "bandwidthOut": 300000.0,
    "memory": 80.0,
    "dynamic": True,
}
"""Pulsar's default: messages and bytes per second, and MB."""
_DEFAULT: Final = "default"


class ResourceQuotas:
    """The default quota, and those of single bundles."""

    def __init__(self, catalog: Catalog, commits: GroupCommit) -> None:
        self._default = BoundedRows(catalog, commits, "quota/", "resource quotas")
        self._rows = BoundedRows(catalog, commits, "bundlequota/", "resource quotas of bundles")

    @property
    def default(self) -> Row:
        """The quota of bundles without one of their own."""
        return self._default.get(_DEFAULT) or INITIAL

    def set_default(self, quota: Row | None) -> None:
        """Set the default quota; with None, revert to Pulsar's."""
        if quota is None:
            self._default.delete(_DEFAULT)
        else:
            self._default.put(_DEFAULT, quota)

    def get(self, namespace: str, bundle: str) -> Row:
        """Return the quota in effect for a bundle."""
        return self._rows.get(f"{namespace}/{bundle}") or self.default

    def put(self, namespace: str, bundle: str, quota: Row) -> None:
        """Set the quota of a bundle. Raises PreconditionFailed for one too many."""
        self._rows.put(f"{namespace}/{bundle}", quota)

    def delete(self, namespace: str, bundle: str) -> bool:
        """Delete the quota of a bundle. Return whether it had one."""
        return self._rows.delete(f"{namespace}/{bundle}")

    def forget_namespace(self, namespace: str) -> None:
        """Delete the quotas of all bundles of a namespace."""
        self._rows.delete_within(f"{namespace}/")
