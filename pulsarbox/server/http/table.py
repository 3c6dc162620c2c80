"""All routes of the box: those that it serves, and what Pulsar has beyond them."""

from pulsarbox.server.http import (
    broker_stats,
    brokers,
    clock,
    compaction,
    dead_letters,
    epochs,
    events,
    faults,
    lookup,
    maintenance,
    messages,
    metrics,
    namespace_properties,
    namespace_topics,
    namespaces,
    partitions,
    permissions,
    plugins,
    producing,
    schemas,
    stats,
    subscriptions,
    tenants,
    termination,
    top,
    topics,
    transactions,
    unserved,
)
from pulsarbox.server.http.policies import levels, of_namespaces, of_topics, quotas, resource_groups
from pulsarbox.server.http.routes import Routes

ROOMS = (
    brokers,
    broker_stats,
    tenants,
    namespaces,
    namespace_properties,
    namespace_topics,
    permissions,
    topics,
    partitions,
    plugins,
    producing,
    stats,
    subscriptions,
    messages,
    maintenance,
    compaction,
    levels,
    of_namespaces,
    of_topics,
    quotas,
    resource_groups,
    termination,
    schemas,
    lookup,
    clock,
    dead_letters,
    epochs,
    events,
    faults,
    metrics,
    top,
    transactions,
)
"""Where the routes are that it serves."""


def all_routes() -> Routes:
    """The table. Raises TypeError or ValueError where a row is not fit to serve."""
    return Routes(row for room in (*ROOMS, unserved) for row in room.ROUTES)
