"""Clusters: creation, update, deletion, peer clusters, and migration.

Source: https://pulsar.apache.org/docs/4.2.x/admin-api-clusters/.
"""

from typing import Any, Final

from pulsarbox.errors import BadRequest, NotFound, NotSupported, PreconditionFailed
from pulsarbox.names import is_entity_name
from pulsarbox.protocol.cluster_data import CLUSTER_DATA, PEERS, check_addresses
from pulsarbox.protocol.policies.shapes import ObjectShape, Text
from pulsarbox.server.http.cluster.body_values import object_in, strings
from pulsarbox.server.http.framework.request import DONE, HttpRequest, HttpResponse, answer, plain
from pulsarbox.server.http.framework.routes import HttpRoute, Permission
from pulsarbox.server.http.framework.stored_only import stored_only
from pulsarbox.storage.catalog import Row

PLAIN_CLUSTER: Final[Row] = {
    name: default for name, (_, default) in CLUSTER_DATA.members.items() if default is not None
}
"""The members that Pulsar returns for every cluster."""

_BEFORE_PEERS: Final = [*CLUSTER_DATA.members].index("brokerClientTlsEnabled")
_ORDER: Final = (*[*CLUSTER_DATA.members][:_BEFORE_PEERS], PEERS, *[*CLUSTER_DATA.members][_BEFORE_PEERS:])

_NO_OTHERS: Final = "a box neither replicates to other clusters nor redirects clients to them"


def clusters(call: HttpRequest) -> HttpResponse:
    """Return the names of all clusters."""
    return answer(call.broker.clusters.names())


def cluster(call: HttpRequest) -> HttpResponse:
    """Return a cluster's data, its members in Pulsar's order."""
    data = PLAIN_CLUSTER | call.broker.clusters.get(call.path["cluster"])
    return answer({name: data[name] for name in _ORDER if name in data})


def create(call: HttpRequest) -> HttpResponse:
    """Store a cluster."""
    name = call.path["cluster"]
    if not is_entity_name(name):
        raise PreconditionFailed("Cluster name is not valid")
    call.broker.clusters.create(name, _data(call))
    return _changed(call)


def update(call: HttpRequest) -> HttpResponse:
    """Replace a cluster's data; clients find the box by that of its own cluster."""
    call.broker.clusters.update(call.path["cluster"], _data(call))
    return _changed(call)


def _changed(call: HttpRequest) -> HttpResponse:
    done = plain("")
    return done if call.path["cluster"] == call.broker.clusters.own else stored_only("clusters", _NO_OTHERS, done)


def _data(call: HttpRequest) -> Row:
    body = call.json_object()
    if body is None:
        raise BadRequest("cluster data is required")
    data = {name: value for name, value in CLUSTER_DATA.read(body, "the cluster data").items() if value is not False}
    if body.get(PEERS) is not None:
        data[PEERS] = strings(body[PEERS], PEERS)
    check_addresses(data)
    return data


def delete(call: HttpRequest) -> HttpResponse:
    """Delete a cluster; the box's own can't be deleted."""
    call.broker.clusters.delete(call.path["cluster"])
    return DONE


# Peer clusters


def peers(call: HttpRequest) -> HttpResponse:
    """Return the names of a cluster's peer clusters; an empty body if they were never set."""
    found = call.broker.clusters.get(call.path["cluster"]).get(PEERS)
    return plain("") if found is None else answer(found)


def set_peers(call: HttpRequest) -> HttpResponse:
    """Replace a cluster's peer clusters; without a body, unset them."""
    clusters, name, body = call.broker.clusters, call.path["cluster"], call.json()
    given = None if body is None else strings(body, "Peer clusters")
    if any(peer.lower() == name.lower() for peer in given or ()):
        raise PreconditionFailed(f"{name} itself can't be part of peer-list")
    for peer in clusters.unknown(given or ()):
        raise PreconditionFailed(f"Peer cluster {peer} does not exist")
    data = {key: value for key, value in clusters.get(name).items() if key != PEERS}
    clusters.update(name, data if given is None else data | {PEERS: given})
    return stored_only("peer clusters", _NO_OTHERS)


# Migration

_MIGRATION_URLS: Final = ObjectShape(
    dict.fromkeys(("serviceUrl", "serviceUrlTls", "brokerServiceUrl", "brokerServiceUrlTls"), (Text(), None))
)


def migration(call: HttpRequest) -> HttpResponse:
    """Return whether a cluster is migrated, and where to."""
    row = call.broker.clusters.migrations.get(call.path["cluster"])
    if row is None:
        raise NotFound("Cluster does not exist")
    return answer(row)


def migrate(call: HttpRequest) -> HttpResponse:
    """Store whether another cluster is migrated. The box's own can't be: it would have to redirect its clients."""
    clusters, name, migrated = call.broker.clusters, call.path["cluster"], call.flag("migrated")
    url = None if call.json() is None else object_in(call, _MIGRATION_URLS, "the cluster url")
    if migrated and not url:
        raise BadRequest("Cluster url must not be empty")
    clusters.get(name)
    if migrated and name == clusters.own:
        raise NotSupported("updateClusterMigration is not supported: a box cannot redirect its clients elsewhere")
    row: dict[str, Any] = {"migrated": migrated}
    if url is not None:
        row["migratedClusterUrl"] = url | {"empty": not url}
    clusters.migrations.put(name, row)
    return stored_only("cluster migrations", _NO_OTHERS, plain(""))


_CLUSTER: Final = "/admin/v2/clusters/{cluster}"

ROUTES = (
    HttpRoute("GET", "/admin/v2/clusters", Permission.NAMED, clusters),
    HttpRoute("GET", _CLUSTER, Permission.SUPERUSER, cluster),
    HttpRoute("PUT", _CLUSTER, Permission.SUPERUSER, create),
    HttpRoute("POST", _CLUSTER, Permission.SUPERUSER, update),
    HttpRoute("DELETE", _CLUSTER, Permission.SUPERUSER, delete),
    HttpRoute("GET", f"{_CLUSTER}/peers", Permission.SUPERUSER, peers),
    HttpRoute("POST", f"{_CLUSTER}/peers", Permission.SUPERUSER, set_peers),
    HttpRoute("GET", f"{_CLUSTER}/migrate", Permission.SUPERUSER, migration),
    HttpRoute("POST", f"{_CLUSTER}/migrate", Permission.SUPERUSER, migrate),
)
