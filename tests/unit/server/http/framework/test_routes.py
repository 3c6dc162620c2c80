"""The route table: permissions of each row, and matching of paths."""

import re
from typing import cast

import pytest

from pulsarbox.errors import BadRequest
from pulsarbox.server.http.admin_endpoints import endpoints
from pulsarbox.server.http.framework.request import DONE, HttpRequest, HttpResponse
from pulsarbox.server.http.framework.routes import HttpRoute, Permission, Routes, split_path
from pulsarbox.server.http.resources import functions
from pulsarbox.server.http.route_table import ROOMS, all_routes

SUB = "/admin/v2/{domain}/{tenant}/{namespace}/{topic}/subscription/{subscription}"
TXN = "{mostSigBits}/{leastSigBits}"
TXN_TOPIC = "{tenant}/{namespace}/{topic}"
PERMISSIONS = {
    "GET /admin/v2/bookies/all": "SUPERUSER",
    "GET /admin/v2/bookies/racks-info": "SUPERUSER",
    "DELETE /admin/v2/bookies/racks-info/{bookie}": "SUPERUSER",
    "GET /admin/v2/bookies/racks-info/{bookie}": "SUPERUSER",
    "POST /admin/v2/bookies/racks-info/{bookie}": "SUPERUSER",
    "GET /admin/v2/broker-stats/allocator-stats/{allocator}": "SUPERUSER",
    "GET /admin/v2/broker-stats/bookieops": "SUPERUSER",
    "GET /admin/v2/broker-stats/broker-resource-availability/{tenant}/{namespace}": "SUPERUSER",
    "GET /admin/v2/broker-stats/mbeans": "SUPERUSER",
    "DELETE /admin/v2/clusters/{cluster}": "SUPERUSER",
    "POST /admin/v2/clusters/{cluster}": "SUPERUSER",
    "PUT /admin/v2/clusters/{cluster}": "SUPERUSER",
    "GET /admin/v2/clusters/{cluster}/failureDomains": "SUPERUSER",
    "DELETE /admin/v2/clusters/{cluster}/failureDomains/{domainName}": "SUPERUSER",
    "GET /admin/v2/clusters/{cluster}/failureDomains/{domainName}": "SUPERUSER",
    "POST /admin/v2/clusters/{cluster}/failureDomains/{domainName}": "SUPERUSER",
    "GET /admin/v2/clusters/{cluster}/migrate": "SUPERUSER",
    "POST /admin/v2/clusters/{cluster}/migrate": "SUPERUSER",
    "GET /admin/v2/clusters/{cluster}/namespaceIsolationPolicies": "SUPERUSER",
    "GET /admin/v2/clusters/{cluster}/namespaceIsolationPolicies/brokers": "SUPERUSER",
    "GET /admin/v2/clusters/{cluster}/namespaceIsolationPolicies/brokers/{broker}": "SUPERUSER",
    "DELETE /admin/v2/clusters/{cluster}/namespaceIsolationPolicies/{policyName}": "SUPERUSER",
    "GET /admin/v2/clusters/{cluster}/namespaceIsolationPolicies/{policyName}": "SUPERUSER",
    "POST /admin/v2/clusters/{cluster}/namespaceIsolationPolicies/{policyName}": "SUPERUSER",
    "GET /admin/v2/clusters/{cluster}/peers": "SUPERUSER",
    "POST /admin/v2/clusters/{cluster}/peers": "SUPERUSER",
    "POST /admin/v2/metadata/migration/start": "SUPERUSER",
    "GET /admin/v2/metadata/migration/status": "SUPERUSER",
    "GET /admin/v2/namespaces/{cluster}/antiAffinity/{group}": "SUPERUSER",
    "POST /admin/v2/namespaces/{tenant}/{namespace}/migration": "SUPERUSER",
    "DELETE /admin/v2/namespaces/{tenant}/{namespace}/persistence/bookieAffinity": "SUPERUSER",
    "GET /admin/v2/namespaces/{tenant}/{namespace}/persistence/bookieAffinity": "SUPERUSER",
    "POST /admin/v2/namespaces/{tenant}/{namespace}/persistence/bookieAffinity": "SUPERUSER",
    "PUT /admin/v2/namespaces/{tenant}/{namespace}/{bundle}/split": "SUPERUSER",
    "GET /admin/v2/namespaces/{tenant}/{namespace}/{bundle}/topicHashPositions": "TENANT_ADMIN",
    "GET /admin/v2/resource-quotas": "SUPERUSER",
    "POST /admin/v2/resource-quotas": "SUPERUSER",
    "DELETE /admin/v2/resource-quotas/{tenant}/{namespace}/{bundle}": "SUPERUSER",
    "GET /admin/v2/resource-quotas/{tenant}/{namespace}/{bundle}": "SUPERUSER",
    "POST /admin/v2/resource-quotas/{tenant}/{namespace}/{bundle}": "SUPERUSER",
    "GET /admin/v3/transactions/coordinatorInternalStats/{coordinatorId}": "NAMED",
    "GET /admin/v3/transactions/pendingAckInternalStats/{tenant}/{namespace}/{topic}/{subscription}": "NAMED",
    "GET /admin/v3/transactions/transactionBufferInternalStats/{tenant}/{namespace}/{topic}": "NAMED",
    "GET /admin/v2/broker-stats/destinations": "SUPERUSER",
    "GET /admin/v2/broker-stats/load-report": "SUPERUSER",
    "GET /admin/v2/broker-stats/metrics": "SUPERUSER",
    "GET /admin/v2/broker-stats/topics": "SUPERUSER",
    "GET /admin/v2/brokers/health": "ANYONE",
    "GET /admin/v2/brokers/ready": "ANYONE",
    "GET /admin/v2/brokers/version": "ANYONE",
    "GET /metrics": "ANYONE",
    "GET /status.html": "ANYONE",
    "GET /admin/v2/brokers": "SUPERUSER",
    "GET /admin/v2/brokers/{cluster}": "SUPERUSER",
    "GET /admin/v2/clusters": "NAMED",
    "GET /admin/v2/clusters/{cluster}": "SUPERUSER",
    "GET /admin/v2/tenants": "SUPERUSER",
    "GET /admin/v2/tenants/{tenant}": "TENANT",
    "PUT /admin/v2/tenants/{tenant}": "TENANT",
    "POST /admin/v2/tenants/{tenant}": "TENANT",
    "DELETE /admin/v2/tenants/{tenant}": "TENANT",
    "GET /admin/v2/namespaces/{tenant}": "TENANT_ADMIN",
    "GET /admin/v2/namespaces/{tenant}/{namespace}": "TENANT_ADMIN",
    "PUT /admin/v2/namespaces/{tenant}/{namespace}": "TENANT_ADMIN",
    "DELETE /admin/v2/namespaces/{tenant}/{namespace}": "TENANT_ADMIN",
    "GET /admin/v2/namespaces/{tenant}/{namespace}/topics": "NAMESPACE_USER",
    "GET /admin/v2/{domain}/{tenant}/{namespace}": "NAMESPACE_USER",
    "PUT /admin/v2/{domain}/{tenant}/{namespace}/{topic}": "TENANT_ADMIN",
    "DELETE /admin/v2/{domain}/{tenant}/{namespace}/{topic}": "TENANT_ADMIN",
    "GET /admin/v2/{domain}/{tenant}/{namespace}/{topic}/subscriptions": "TOPIC_CONSUMER",
    "GET /admin/v2/{domain}/{tenant}/{namespace}/{topic}/stats": "TOPIC_USER",
    "GET /admin/v2/{domain}/{tenant}/{namespace}/{topic}/internalStats": "TOPIC_USER",
    "GET /admin/v2/{domain}/{tenant}/{namespace}/{topic}/partitioned-stats": "TOPIC_USER",
    "GET /admin/v2/{domain}/{tenant}/{namespace}/{topic}/partitioned-internalStats": "TOPIC_USER",
    "PUT /admin/v2/{domain}/{tenant}/{namespace}/{topic}/unload": "TENANT_ADMIN",
    "GET /admin/v2/{domain}/{tenant}/{namespace}/{topic}/properties": "TOPIC_USER",
    "PUT /admin/v2/{domain}/{tenant}/{namespace}/{topic}/properties": "TENANT_ADMIN",
    "DELETE /admin/v2/{domain}/{tenant}/{namespace}/{topic}/properties": "TENANT_ADMIN",
    f"PUT {SUB}": "TOPIC_CONSUMER",
    f"DELETE {SUB}": "TOPIC_CONSUMER",
    f"GET {SUB}/properties": "TOPIC_CONSUMER",
    f"PUT {SUB}/properties": "TOPIC_CONSUMER",
    f"POST {SUB}/skip/{{count}}": "TOPIC_CONSUMER",
    f"POST {SUB}/skip_all": "TOPIC_CONSUMER",
    f"POST {SUB}/expireMessages/{{seconds}}": "TOPIC_CONSUMER",
    f"POST {SUB}/expireMessages": "TOPIC_CONSUMER",
    "POST /admin/v2/{domain}/{tenant}/{namespace}/{topic}/all_subscription/expireMessages/{seconds}": "TOPIC_CONSUMER",
    f"POST {SUB}/resetcursor/{{timestamp}}": "TOPIC_CONSUMER",
    f"POST {SUB}/resetcursor": "TOPIC_CONSUMER",
    f"GET {SUB}/position/{{number}}": "TOPIC_CONSUMER",
    "GET /admin/v2/{domain}/{tenant}/{namespace}/{topic}/ledger/{ledger}/entry/{entry}": "TOPIC_CONSUMER",
    "GET /admin/v2/{domain}/{tenant}/{namespace}/{topic}/examinemessage": "TOPIC_CONSUMER",
    "GET /admin/v2/{domain}/{tenant}/{namespace}/{topic}/lastMessageId": "TOPIC_CONSUMER",
    "GET /admin/v2/{domain}/{tenant}/{namespace}/{topic}/messageid/{timestamp}": "TOPIC_CONSUMER",
    "GET /admin/v2/{domain}/{tenant}/{namespace}/partitioned": "NAMESPACE_USER",
    "GET /admin/v2/{domain}/{tenant}/{namespace}/{topic}/partitions": "TOPIC_USER",
    "PUT /admin/v2/{domain}/{tenant}/{namespace}/{topic}/partitions": "TENANT_ADMIN",
    "POST /admin/v2/{domain}/{tenant}/{namespace}/{topic}/partitions": "TENANT_ADMIN",
    "DELETE /admin/v2/{domain}/{tenant}/{namespace}/{topic}/partitions": "TENANT_ADMIN",
    "GET /admin/v2/schemas/{tenant}/{namespace}/{topic}/schema": "TOPIC_USER",
    "GET /admin/v2/schemas/{tenant}/{namespace}/{topic}/schema/{version}": "TOPIC_USER",
    "GET /admin/v2/schemas/{tenant}/{namespace}/{topic}/schemas": "TOPIC_USER",
    "POST /admin/v2/schemas/{tenant}/{namespace}/{topic}/schema": "TOPIC_PRODUCER",
    "POST /admin/v2/schemas/{tenant}/{namespace}/{topic}/compatibility": "TENANT_ADMIN",
    "POST /admin/v2/schemas/{tenant}/{namespace}/{topic}/version": "TOPIC_USER",
    "GET /admin/v2/schemas/{tenant}/{namespace}/{topic}/metadata": "TOPIC_USER",
    "DELETE /admin/v2/schemas/{tenant}/{namespace}/{topic}/schema": "TENANT_ADMIN",
    "POST /topics/{domain}/{tenant}/{namespace}/{topic}": "TOPIC_PRODUCER",
    "POST /topics/{domain}/{tenant}/{namespace}/{topic}/partitions/{partition}": "TOPIC_PRODUCER",
    "GET /lookup/v2/topic/{domain}/{tenant}/{namespace}/{topic}": "TOPIC_USER",
    "GET /lookup/v2/topic/{domain}/{tenant}/{namespace}/{topic}/bundle": "NAMESPACE_USER",
    "GET /pulsarbox/v1/policies/{tenant}/{namespace}": "TENANT_ADMIN",
    "GET /pulsarbox/v1/policies/{domain}/{tenant}/{namespace}/{topic}": "TENANT_ADMIN",
    "GET /pulsarbox/v1/dead-letter-policy/{domain}/{tenant}/{namespace}/{topic}/{subscription}": "TOPIC_CONSUMER",
    "POST /pulsarbox/v1/dead-letter-policy/{domain}/{tenant}/{namespace}/{topic}/{subscription}": "TENANT_ADMIN",
    "DELETE /pulsarbox/v1/dead-letter-policy/{domain}/{tenant}/{namespace}/{topic}/{subscription}": "TENANT_ADMIN",
    "GET /pulsarbox/v1/dead-letters/{tenant}/{namespace}": "NAMESPACE_USER",
    "POST /pulsarbox/v1/jobs": "JOB",
    "GET /pulsarbox/v1/jobs": "NAMED",
    "GET /pulsarbox/v1/jobs/{id}": "JOB",
    "POST /pulsarbox/v1/jobs/{id}/pause": "JOB",
    "POST /pulsarbox/v1/jobs/{id}/resume": "JOB",
    "POST /pulsarbox/v1/jobs/{id}/cancel": "JOB",
    "GET /pulsarbox/v1/dlq/{tenant}/{namespace}/{topic}/groups": "TOPIC_CONSUMER",
    "GET /pulsarbox/v1/clock": "NAMED",
    "GET /pulsarbox/v1/plugins": "WATCHER",
    "GET /pulsarbox/v1/pipelines": "NAMED",
    "PUT /pulsarbox/v1/pipelines/{name}": "NAMED",
    "DELETE /pulsarbox/v1/pipelines/{name}": "NAMED",
    "GET /pulsarbox/v1/events": "WATCHER",
    "GET /pulsarbox/v1/maps/cursor/{tenant}/{namespace}/{topic}/{subscription}": "TOPIC_CONSUMER",
    "GET /pulsarbox/v1/maps/keys/{tenant}/{namespace}/{topic}/{subscription}": "TOPIC_CONSUMER",
    "GET /pulsarbox/v1/seek-preview/{tenant}/{namespace}/{topic}/{subscription}": "TOPIC_CONSUMER",
    "GET /pulsarbox/v1/kept/{domain}/{tenant}/{namespace}/{topic}": "TOPIC_USER",
    "GET /pulsarbox/v1/browse/{tenant}/{namespace}/{topic}": "TOPIC_CONSUMER",
    "GET /pulsarbox/v1/segments/{tenant}/{namespace}/{topic}": "TOPIC_CONSUMER",
    "GET /pulsarbox/v1/places/{tenant}/{namespace}/{topic}": "TOPIC_CONSUMER",
    "POST /pulsarbox/v1/places": "NAMED",
    "POST /pulsarbox/v1/segments": "NAMED",
    "POST /pulsarbox/v1/ledgers/{tenant}/{namespace}/{topic}/close": "TENANT_ADMIN",
    "GET /pulsarbox/v1/top/{view}": "WATCHER",
    "GET /pulsarbox/v1/top/storage": "WATCHER",
    "GET /pulsarbox/v1/history": "WATCHER",
    "POST /pulsarbox/v1/clients/{id}/kick": "SUPERUSER",
    "GET /pulsarbox/v1/compression": "SUPERUSER",
    "GET /pulsarbox/v1/ensemble": "SUPERUSER",
    "GET /pulsarbox/v1/ensemble/map": "SUPERUSER",
    "DELETE /pulsarbox/v1/ensemble/members": "SUPERUSER",
    "POST /pulsarbox/v1/ensemble/members": "SUPERUSER",
    "POST /pulsarbox/v1/ensemble/replace": "SUPERUSER",
    "POST /pulsarbox/v1/ensemble/scrub": "SUPERUSER",
    "GET /pulsarbox/v1/ensemble/under-replicated": "SUPERUSER",
    "GET /pulsarbox/v1/policies/{tenant}/{namespace}/compressionAtRest": "TENANT_ADMIN",
    "GET /pulsarbox/v1/policies/{domain}/{tenant}/{namespace}/{topic}/compressionAtRest": "TENANT_ADMIN",
    "POST /pulsarbox/v1/policies/{tenant}/{namespace}/compressionAtRest": "TENANT_ADMIN",
    "POST /pulsarbox/v1/policies/{domain}/{tenant}/{namespace}/{topic}/compressionAtRest": "TENANT_ADMIN",
    "DELETE /pulsarbox/v1/policies/{tenant}/{namespace}/compressionAtRest": "TENANT_ADMIN",
    "DELETE /pulsarbox/v1/policies/{domain}/{tenant}/{namespace}/{topic}/compressionAtRest": "TENANT_ADMIN",
    "POST /pulsarbox/v1/clock/advance": "SUPERUSER",
    "PUT /pulsarbox/v1/clock": "SUPERUSER",
    "GET /pulsarbox/v1/faults": "SUPERUSER",
    "POST /pulsarbox/v1/faults": "SUPERUSER",
    "DELETE /pulsarbox/v1/faults": "SUPERUSER",
    "GET /pulsarbox/v1/faults/{id}": "SUPERUSER",
    "DELETE /pulsarbox/v1/faults/{id}": "SUPERUSER",
    "GET /admin/v2/namespaces/{tenant}/{namespace}/properties": "TENANT_ADMIN",
    "PUT /admin/v2/namespaces/{tenant}/{namespace}/properties": "TENANT_ADMIN",
    "DELETE /admin/v2/namespaces/{tenant}/{namespace}/properties": "TENANT_ADMIN",
    "GET /admin/v2/namespaces/{tenant}/{namespace}/property/{key}": "TENANT_ADMIN",
    "PUT /admin/v2/namespaces/{tenant}/{namespace}/property/{key}/{value}": "TENANT_ADMIN",
    "DELETE /admin/v2/namespaces/{tenant}/{namespace}/property/{key}": "TENANT_ADMIN",
    "GET /admin/v2/namespaces/{tenant}/{namespace}/bundles": "NAMESPACE_USER",
    "GET /admin/v2/non-persistent/{tenant}/{namespace}/{bundle}": "NAMESPACE_USER",
    "PUT /admin/v2/namespaces/{tenant}/{namespace}/unload": "SUPERUSER",
    "PUT /admin/v2/namespaces/{tenant}/{namespace}/{bundle}/unload": "SUPERUSER",
    "POST /admin/v2/namespaces/{tenant}/{namespace}/clearBacklog": "NAMESPACE_CONSUMER",
    "POST /admin/v2/namespaces/{tenant}/{namespace}/clearBacklog/{subscription}": "NAMESPACE_CONSUMER",
    "POST /admin/v2/namespaces/{tenant}/{namespace}/{bundle}/clearBacklog": "NAMESPACE_CONSUMER",
    "POST /admin/v2/namespaces/{tenant}/{namespace}/{bundle}/clearBacklog/{subscription}": "NAMESPACE_CONSUMER",
    "POST /admin/v2/namespaces/{tenant}/{namespace}/unsubscribe/{subscription}": "NAMESPACE_CONSUMER",
    "POST /admin/v2/namespaces/{tenant}/{namespace}/{bundle}/unsubscribe/{subscription}": "NAMESPACE_CONSUMER",
    "GET /admin/v2/namespaces/{tenant}/{namespace}/permissions": "TENANT_ADMIN",
    "POST /admin/v2/namespaces/{tenant}/{namespace}/permissions/{role}": "TENANT_ADMIN",
    "DELETE /admin/v2/namespaces/{tenant}/{namespace}/permissions/{role}": "TENANT_ADMIN",
    "GET /admin/v2/namespaces/{tenant}/{namespace}/permissions/subscription": "TENANT_ADMIN",
    "POST /admin/v2/namespaces/{tenant}/{namespace}/permissions/subscription/{subscription}": "TENANT_ADMIN",
    "DELETE /admin/v2/namespaces/{tenant}/{namespace}/permissions/{subscription}/{role}": "TENANT_ADMIN",
    "GET /admin/v2/{domain}/{tenant}/{namespace}/{topic}/permissions": "TENANT_ADMIN",
    "POST /admin/v2/{domain}/{tenant}/{namespace}/{topic}/permissions/{role}": "TENANT_ADMIN",
    "DELETE /admin/v2/{domain}/{tenant}/{namespace}/{topic}/permissions/{role}": "TENANT_ADMIN",
    "POST /admin/v2/namespaces/grantPermissionsOnTopics": "TENANT_ADMIN_OF_TOPICS",
    "POST /admin/v2/namespaces/revokePermissionsOnTopics": "TENANT_ADMIN_OF_TOPICS",
    "GET /admin/v2/brokers/leaderBroker": "SUPERUSER",
    "GET /admin/v2/brokers/{cluster}/{broker}/ownedNamespaces": "SUPERUSER",
    "GET /admin/v2/brokers/configuration": "SUPERUSER",
    "GET /admin/v2/brokers/configuration/values": "SUPERUSER",
    "POST /admin/v2/brokers/configuration/{name}/{value}": "SUPERUSER",
    "DELETE /admin/v2/brokers/configuration/{name}": "SUPERUSER",
    "GET /admin/v2/brokers/configuration/runtime": "SUPERUSER",
    "GET /admin/v2/brokers/internal-configuration": "SUPERUSER",
    "DELETE /admin/v2/{domain}/{tenant}/{namespace}/{topic}/truncate": "TENANT_ADMIN",
    "POST /admin/v2/{domain}/{tenant}/{namespace}/{topic}/trim": "TENANT_ADMIN",
    "PUT /admin/v2/{domain}/{tenant}/{namespace}/{topic}/compaction": "TENANT_ADMIN",
    "GET /admin/v2/{domain}/{tenant}/{namespace}/{topic}/compaction": "TENANT_ADMIN",
    "DELETE /pulsarbox/v1/compaction/{domain}/{tenant}/{namespace}/{topic}": "TENANT_ADMIN",
    "POST /admin/v2/{domain}/{tenant}/{namespace}/{topic}/terminate": "TENANT_ADMIN",
    "POST /admin/v2/{domain}/{tenant}/{namespace}/{topic}/terminate/partitions": "TENANT_ADMIN",
    "DELETE /admin/v2/namespaces/{tenant}/{namespace}/{bundle}": "TENANT_ADMIN",
    "POST /admin/v2/brokers/shutdown": "SUPERUSER",
    f"POST {SUB}/analyzeBacklog": "TOPIC_CONSUMER",
    "POST /admin/v2/{domain}/{tenant}/{namespace}/{topic}/createMissedPartitions": "TENANT_ADMIN",
    "PUT /admin/v2/{domain}/{tenant}/{namespace}/{topic}/backlogSize": "TOPIC_CONSUMER",
    "GET /admin/v2/{domain}/{tenant}/{namespace}/{topic}/getMessageIdByIndex": "TOPIC_CONSUMER",
    "GET /admin/v2/{domain}/{tenant}/{namespace}/{topic}/internal-info": "TOPIC_USER",
    "GET /admin/v2/{domain}/{tenant}/{namespace}/{topic}/backlog": "TOPIC_CONSUMER",
    "GET /admin/v2/namespaces/{tenant}/{namespace}/replication": "TENANT_ADMIN",
    "POST /admin/v2/namespaces/{tenant}/{namespace}/replication": "TENANT_ADMIN",
    "GET /admin/v2/namespaces/{tenant}/{namespace}/allowedClusters": "TENANT_ADMIN",
    "POST /admin/v2/namespaces/{tenant}/{namespace}/allowedClusters": "TENANT_ADMIN",
    "DELETE /admin/v2/namespaces/{tenant}/{namespace}/antiAffinity": "TENANT_ADMIN",
    "GET /admin/v2/namespaces/{tenant}/{namespace}/antiAffinity": "TENANT_ADMIN",
    "POST /admin/v2/namespaces/{tenant}/{namespace}/antiAffinity": "TENANT_ADMIN",
    "DELETE /admin/v2/namespaces/{tenant}/{namespace}/entryFilters": "TENANT_ADMIN",
    "GET /admin/v2/namespaces/{tenant}/{namespace}/entryFilters": "TENANT_ADMIN",
    "POST /admin/v2/namespaces/{tenant}/{namespace}/entryFilters": "TENANT_ADMIN",
    "DELETE /admin/v2/namespaces/{tenant}/{namespace}/offloadDeletionLagMs": "TENANT_ADMIN",
    "GET /admin/v2/namespaces/{tenant}/{namespace}/offloadDeletionLagMs": "TENANT_ADMIN",
    "PUT /admin/v2/namespaces/{tenant}/{namespace}/offloadDeletionLagMs": "TENANT_ADMIN",
    "GET /admin/v2/namespaces/{tenant}/{namespace}/offloadPolicies": "TENANT_ADMIN",
    "POST /admin/v2/namespaces/{tenant}/{namespace}/offloadPolicies": "TENANT_ADMIN",
    "GET /admin/v2/namespaces/{tenant}/{namespace}/offloadThreshold": "TENANT_ADMIN",
    "PUT /admin/v2/namespaces/{tenant}/{namespace}/offloadThreshold": "TENANT_ADMIN",
    "GET /admin/v2/namespaces/{tenant}/{namespace}/offloadThresholdInSeconds": "TENANT_ADMIN",
    "PUT /admin/v2/namespaces/{tenant}/{namespace}/offloadThresholdInSeconds": "TENANT_ADMIN",
    "DELETE /admin/v2/namespaces/{tenant}/{namespace}/removeOffloadPolicies": "TENANT_ADMIN",
    "DELETE /admin/v2/namespaces/{tenant}/{namespace}/replicatorDispatchRate": "TENANT_ADMIN",
    "GET /admin/v2/namespaces/{tenant}/{namespace}/replicatorDispatchRate": "TENANT_ADMIN",
    "POST /admin/v2/namespaces/{tenant}/{namespace}/replicatorDispatchRate": "TENANT_ADMIN",
    "GET /admin/v2/namespaces/{tenant}/{namespace}/scanOffloadedLedgers": "TENANT_ADMIN",
    "DELETE /admin/v2/{domain}/{tenant}/{namespace}/{topic}/entryFilters": "TENANT_ADMIN",
    "GET /admin/v2/{domain}/{tenant}/{namespace}/{topic}/entryFilters": "TENANT_ADMIN",
    "POST /admin/v2/{domain}/{tenant}/{namespace}/{topic}/entryFilters": "TENANT_ADMIN",
    "GET /admin/v2/{domain}/{tenant}/{namespace}/{topic}/offload": "TENANT_ADMIN",
    "PUT /admin/v2/{domain}/{tenant}/{namespace}/{topic}/offload": "TENANT_ADMIN",
    "DELETE /admin/v2/{domain}/{tenant}/{namespace}/{topic}/offloadPolicies": "TENANT_ADMIN",
    "GET /admin/v2/{domain}/{tenant}/{namespace}/{topic}/offloadPolicies": "TENANT_ADMIN",
    "POST /admin/v2/{domain}/{tenant}/{namespace}/{topic}/offloadPolicies": "TENANT_ADMIN",
    "DELETE /admin/v2/{domain}/{tenant}/{namespace}/{topic}/replication": "TENANT_ADMIN",
    "GET /admin/v2/{domain}/{tenant}/{namespace}/{topic}/replication": "TENANT_ADMIN",
    "POST /admin/v2/{domain}/{tenant}/{namespace}/{topic}/replication": "TENANT_ADMIN",
    "DELETE /admin/v2/{domain}/{tenant}/{namespace}/{topic}/replicatorDispatchRate": "TENANT_ADMIN",
    "GET /admin/v2/{domain}/{tenant}/{namespace}/{topic}/replicatorDispatchRate": "TENANT_ADMIN",
    "POST /admin/v2/{domain}/{tenant}/{namespace}/{topic}/replicatorDispatchRate": "TENANT_ADMIN",
    "DELETE /admin/v2/{domain}/{tenant}/{namespace}/{topic}/shadowTopics": "TENANT_ADMIN",
    "GET /admin/v2/{domain}/{tenant}/{namespace}/{topic}/shadowTopics": "TENANT_ADMIN",
    "PUT /admin/v2/{domain}/{tenant}/{namespace}/{topic}/shadowTopics": "TENANT_ADMIN",
    f"GET {SUB}/replicatedSubscriptionStatus": "TOPIC_CONSUMER",
    f"POST {SUB}/replicatedSubscriptionStatus": "TOPIC_CONSUMER",
    "GET /admin/v3/transactions/coordinators": "NAMED",
    "GET /admin/v3/transactions/coordinatorStats": "NAMED",
    f"GET /admin/v3/transactions/transactionMetadata/{TXN}": "NAMED",
    "GET /admin/v3/transactions/slowTransactions/{timeout}": "NAMED",
    f"POST /admin/v3/transactions/abortTransaction/{TXN}": "SUPERUSER",
    "POST /admin/v3/transactions/transactionCoordinator/replicas": "SUPERUSER",
    f"GET /admin/v3/transactions/transactionInBufferStats/{TXN_TOPIC}/{TXN}": "NAMED",
    f"GET /admin/v3/transactions/transactionInPendingAckStats/{TXN_TOPIC}/{{subscription}}/{TXN}": "NAMED",
    f"GET /admin/v3/transactions/transactionBufferStats/{TXN_TOPIC}": "NAMED",
    f"GET /admin/v3/transactions/pendingAckStats/{TXN_TOPIC}/{{subscription}}": "NAMED",
    f"GET /admin/v3/transactions/positionStatsInPendingAck/{TXN_TOPIC}/{{subscription}}/{{ledgerId}}/{{entryId}}": (
        "NAMED"
    ),
    "GET /pulsarbox/v1/epochs/{tenant}/{namespace}": "NAMESPACE_USER",
    "GET /pulsarbox/v1/epochs/{tenant}/{namespace}/{sink}": "NAMESPACE_USER",
    "POST /pulsarbox/v1/epochs/{tenant}/{namespace}/{sink}/{epoch}": "NAMESPACE_USER",
    "POST /pulsarbox/v1/epochs/{tenant}/{namespace}/{sink}/{epoch}/stages": "NAMESPACE_USER",
    "DELETE /pulsarbox/v1/epochs/{tenant}/{namespace}/{sink}": "NAMESPACE_USER",
}

POLICIES = {
    "/admin/v2/namespaces/{tenant}/{namespace}": {
        "allowedTopicPropertyKeysForMetrics": "GET POST DELETE",
        "autoSubscriptionCreation": "GET POST DELETE",
        "autoTopicCreation": "GET POST DELETE",
        "backlogQuota": "POST DELETE",
        "backlogQuotaMap": "GET",
        "compactionThreshold": "GET PUT DELETE",
        "deduplication": "GET POST DELETE",
        "deduplicationSnapshotInterval": "GET POST",
        "delayedDelivery": "GET",
        "dispatchRate": "GET POST DELETE",
        "dispatcherPauseOnAckStatePersistent": "GET POST DELETE",
        "encryptionRequired": "GET POST",
        "inactiveTopicPolicies": "GET POST DELETE",
        "isAllowAutoUpdateSchema": "GET POST",
        "maxConsumersPerSubscription": "GET POST DELETE",
        "maxConsumersPerTopic": "GET POST DELETE",
        "maxProducersPerTopic": "GET POST DELETE",
        "maxSubscriptionsPerTopic": "GET POST DELETE",
        "maxTopicsPerNamespace": "GET POST DELETE",
        "maxUnackedMessagesPerConsumer": "GET POST DELETE",
        "maxUnackedMessagesPerSubscription": "GET POST DELETE",
        "messageTTL": "GET POST DELETE",
        "persistence": "GET POST DELETE",
        "publishRate": "GET POST DELETE",
        "resourcegroup": "GET DELETE",
        "resourcegroup/{resourcegroup}": "POST",
        "retention": "GET POST DELETE",
        "schemaAutoUpdateCompatibilityStrategy": "GET PUT",
        "schemaCompatibilityStrategy": "GET PUT",
        "schemaValidationEnforced": "GET POST",
        "subscribeRate": "GET POST DELETE",
        "subscriptionAuthMode": "GET POST",
        "subscriptionDispatchRate": "GET POST DELETE",
        "subscriptionExpirationTime": "GET POST DELETE",
        "subscriptionTypesEnabled": "GET POST DELETE",
    },
    "/admin/v2/{domain}/{tenant}/{namespace}/{topic}": {
        "autoSubscriptionCreation": "GET POST DELETE",
        "backlogQuota": "POST DELETE",
        "backlogQuotaMap": "GET",
        "compactionThreshold": "GET POST DELETE",
        "deduplicationEnabled": "GET POST DELETE",
        "deduplicationSnapshotInterval": "GET POST DELETE",
        "delayedDelivery": "GET POST DELETE",
        "dispatchRate": "GET POST DELETE",
        "dispatcherPauseOnAckStatePersistent": "GET POST DELETE",
        "inactiveTopicPolicies": "GET POST DELETE",
        "maxConsumers": "GET POST DELETE",
        "maxConsumersPerSubscription": "GET POST DELETE",
        "maxMessageSize": "GET POST DELETE",
        "maxProducers": "GET POST DELETE",
        "maxSubscriptionsPerTopic": "GET POST DELETE",
        "maxUnackedMessagesOnConsumer": "GET POST DELETE",
        "maxUnackedMessagesOnSubscription": "GET POST DELETE",
        "messageTTL": "GET POST DELETE",
        "persistence": "GET POST DELETE",
        "policies": "DELETE",
        "publishRate": "GET POST DELETE",
        "retention": "GET POST DELETE",
        "schemaCompatibilityStrategy": "GET PUT DELETE",
        "schemaValidationEnforced": "GET POST",
        "subscribeRate": "GET POST DELETE",
        "subscriptionDispatchRate": "GET POST DELETE",
        "subscriptionExpirationTime": "GET POST DELETE",
        "subscriptionTypesEnabled": "GET POST DELETE",
        "{subscription}/dispatchRate": "GET POST DELETE",
    },
}
"""Policies, by the methods available to a tenant admin."""
PERMISSIONS |= {
    f"{method} {name}/{policy}": "TENANT_ADMIN"
    for name, policies in POLICIES.items()
    for policy, methods in policies.items()
    for method in methods.split()
}
PERMISSIONS |= {
    "GET /admin/v2/brokers/backlog-quota-check": "SUPERUSER",
    "POST /admin/v2/namespaces/{tenant}/{namespace}/delayedDelivery": "SUPERUSER",
    "DELETE /admin/v2/namespaces/{tenant}/{namespace}/delayedDelivery": "SUPERUSER",
    "GET /admin/v2/resourcegroups": "SUPERUSER",
    "GET /admin/v2/resourcegroups/{resourcegroup}": "SUPERUSER",
    "PUT /admin/v2/resourcegroups/{resourcegroup}": "SUPERUSER",
    "DELETE /admin/v2/resourcegroups/{resourcegroup}": "SUPERUSER",
}
PACKAGES = "/admin/v3/packages/{type}/{tenant}/{namespace}"
PERMISSIONS |= dict.fromkeys(
    (
        f"GET {PACKAGES}",
        f"GET {PACKAGES}/{{packageName}}",
        f"GET {PACKAGES}/{{packageName}}/{{version}}",
        f"POST {PACKAGES}/{{packageName}}/{{version}}",
        f"DELETE {PACKAGES}/{{packageName}}/{{version}}",
        f"GET {PACKAGES}/{{packageName}}/{{version}}/metadata",
        f"PUT {PACKAGES}/{{packageName}}/{{version}}/metadata",
    ),
    "PACKAGES",
)
FUNCTIONS = {
    r"(GET|DELETE) /admin/v[23]/functions/{tenant}/.*": "FUNCTIONS",
    r"(GET|DELETE) /admin/v3/sources?/{tenant}/.*": "SOURCES",
    r"(GET|DELETE) /admin/v3/sinks?/{tenant}/.*": "SINKS",
    r"GET /admin/v[23]/functions/(connectors|builtins)": "NAMED",
    r"GET /admin/v3/(sink|source)s?/builtin(sinks|sources)(/{name}/configdefinition)?": "NAMED",
    r"GET /admin/v2/worker/(connectors|cluster/leader/ready)": "NAMED",
    r"GET /admin/v[23]/functions/download": "SUPERUSER",
    r"POST /admin/v3/(functions|sinks?|sources?)/(builtins/reload|reloadBuiltIn(Sinks|Sources))": "SUPERUSER",
    r"GET /admin/v2/worker/(assignments|cluster|cluster/leader|drain|leader/drain)": "SUPERUSER",
    r"GET /admin/v2/worker-stats/(functionsmetrics|metrics)": "SUPERUSER",
}
"""Permissions of reads about functions, by patterns that match the whole route."""


def nothing(call: HttpRequest) -> HttpResponse:
    return DONE


def routes(*paths: str) -> Routes:
    return Routes(HttpRoute("GET", path, Permission.ANYONE, nothing) for path in paths)


def test_the_permission_of_every_route() -> None:
    rooms = [room for room in ROOMS if room is not functions]
    assert {f"{row.method} {row.path}": row.permission.name for room in rooms for row in room.ROUTES} == PERMISSIONS


def test_the_permission_of_every_read_about_functions() -> None:
    for row in functions.ROUTES:
        found = [name for pattern, name in FUNCTIONS.items() if re.fullmatch(pattern, f"{row.method} {row.path}")]
        assert found == [row.permission.name], row.path


@pytest.mark.parametrize("permission", [None, "", "SUPERUSER"])
def test_a_route_without_a_permission_does_not_register(permission: object) -> None:
    with pytest.raises(TypeError, match="GET /x declares no permission"):
        Routes([HttpRoute("GET", "/x", cast("Permission", permission), nothing)])


def test_a_route_registers_once() -> None:
    with pytest.raises(ValueError, match=r"GET /a/\{y\} is registered twice"):
        routes("/a/{x}", "/a/{y}")


def test_a_word_wins_over_a_variable_and_leads_nowhere_else() -> None:
    table = routes("/a/{x}/c", "/a/b", "/a/{x}")
    found = {path: table.find("GET", split_path(path)) for path in ("/a/b", "/a/b/c", "/a/d", "/a", "/a/b/d", "/b")}
    assert {path: match and (match.route.path, match.path) for path, match in found.items()} == {
        "/a/b": ("/a/b", {}),
        "/a/b/c": ("/a/{x}/c", {"x": "b"}),
        "/a/d": ("/a/{x}", {"x": "d"}),
        "/a": None,
        "/a/b/d": None,
        "/b": None,
    }


def test_a_domain_is_one_of_two() -> None:
    table = routes("/{domain}/{x}")
    found = [table.find("GET", [domain, "persistent"]) for domain in ("persistent", "non-persistent", "other")]
    assert [match and match.path for match in found] == [
        {"domain": "persistent", "x": "persistent"},
        {"domain": "non-persistent", "x": "persistent"},
        None,
    ]


def test_segments_are_decoded_one_by_one() -> None:
    assert split_path("/a%2Fb/%E2%82%AC/a%20b+c/%25") == ["a/b", "€", "a b+c", "%"]
    assert split_path("/a/b/") == ["a", "b"]
    assert split_path("/") == [""]
    with pytest.raises(BadRequest):
        split_path("/%FF")


def test_the_methods_of_a_path() -> None:
    table = Routes([HttpRoute(method, "/a/{x}", Permission.ANYONE, nothing) for method in ("PUT", "GET")])
    assert table.methods(["a", "b"]) == ["GET", "PUT"]
    assert table.methods(["a"]) == []


def _shape(method: str, path: str) -> tuple[str, str]:
    """Return the path with anonymous variables."""
    return method, re.sub(r"{(?!domain})[^}]*}", "{}", path)


def test_what_is_served_is_what_the_table_of_endpoints_says() -> None:
    routes = {_shape(row.method, row.path) for room in ROOMS for row in room.ROUTES if row.path.startswith("/admin/")}
    assert routes == {_shape(row.method, row.path) for row in endpoints() if row.served}


def test_every_endpoint_of_pulsar_is_in_the_table() -> None:
    table = all_routes()
    for row in endpoints():
        segments = split_path(row.path.replace("{domain}", "persistent").replace("{", "").replace("}", ""))
        assert table.find(row.method, segments) is not None, row
