"""The table of all routes: the served endpoints, and the unsupported ones of Pulsar."""

from pulsarbox.server.http import unsupported_endpoints
from pulsarbox.server.http.box import (
    browse,
    clients,
    clock,
    compression,
    dead_letters,
    epochs,
    events,
    faults,
    history,
    jobs,
    live_views,
    maps,
    message_keeping,
    pipelines,
    plugins,
    segments,
    store,
)
from pulsarbox.server.http.framework.routes import Routes
from pulsarbox.server.http.policies import levels, of_namespaces, of_topics, quotas, resource_groups
from pulsarbox.server.http.resources import (
    brokers,
    compaction,
    functions,
    lookup,
    maintenance,
    messages,
    namespace_properties,
    namespace_topics,
    namespaces,
    packages,
    partitions,
    permissions,
    rest_producer,
    schemas,
    subscriptions,
    tenants,
    termination,
    topics,
    transactions,
)
from pulsarbox.server.http.statistics import broker_stats, metrics, topic_stats_resource

ROOMS = (
    brokers,
    broker_stats,
    functions,
    tenants,
    namespaces,
    namespace_properties,
    namespace_topics,
    packages,
    permissions,
    topics,
    partitions,
    pipelines,
    plugins,
    rest_producer,
    topic_stats_resource,
    subscriptions,
    messages,
    maintenance,
    compaction,
    compression,
    levels,
    of_namespaces,
    of_topics,
    quotas,
    resource_groups,
    termination,
    schemas,
    lookup,
    clock,
    browse,
    dead_letters,
    epochs,
    events,
    jobs,
    message_keeping,
    faults,
    maps,
    segments,
    metrics,
    history,
    store,
    live_views,
    transactions,
    clients,
)
"""The modules with the served routes."""


def all_routes() -> Routes:
    """Return the table. Raises TypeError or ValueError for an invalid row."""
    return Routes(row for room in (*ROOMS, unsupported_endpoints) for row in room.ROUTES)
