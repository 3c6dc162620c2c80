"""Rows of policies that concern several clusters, several brokers or object storage: a single box only stores them.

Part of the table of policies in ``table``.
"""

from typing import Final

from pulsarbox.protocol.policies.offload_shape import (
    DELETION_LAG,
    EMPTY_OFFLOAD,
    OFFLOAD,
    THRESHOLD_BYTES,
    THRESHOLD_SECONDS,
)
from pulsarbox.protocol.policies.policy_values import DISPATCH_RATE, TYPED_RATE
from pulsarbox.protocol.policies.row import Blank, LegacyMembers, PolicyEndpoint, PolicyRow
from pulsarbox.protocol.policies.shapes import ObjectShape, Several, Text
from pulsarbox.protocol.policies.short_forms import NamesForm

NOT_REPLICATED: Final = "a box does not replicate messages to other clusters"

LEGACY_OFFLOAD: Final = LegacyMembers(
    {
        "offload_threshold": THRESHOLD_BYTES,
        "offload_threshold_in_seconds": THRESHOLD_SECONDS,
        "offload_deletion_lag_ms": DELETION_LAG,
    },
    {"offload_threshold": -1, "offload_threshold_in_seconds": -1, "offload_deletion_lag_ms": None},
    EMPTY_OFFLOAD,
)
"""Pulsar's members of namespaces for the offload thresholds, before offload policies. Only a creation sets them; the
next change of the offload policies moves them there."""

_NO_OFFLOAD: Final = "The offloadPolicies must be specified for namespace offload."

OFFLOAD_POLICIES: Final = PolicyRow(
    "offload-policies",
    "Object storage to which closed ledgers are moved: driver, bucket, thresholds",
    OFFLOAD,
    PolicyEndpoint(
        "offload_policies",
        "offloadPolicies",
        blank=Blank.UNMET,
        without=_NO_OFFLOAD,
        removal="removeOffloadPolicies",
        legacy=LEGACY_OFFLOAD,
    ),
    PolicyEndpoint("offloadPolicies", "offloadPolicies", blank=Blank.UNMET, without=_NO_OFFLOAD, applied=True),
    stored_only="a box stores all messages in its data directory",
    merged=True,
)

REPLICATOR_DISPATCH_RATE: Final = PolicyRow(
    "replicator-dispatch-rate",
    "Maximum messages and bytes a period replicated to each other cluster",
    DISPATCH_RATE,
    PolicyEndpoint(
        "replicatorDispatchRate",
        "replicatorDispatchRate",
        by_cluster=True,
        missing="Namespace policies does not exist",
    ),
    PolicyEndpoint("replicatorDispatchRate", "replicatorDispatchRate", applied=True),
    typed=TYPED_RATE,
    stored_only=NOT_REPLICATED,
)

ENTRY_FILTERS: Final = PolicyRow(
    "entry-filters",
    "Comma-separated names of the filters that decide which entries are dispatched",
    ObjectShape({"entryFilterNames": (Text(), None)}, form=NamesForm("entryFilterNames")),
    PolicyEndpoint("entryFilters", "entryFilters"),
    PolicyEndpoint("entryFilters", "entryFilters", applied=True),
    stored_only="entry filters are Java classes, which a box does not load",
)

ANTI_AFFINITY_GROUP: Final = PolicyRow(
    "anti-affinity-group",
    "Group of namespaces that a cluster distributes among its brokers",
    Text(),
    PolicyEndpoint(
        "namespaceAntiAffinityGroup",
        "antiAffinity",
        blank=Blank.UNMET,
        without="Anti-affinity group can't be empty",
        local=True,
    ),
    stored_only="a single broker owns all namespaces",
)

STORED_ROWS: Final = (OFFLOAD_POLICIES, REPLICATOR_DISPATCH_RATE, ENTRY_FILTERS, ANTI_AFFINITY_GROUP)
"""Those with the endpoints of the table."""

REPLICATION_CLUSTERS: Final = PolicyRow(
    "replication-clusters",
    "Clusters to which messages are replicated, including the box's own",
    Several(Text()),
    PolicyEndpoint(
        "replication_clusters",
        "replication",
        blank=Blank.UNMET,
        without="ClusterIds should not be null or empty",
        removed=False,
        unset=[],
    ),
    PolicyEndpoint(
        "replicationClusters",
        "replication",
        blank=Blank.UNMET,
        without="ClusterIds should not be null or empty",
        applied=True,
    ),
    stored_only=NOT_REPLICATED,
)

ALLOWED_CLUSTERS: Final = PolicyRow(
    "allowed-clusters",
    "Clusters to which topics may replicate messages; none for those of the tenant",
    Several(Text()),
    PolicyEndpoint(
        "allowed_clusters",
        "allowedClusters",
        blank=Blank.REFUSED,
        without="Clusters cannot be null",
        removed=False,
        unset=[],
    ),
    sets=bool,
    stored_only=NOT_REPLICATED,
)

SHADOW_TOPICS: Final = PolicyRow(
    "shadow-topics",
    "Topics that show the messages of this one without storing them",
    Several(Text()),
    topic=PolicyEndpoint(
        "shadowTopics",
        "shadowTopics",
        verb="PUT",
        blank=Blank.UNMET,
        without="Cannot specify empty shadow topics, please use remove command instead.",
    ),
    stored_only="a box does not copy messages to other topics",
)

CLUSTER_ROWS: Final = (REPLICATION_CLUSTERS, ALLOWED_CLUSTERS, SHADOW_TOPICS)
"""Those with endpoints of their own, which look up clusters and topics."""
