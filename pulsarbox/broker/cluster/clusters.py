"""Clusters: the box's own, which always exists, and those that an operator has stored.

A box neither replicates to other clusters nor redirects clients to them. Tenants and namespaces may name them.
"""

from collections.abc import Iterable
from typing import Final

from pulsarbox.broker.cluster.bookie_racks import BookieRacks
from pulsarbox.broker.cluster.bounded_rows import BoundedRows
from pulsarbox.broker.cluster.resource_quotas import ResourceQuotas
from pulsarbox.broker.endpoints import Endpoints
from pulsarbox.broker.persistence.group_commit import GroupCommit
from pulsarbox.config import Settings
from pulsarbox.errors import Conflict, NotFound, PreconditionFailed
from pulsarbox.storage.catalog import Catalog, Row

_MISSING: Final = "Cluster does not exist"


class Clusters:
    """All clusters, with their failure domains, isolation policies and migrations, and the metadata of the own one."""

    def __init__(self, catalog: Catalog, commits: GroupCommit, settings: Settings, endpoints: Endpoints) -> None:
        self.own = settings.clusterName
        """The name of the box's cluster (clusterName)."""
        self._endpoints = endpoints
        self._rows = BoundedRows(catalog, commits, "cluster/", "clusters")
        self.failure_domains = BoundedRows(catalog, commits, "failuredomain/", "the failure domains of a cluster")
        """All failure domains of a cluster are one row: {domain: data}."""
        self.isolation_policies = BoundedRows(catalog, commits, "isolation/", "the isolation policies of a cluster")
        """All isolation policies of a cluster are one row: {policy: data}."""
        self.migrations = BoundedRows(catalog, commits, "migration/", "migrations of clusters")
        self.racks = BookieRacks(catalog, commits)
        """Bookies of the box's own cluster."""
        self.quotas = ResourceQuotas(catalog, commits)

    def names(self) -> list[str]:
        """Return the names of all clusters, sorted."""
        return sorted({self.own, *self._rows.names()})

    def __contains__(self, name: str) -> bool:
        return name == self.own or name in self._rows

    def unknown(self, names: Iterable[str]) -> list[str]:
        """Return the names that are not those of clusters, sorted."""
        return sorted(name for name in set(names) if name not in self)

    def get(self, name: str) -> Row:
        """Return a cluster's data, for the box's own by default its addresses. Raises NotFound."""
        row = self._rows.get(name)
        if row is not None:
            return row
        if name != self.own:
            raise NotFound(_MISSING)
        return self._addresses()

    def _addresses(self) -> Row:
        found = self._endpoints
        urls = {"serviceUrl": found.web_url, "serviceUrlTls": found.web_url_tls}
        urls |= {"brokerServiceUrl": found.broker_url, "brokerServiceUrlTls": found.broker_url_tls}
        return {name: url for name, url in urls.items() if url}

    def create(self, name: str, row: Row) -> None:
        """Store a cluster. Raises Conflict if it exists, PreconditionFailed for one too many."""
        if name in self:
            raise Conflict("Cluster already exists")
        self._rows.put(name, row)

    def update(self, name: str, row: Row) -> None:
        """Replace a cluster's data. Raises NotFound, PreconditionFailed."""
        if name not in self:
            raise NotFound(_MISSING)
        self._rows.put(name, row)

    def delete(self, name: str) -> None:
        """Delete a cluster with all that belongs to it.

        Raises NotFound; PreconditionFailed for the box's own cluster, and while it has isolation policies.
        """
        if name not in self:
            raise NotFound(_MISSING)
        if name == self.own or self.isolation_policies.get(name):
            raise PreconditionFailed("Cluster not empty")
        for rows in (self._rows, self.failure_domains, self.isolation_policies, self.migrations):
            rows.delete(name)

    def forget_namespace(self, namespace: str) -> None:
        """Delete what belongs to a namespace that is deleted."""
        self.racks.forget_namespace(namespace)
        self.quotas.forget_namespace(namespace)
