"""All routes of the box, and what Pulsar has beyond them."""

from pulsarbox.server.http import (
    brokers,
    clock,
    faults,
    lookup,
    messages,
    namespaces,
    partitions,
    schemas,
    stats,
    subscriptions,
    tenants,
    topics,
)
from pulsarbox.server.http.routes import Routes

PULSAR_RESOURCES = {
    "v2": frozenset(
        (
            "bookies",
            "broker-stats",
            "brokers",
            "clusters",
            "functions",
            "metadata",
            "namespaces",
            "non-persistent",
            "packages",
            "persistent",
            "resource-quotas",
            "resourcegroups",
            "schemas",
            "sinks",
            "sources",
            "tenants",
            "worker",
            "worker-stats",
        )
    ),
    "v3": frozenset(("functions", "packages", "sinks", "sources", "transactions")),
}
"""The resources of Pulsar's Admin API: below them, what is not in the table is not done yet."""


def all_routes() -> Routes:
    """The table. Raises TypeError or ValueError where a row is not fit to serve."""
    pulsars = (brokers, tenants, namespaces, topics, partitions, stats, subscriptions, messages, schemas, lookup)
    rooms = (*pulsars, clock, faults)
    return Routes(row for room in rooms for row in room.ROUTES)


def is_pulsars(segments: list[str]) -> bool:
    """Whether a path without a route lies below a resource of Pulsar."""
    return len(segments) > 2 and segments[0] == "admin" and segments[2] in PULSAR_RESOURCES.get(segments[1], ())
