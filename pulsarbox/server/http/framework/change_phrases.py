"""Words for requests that change something, by Pulsar's name of the operation, or by the path of own requests.

A phrase has names of the path in braces, and ``{subject}``, the object of the request.
"""

from collections.abc import Mapping
from typing import Final

VERBS: Final[Mapping[str, tuple[str, str]]] = {
    "abort": ("aborted", "abort"),
    "add": ("added", "addition"),
    "analyze": ("analyzed", "analysis"),
    "cancel": ("cancelled", "cancellation"),
    "clear": ("cleared", "clearing"),
    "close": ("closed", "closing"),
    "create": ("created", "creation"),
    "commit": ("committed", "commit"),
    "delete": ("deleted", "deletion"),
    "deregister": ("removed", "removal"),
    "disconnect": ("disconnected", "disconnection"),
    "enable": ("enabled", "activation"),
    "expire": ("expired", "expiry"),
    "grant": ("granted", "grant"),
    "move": ("moved", "moving"),
    "pause": ("paused", "pause"),
    "put": ("set", "change"),
    "register": ("created", "creation"),
    "reload": ("reloaded", "reloading"),
    "remove": ("removed", "removal"),
    "replace": ("replaced", "replacement"),
    "reset": ("reset", "reset"),
    "restart": ("restarted", "restart"),
    "resume": ("resumed", "resumption"),
    "revoke": ("revoked", "revocation"),
    "set": ("set", "change"),
    "skip": ("skipped", "skipping"),
    "split": ("split", "split"),
    "stage": ("staged", "staging"),
    "start": ("started", "start"),
    "stop": ("stopped", "stop"),
    "test": ("tested", "test"),
    "trigger": ("called", "call"),
    "trim": ("trimmed", "trimming"),
    "unload": ("unloaded", "unloading"),
    "update": ("changed", "change"),
    "upload": ("uploaded", "upload"),
}
"""Participle and noun of the first word of an operation."""

PHRASES: Final[Mapping[str, str]] = {
    # The box
    "shutDownBrokerGracefully": "shutdown of the box requested",
    "startMigration": "metadata migration started",
    "scaleTransactionCoordinators": "number of transaction coordinators set",
    "abortTransaction": "transaction {mostSigBits}:{leastSigBits} aborted",
    "drain": "worker drain requested",
    "drainAtLeader": "worker drain requested",
    "rebalance": "rebalancing of functions requested",
    # Clusters
    "deleteBookieRackInfo": "rack of bookie {bookie} removed",
    "updateBookieRackInfo": "rack of bookie {bookie} set",
    "deleteFailureDomain": "failure domain {domainName} of {subject} deleted",
    "setFailureDomain": "failure domain {domainName} of {subject} set",
    "deleteNamespaceIsolationPolicy": "isolation policy {policyName} of {subject} deleted",
    "setNamespaceIsolationPolicy": "isolation policy {policyName} of {subject} set",
    "setPeerClusterNames": "peers of {subject} set",
    "createOrUpdateResourceGroup": "{subject} set",
    "setDefaultResourceQuota": "default resource quota set",
    "setNamespaceBundleResourceQuota": "resource quota of bundle {bundle} of {tenant}/{namespace} set",
    "removeNamespaceBundleResourceQuota": "resource quota of bundle {bundle} of {tenant}/{namespace} removed",
    # Namespaces
    "clearNamespaceBacklog": "backlogs of {subject} cleared",
    "clearNamespaceBacklogForSubscription": "backlogs of subscription {subscription} in {subject} cleared",
    "clearNamespaceBundleBacklog": "backlogs of bundle {bundle} of {subject} cleared",
    "clearNamespaceBundleBacklogForSubscription": (
        "backlogs of subscription {subscription} in bundle {bundle} of {subject} cleared"
    ),
    "deleteNamespaceBundle": "bundle {bundle} of {subject} deleted",
    "splitNamespaceBundle": "bundle {bundle} of {subject} split",
    "unloadNamespaceBundle": "bundle {bundle} of {subject} unloaded",
    "unsubscribeNamespace": "subscription {subscription} in {subject} deleted",
    "unsubscribeNamespaceBundle": "subscription {subscription} in bundle {bundle} of {subject} deleted",
    "setNamespaceResourceGroup": "resource group of {subject} set to {resourcegroup}",
    "setProperty": "property {key} of {subject} set",
    "removeProperty": "property {key} of {subject} removed",
    "grantPermissionOnNamespace": "permissions of {role} on {subject} granted",
    "revokePermissionsOnNamespace": "permissions of {role} on {subject} revoked",
    "grantPermissionOnSubscription": "permission on subscription {subscription} of {subject} granted",
    "revokePermissionOnSubscription": "permission of {role} on subscription {subscription} of {subject} revoked",
    "grantPermissionsOnTopics": "permissions on topics granted",
    "revokePermissionsOnTopics": "permissions on topics revoked",
    # Topics
    "grantPermissionsOnTopic": "permissions of {role} on {subject} granted",
    "revokePermissionsOnTopic": "permissions of {role} on {subject} revoked",
    "createMissedPartitions": "missing partitions of {subject} created",
    "terminatePartitionedTopic": "partitioned topic {subject} terminated",
    "triggerOffload": "offload of {subject} requested",
    "getBacklogSizeByMessageId": "backlog size of {subject} requested",
    "getVersionBySchema": "version of a schema of {subject} requested",
    "postSchema": "schema of {subject} uploaded",
    "expireMessagesForAllSubscriptions": (
        "messages of all subscriptions of {subject} older than {expireTimeInSeconds} s expired"
    ),
    # Subscriptions
    "expireTopicMessages": "messages of subscription {subscription} of {subject} expired",
    "resetCursor": "subscription {subscription} of {subject} reset",
    "analyzeSubscriptionBacklog": "backlog of subscription {subscription} of {subject} analyzed",
    "updateSubscriptionProperties": "properties of subscription {subscription} of {subject} changed",
    "setReplicatedSubscriptionStatus": "replication of subscription {subscription} of {subject} set",
    "setSubscriptionLevelDispatchRate": "dispatch rate of subscription {subscription} of {subject} set",
    "removeSubscriptionLevelDispatchRate": "dispatch rate of subscription {subscription} of {subject} removed",
    # Functions, connectors and packages
    "uploadFunction": "package of a function uploaded",
    "updateFunctionOnWorkerLeader": "function {tenant}/{namespace}/{functionName} changed",
    "putFunctionState": "state {key} of {subject} set",
    "reloadBuiltinFunctions": "built-in functions reloaded",
    "reloadSinks": "built-in sinks reloaded",
    "reloadSources": "built-in sources reloaded",
    "upload": "package {type}://{tenant}/{namespace}/{packageName}@{version} uploaded",
    "updateMeta": "metadata of package {type}://{tenant}/{namespace}/{packageName}@{version} changed",
    "delete": "package {type}://{tenant}/{namespace}/{packageName}@{version} deleted",
}
"""Phrases by operation, for those that have no good name of the form ``deleteCluster``."""

OWN: Final = (
    ("PUT", "/pulsarbox/v1/pipelines/{name}", "{subject} changed"),
    ("DELETE", "/pulsarbox/v1/pipelines/{name}", "{subject} removed"),
    ("POST", "/pulsarbox/v1/ledgers/{tenant}/{namespace}/{topic}/close", "ledger of {subject} closed"),
    ("DELETE", "/pulsarbox/v1/compaction/{domain}/{tenant}/{namespace}/{topic}", "compacted view of {subject} removed"),
    ("POST", "/pulsarbox/v1/clock/advance", "virtual clock moved"),
    ("PUT", "/pulsarbox/v1/clock", "virtual clock set"),
    (
        "POST",
        "/pulsarbox/v1/dead-letter-policy/{domain}/{tenant}/{namespace}/{topic}/{subscription}",
        "dead letter policy of subscription {subscription} of {subject} set",
    ),
    (
        "DELETE",
        "/pulsarbox/v1/dead-letter-policy/{domain}/{tenant}/{namespace}/{topic}/{subscription}",
        "dead letter policy of subscription {subscription} of {subject} removed",
    ),
    ("POST", "/pulsarbox/v1/ensemble/members", "data directory added"),
    ("DELETE", "/pulsarbox/v1/ensemble/members", "data directory removed"),
    ("POST", "/pulsarbox/v1/ensemble/replace", "data directory replaced"),
    ("POST", "/pulsarbox/v1/ensemble/scrub", "scrub of data directories requested"),
    ("POST", "/pulsarbox/v1/epochs/{tenant}/{namespace}/{sink}/{epoch}", "epoch {epoch} of sink {sink} committed"),
    ("POST", "/pulsarbox/v1/epochs/{tenant}/{namespace}/{sink}/{epoch}/stages", "epoch {epoch} of sink {sink} staged"),
    (
        "DELETE",
        "/pulsarbox/v1/epochs/{tenant}/{namespace}/{sink}",
        "epochs of sink {sink} in {tenant}/{namespace} removed",
    ),
    ("POST", "/pulsarbox/v1/jobs", "job started"),
    ("POST", "/pulsarbox/v1/jobs/{id}/pause", "{subject} paused"),
    ("POST", "/pulsarbox/v1/jobs/{id}/resume", "{subject} resumed"),
    ("POST", "/pulsarbox/v1/jobs/{id}/cancel", "{subject} cancelled"),
    ("POST", "/pulsarbox/v1/faults", "fault added"),
    ("DELETE", "/pulsarbox/v1/faults", "all faults removed"),
    ("DELETE", "/pulsarbox/v1/faults/{id}", "{subject} removed"),
    ("POST", "/pulsarbox/v1/segments", "segments of messages requested"),
    ("POST", "/pulsarbox/v1/places", "places of messages requested"),
    ("POST", "/pulsarbox/v1/clients/{id}/kick", "{subject} disconnected"),
)
"""Method, path and phrase of the requests of the box itself."""
