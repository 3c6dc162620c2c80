"""Brokers and clusters: there is one of each."""

from typing import Any

from pulsarbox.errors import NotFound
from pulsarbox.protocol.features import COMPATIBLE_PULSAR_VERSION
from pulsarbox.server.http.call import Answer, Call, answer, plain
from pulsarbox.server.http.routes import Permission, Route


def health(call: Call) -> Answer:
    """Whether the box works. Answered, like everything, when no change of the metadata waits for the disk."""
    return plain("ok")


def version(call: Call) -> Answer:
    """The version of Pulsar whose behaviour this is; tools choose by it what they may call."""
    return plain(COMPATIBLE_PULSAR_VERSION)


def brokers(call: Call) -> Answer:
    """The one broker. As in Pulsar, any name of a cluster will do."""
    return answer([call.broker.endpoints.web_url.partition("://")[2]])


def clusters(call: Call) -> Answer:
    """The one cluster."""
    return answer([call.broker.core.settings.clusterName])


def cluster(call: Call) -> Answer:
    """Where the cluster is."""
    if call.path["cluster"] != call.broker.core.settings.clusterName:
        raise NotFound("Cluster does not exist")
    endpoints = call.broker.endpoints
    return answer({"serviceUrl": endpoints.web_url, "brokerServiceUrl": endpoints.broker_url} | PLAIN_CLUSTER)


PLAIN_CLUSTER: dict[str, Any] = {
    "brokerClientTlsEnabled": False,
    "tlsAllowInsecureConnection": False,
    "brokerClientTlsEnabledWithKeyStore": False,
    "migrated": False,
}
"""What is left to say of a cluster without TLS."""

ROUTES = (
    Route("GET", "/admin/v2/brokers/health", Permission.ANYONE, health),
    Route("GET", "/admin/v2/brokers/ready", Permission.ANYONE, health),
    Route("GET", "/admin/v2/brokers/version", Permission.ANYONE, version),
    Route("GET", "/admin/v2/brokers", Permission.SUPERUSER, brokers),
    Route("GET", "/admin/v2/brokers/{cluster}", Permission.SUPERUSER, brokers),
    Route("GET", "/admin/v2/clusters", Permission.ANYONE, clusters),
    Route("GET", "/admin/v2/clusters/{cluster}", Permission.SUPERUSER, cluster),
)
