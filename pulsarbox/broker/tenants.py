"""Tenants and namespaces. HTTP responses wait until a change is durable."""

import logging
from typing import Any

from pulsarbox.broker.cluster.clusters import Clusters
from pulsarbox.broker.current_settings import CurrentSettings
from pulsarbox.broker.persistence.group_commit import GroupCommit
from pulsarbox.broker.policies.policies import Policies
from pulsarbox.clock import Now
from pulsarbox.errors import BadRequest, Conflict, NamespaceNotFound, NotFound, PreconditionFailed
from pulsarbox.names import check_entity_name, parse_namespace
from pulsarbox.storage.catalog import Catalog, Row, namespace_key, tenant_key

log = logging.getLogger(__name__)

SHIPPED = {"public": ("default",), "pulsar": ("system",)}
"""Tenants and namespaces that every box starts with."""

BUNDLES_MAX = 1 << 16
"""The namespace's row stores every bundle boundary."""


class Tenants:
    """All tenants and their namespaces."""

    def __init__(
        self,
        catalog: Catalog,
        commits: GroupCommit,
        policies: Policies,
        settings: CurrentSettings,
        clusters: Clusters,
    ) -> None:
        self._catalog = catalog
        self._commits = commits
        self._policies = policies
        self._settings = settings
        self.clusters = clusters
        """The clusters that tenants may use."""
        self.leaving: set[str] = set()
        """Namespaces being deleted topic by topic; no topic may be created there."""
        for tenant, namespaces in SHIPPED.items():
            if tenant_key(tenant) not in catalog:
                commits.put_row(tenant_key(tenant), {"adminRoles": [], "allowedClusters": [clusters.own]})
                for namespace in namespaces:
                    self._put_namespace(f"{tenant}/{namespace}", {})
                    log.info("Created namespace %s/%s", tenant, namespace)

    # Tenants

    def all(self) -> list[str]:
        """Return the names of all tenants."""
        return [key.partition("/")[2] for key in self._catalog.keys("tenant/")]

    def exists(self, tenant: str) -> bool:
        """Whether a tenant exists."""
        return tenant_key(tenant) in self._catalog

    def get(self, tenant: str) -> Row:
        """Return a tenant's info. Raises NotFound."""
        row = self._catalog.get(tenant_key(tenant))
        if row is None:
            raise NotFound("Tenant does not exist")
        return row

    def create(self, tenant: str, info: Row | None) -> None:
        """Create a tenant. Raises Conflict if it exists, PreconditionFailed for an invalid name or unknown clusters."""
        check_entity_name("Tenant", tenant)
        if tenant_key(tenant) in self._catalog:
            raise Conflict("Tenant already exist")
        self._commits.put_row(tenant_key(tenant), self._checked(info))

    def update(self, tenant: str, info: Row | None) -> None:
        """Replace a tenant's info. Raises NotFound, PreconditionFailed."""
        if info is not None and tenant_key(tenant) not in self._catalog:
            raise NotFound(f"Tenant {tenant} not found")
        self._commits.put_row(tenant_key(tenant), self._checked(info))

    def delete(self, tenant: str) -> None:
        """Delete a tenant. Raises NotFound, and Conflict while it has namespaces."""
        self.get(tenant)
        if self.namespaces(tenant):
            raise Conflict("The tenant still has active namespaces")
        self._commits.put_row(tenant_key(tenant), None)

    def _checked(self, info: Row | None) -> Row:
        if info is None:
            raise PreconditionFailed("TenantInfo is null")
        roles = info.get("adminRoles") or []
        clusters = info.get("allowedClusters")
        if clusters is None:
            raise PreconditionFailed("Clusters cannot be null: set them, as in {'allowedClusters': ['standalone']}")
        if not _is_strings(roles) or not _is_strings(clusters):
            raise BadRequest("adminRoles and allowedClusters must be lists of names")
        if not clusters or not all(cluster.strip() for cluster in clusters):
            raise PreconditionFailed("Clusters cannot be empty or blank")
        unknown = self.clusters.unknown(clusters)
        if unknown:
            raise PreconditionFailed(f"Clusters do not exist: {', '.join(unknown)}; this box is '{self.clusters.own}'")
        return {"adminRoles": sorted(set(roles) - {""}), "allowedClusters": sorted(set(clusters))}

    # Namespaces

    def namespaces(self, tenant: str) -> list[str]:
        """Return the full names of a tenant's namespaces. Raises NotFound."""
        self.get(tenant)
        return [key.partition("/")[2] for key in self._catalog.keys(f"namespace/{tenant}/")]

    def has_namespace(self, namespace: str) -> bool:
        """Whether ``tenant/namespace`` exists."""
        return namespace_key(namespace) in self._catalog

    def policies(self, namespace: str) -> Row:
        """Return the stored policies of a namespace. Raises NotFound."""
        row = self._catalog.get(namespace_key(namespace))
        if row is None:
            raise NotFound("Namespace does not exist")
        return row

    def create_namespace(self, namespace: str, policies: Row | None) -> None:
        """Create a namespace. Raises NotFound without its tenant, Conflict, PreconditionFailed."""
        tenant, _ = parse_namespace(namespace)
        self.get(tenant)
        if self.has_namespace(namespace):
            raise Conflict("Namespace already exists")
        self._put_namespace(namespace, policies or {})

    def set_policy(self, namespace: str, name: str, value: Any, now: Now | None = None) -> None:
        """Set one policy of a namespace, or remove it with None; loaded topics apply it if ``now`` is given.

        Raises NotFound.
        """
        self.set_policies(namespace, {name: value}, now)

    def set_policies(self, namespace: str, changes: Row, now: Now | None = None) -> None:
        """Set or remove several policies of a namespace together; see ``set_policy``."""
        policies = {**self.policies(namespace), **changes}
        self._policies.put_namespace(
            namespace, {name: value for name, value in policies.items() if value is not None}, now
        )

    def delete_namespace(self, namespace: str) -> None:
        """Delete a namespace; the caller has already deleted its topics."""
        self.policies(namespace)
        self._policies.put_namespace(namespace, None)
        self.clusters.forget_namespace(namespace)

    def require(self, namespace: str) -> None:
        """Raise NamespaceNotFound if the namespace does not exist or is being deleted."""
        if namespace in self.leaving:
            raise NamespaceNotFound(f"Namespace {namespace} is being deleted")
        if not self.has_namespace(namespace):
            tenant = namespace.partition("/")[0]
            what = f"Namespace {namespace}" if tenant_key(tenant) in self._catalog else f"Tenant {tenant}"
            raise NamespaceNotFound(f"{what} not found")

    def _put_namespace(self, namespace: str, policies: Row) -> None:
        row = dict(policies)
        row["bundles"] = _bundles(row.get("bundles"), self._settings.current.defaultNumberOfNamespaceBundles)
        row.setdefault("replication_clusters", [self.clusters.own])
        self._policies.put_namespace(namespace, row)


def _bundles(asked: Any, default: int) -> Row:
    """Return evenly split hash ranges; with one broker they only matter to tools that print them."""
    if asked is not None and not isinstance(asked, dict):
        raise BadRequest('bundles must be an object, as in {"numBundles": 4}')
    count = asked.get("numBundles") if asked else None
    if count is not None and type(count) is not int:
        raise BadRequest("numBundles must be a whole number")
    if count is None or count <= 0:
        count = default  # as in Pulsar
    if count > BUNDLES_MAX:
        raise PreconditionFailed(f"Invalid number of bundles: {count}; at most {BUNDLES_MAX} are possible")
    boundaries = [f"0x{i * ((1 << 32) // count):08x}" for i in range(count)] + ["0xffffffff"]
    return {"boundaries": boundaries, "numBundles": count}


def _is_strings(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)
