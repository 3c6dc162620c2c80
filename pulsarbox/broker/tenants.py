"""Tenants and namespaces: who may have topics where. Every change is durable before it is answered for."""

import logging
from typing import Any

from pulsarbox.broker.core import Core
from pulsarbox.clock import Now
from pulsarbox.errors import BadRequest, Conflict, NamespaceNotFound, NotFound, PreconditionFailed
from pulsarbox.names import check_entity_name, parse_namespace
from pulsarbox.storage.catalog import Row, namespace_key, tenant_key

log = logging.getLogger(__name__)

SHIPPED = {"public": ("default",), "pulsar": ("system",)}
"""Tenants and namespaces that every box starts with."""

BUNDLES_MAX = 1 << 16
"""Every bundle's boundary stands in the namespace's row."""


class Tenants:
    """The tenants, and the namespaces of each."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._cluster = core.settings.clusterName
        self.leaving: set[str] = set()
        """Namespaces that are on their way out, topic by topic: none may come into being there."""
        for tenant, namespaces in SHIPPED.items():
            if tenant_key(tenant) not in core.catalog:
                core.commits.put_row(tenant_key(tenant), {"adminRoles": [], "allowedClusters": [self._cluster]})
                for namespace in namespaces:
                    self._put_namespace(f"{tenant}/{namespace}", {})
                    log.info("Created namespace %s/%s", tenant, namespace)

    # Tenants

    def all(self) -> list[str]:
        """The names of all tenants."""
        return [key.partition("/")[2] for key in self._core.catalog.keys("tenant/")]

    def get(self, tenant: str) -> Row:
        """A tenant's info. Raises NotFound."""
        row = self._core.catalog.get(tenant_key(tenant))
        if row is None:
            raise NotFound("Tenant does not exist")
        return row

    def create(self, tenant: str, info: Row | None) -> None:
        """Create a tenant. Raises Conflict where it exists, PreconditionFailed for a bad name or unknown clusters."""
        check_entity_name("Tenant", tenant)
        if tenant_key(tenant) in self._core.catalog:
            raise Conflict("Tenant already exist")
        self._core.commits.put_row(tenant_key(tenant), self._checked(info))

    def update(self, tenant: str, info: Row | None) -> None:
        """Replace a tenant's info. Raises NotFound, PreconditionFailed."""
        if tenant_key(tenant) not in self._core.catalog:
            raise NotFound(f"Tenant {tenant} not found")
        self._core.commits.put_row(tenant_key(tenant), self._checked(info))

    def delete(self, tenant: str) -> None:
        """Delete a tenant. Raises NotFound, and Conflict while it has namespaces."""
        self.get(tenant)
        if self.namespaces(tenant):
            raise Conflict("The tenant still has active namespaces")
        self._core.commits.put_row(tenant_key(tenant), None)

    def _checked(self, info: Row | None) -> Row:
        if info is None:
            raise PreconditionFailed("TenantInfo is null")
        roles = info.get("adminRoles") or []
        clusters = info.get("allowedClusters")
        if clusters is None:
            raise PreconditionFailed("Clusters cannot be null: say which, as in {'allowedClusters': ['standalone']}")
        if not _is_strings(roles) or not _is_strings(clusters):
            raise BadRequest("adminRoles and allowedClusters must be lists of names")
        if not clusters or not all(cluster.strip() for cluster in clusters):
            raise PreconditionFailed("Clusters cannot be empty or blank")
        unknown = sorted(set(clusters) - {self._cluster})
        if unknown:
            raise PreconditionFailed(f"Clusters do not exist: {', '.join(unknown)}; this box is '{self._cluster}'")
        return {"adminRoles": sorted(set(roles) - {""}), "allowedClusters": sorted(set(clusters))}

    # Namespaces

    def namespaces(self, tenant: str) -> list[str]:
        """The namespaces of a tenant, in full. Raises NotFound."""
        self.get(tenant)
        return [key.partition("/")[2] for key in self._core.catalog.keys(f"namespace/{tenant}/")]

    def has_namespace(self, namespace: str) -> bool:
        """Whether ``tenant/namespace`` exists."""
        return namespace_key(namespace) in self._core.catalog

    def policies(self, namespace: str) -> Row:
        """The stored policies of a namespace. Raises NotFound."""
        row = self._core.catalog.get(namespace_key(namespace))
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
        """Change one policy of a namespace; None takes it away. Topics are told where ``now`` is given. Raises
        NotFound."""
        policies = {**self.policies(namespace), name: value}
        if value is None:
            del policies[name]
        self._core.policies.put_namespace(namespace, policies, now)

    def delete_namespace(self, namespace: str) -> None:
        """Delete an empty namespace; the caller has seen to its topics."""
        self.policies(namespace)
        self._core.policies.put_namespace(namespace, None)

    def require(self, namespace: str) -> None:
        """Raises NamespaceNotFound where a topic cannot be in this namespace because it is not there, or on its way
        out."""
        if namespace in self.leaving:
            raise NamespaceNotFound(f"Namespace {namespace} is being deleted")
        if not self.has_namespace(namespace):
            tenant = namespace.partition("/")[0]
            what = f"Namespace {namespace}" if tenant_key(tenant) in self._core.catalog else f"Tenant {tenant}"
            raise NamespaceNotFound(f"{what} not found")

    def _put_namespace(self, namespace: str, policies: Row) -> None:
        row = dict(policies)
        row["bundles"] = _bundles(row.get("bundles"), self._core.settings.defaultNumberOfNamespaceBundles)
        row.setdefault("replication_clusters", [self._cluster])
        self._core.policies.put_namespace(namespace, row)


def _bundles(asked: Any, default: int) -> Row:
    """The hash ranges of a namespace, evenly cut; with one broker they only matter to tools that print them."""
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
