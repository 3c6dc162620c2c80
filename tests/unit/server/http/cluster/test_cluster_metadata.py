"""Clusters, peers and migrations, with the statuses and texts of Pulsar 4.2.4."""

from typing import Any

import pytest

from pulsarbox.errors import WARNING_HEADER
from tests.unit.server.http.harness import BROKER_URL, WEB_URL, HttpBox

EAST = {"serviceUrl": "http://east:8080", "brokerServiceUrl": "pulsar://east:6650"}
FLAGS = {
    "brokerClientTlsEnabled": False,
    "tlsAllowInsecureConnection": False,
    "brokerClientTlsEnabledWithKeyStore": False,
}


async def test_the_own_cluster(box: HttpBox) -> None:
    assert (await box.get("/clusters")).value == ["standalone"]
    own = {"serviceUrl": WEB_URL, "brokerServiceUrl": BROKER_URL} | FLAGS
    assert (await box.get("/clusters/standalone")).value == own
    made = await box.put("/clusters/standalone", EAST)
    assert (made.status, made.reason) == (409, "Cluster already exists")
    changed = await box.post("/clusters/standalone", {"serviceUrl": "http://proxy:8080"})
    assert (changed.status, changed.text, changed.headers.get(WARNING_HEADER)) == (200, "", None)
    assert (await box.get("/clusters/standalone")).value == {"serviceUrl": "http://proxy:8080"} | FLAGS
    refused = await box.delete("/clusters/standalone")
    assert (refused.status, refused.reason) == (412, "Cluster not empty")


async def test_another_cluster(box: HttpBox) -> None:
    for method in ("get", "delete"):
        missing = await getattr(box, method)("/clusters/east")
        assert (missing.status, missing.reason) == (404, "Cluster does not exist")
    assert (await box.post("/clusters/east", EAST)).status == 404
    made = await box.put("/clusters/east", EAST | {"unknown": 1})
    assert (made.status, made.text) == (200, "")
    assert "does not" not in made.text and "neither replicates" in made.headers[WARNING_HEADER]
    assert (await box.get("/clusters")).value == ["east", "standalone"]
    assert (await box.get("/clusters/east")).value == EAST | FLAGS
    assert (await box.put("/clusters/east", EAST)).status == 409
    full = {"serviceUrlTls": "https://east", "listenerName": "in", "brokerClientTlsEnabled": True}
    assert (await box.post("/clusters/east", full)).status == 200
    assert (await box.get("/clusters/east")).value == FLAGS | full
    assert (await box.delete("/clusters/east")).status == 204
    assert (await box.get("/clusters")).value == ["standalone"]


@pytest.mark.parametrize(
    ("body", "status", "reason"),
    [
        (None, 400, "cluster data is required"),
        (b"null", 400, "cluster data is required"),
        ([], 400, "The body must be a JSON object"),
        ({"serviceUrl": "pulsar://x"}, 400, "Illegal service url, example: http://pulsar.example.com:8080"),
        ({"serviceUrl": "http s://x"}, 400, "Illegal service url"),
        ({"serviceUrl": "http://[x"}, 400, "Illegal service url"),
        ({"serviceUrlTls": "http://x"}, 400, "Illegal service tls url"),
        ({"brokerServiceUrl": "http://x"}, 400, "Illegal broker service url"),
        ({"brokerServiceUrlTls": "pulsar://x"}, 400, "Illegal broker service tls url"),
        ({"proxyServiceUrl": "http://x"}, 400, "Illegal proxy service url"),
        ({"proxyProtocol": "other"}, 400, "proxyProtocol of the cluster data must be one of SNI"),
        ({"brokerClientTlsEnabled": "x"}, 400, "brokerClientTlsEnabled of the cluster data must be true or false"),
        ({"peerClusterNames": "x"}, 400, "peerClusterNames must be a list of strings, not a string"),
        ({"peerClusterNames": ["x" * 8000 + str(i) for i in range(9)]}, 412, "The value is too large"),
    ],
)
async def test_invalid_clusters(box: HttpBox, body: Any, status: int, reason: str) -> None:
    refused = await box.put("/clusters/east", body)
    assert (refused.status, refused.reason[: len(reason)]) == (status, reason)
    assert (await box.get("/clusters")).value == ["standalone"]


async def test_names_of_clusters(box: HttpBox) -> None:
    for name in ("a%20b", "a%2Fb", "a*"):
        refused = await box.put(f"/clusters/{name}", EAST)
        assert (refused.status, refused.reason) == (412, "Cluster name is not valid")


async def test_tenants_may_use_stored_clusters(box: HttpBox) -> None:
    info = {"adminRoles": [], "allowedClusters": ["east", "standalone"]}
    assert (await box.put("/tenants/t", info)).status == 412
    await box.put("/clusters/east", EAST)
    assert (await box.put("/tenants/t", info)).status == 204
    assert (await box.delete("/clusters/east")).status == 204  # as in Pulsar, although a tenant names it
    assert (await box.get("/tenants/t")).value == info
    refused = await box.post("/tenants/t", info)
    assert (refused.status, refused.reason.partition(":")[0]) == (412, "Clusters do not exist")


async def test_peers(box: HttpBox) -> None:
    missing = await box.get("/clusters/east/peers")
    assert (missing.status, missing.reason) == (404, "Cluster does not exist")
    assert (await box.post("/clusters/east/peers", [])).status == 404
    await box.put("/clusters/east", EAST)
    await box.put("/clusters/west", {})
    unset = await box.get("/clusters/east/peers")
    assert (unset.status, unset.text) == (200, "")
    refused = await box.post("/clusters/east/peers", ["EAST"])
    assert (refused.status, refused.reason) == (412, "east itself can't be part of peer-list")
    refused = await box.post("/clusters/east/peers", ["west", "north"])
    assert (refused.status, refused.reason) == (412, "Peer cluster north does not exist")
    assert (await box.post("/clusters/east/peers", {})).status == 400
    done = await box.post("/clusters/east/peers", ["west", "standalone", "west"])
    assert (done.status, WARNING_HEADER in done.headers) == (204, True)
    assert (await box.get("/clusters/east/peers")).value == ["west", "standalone"]
    assert (await box.get("/clusters/east")).value == EAST | FLAGS | {"peerClusterNames": ["west", "standalone"]}
    assert (await box.post("/clusters/east/peers")).status == 204
    assert (await box.get("/clusters/east/peers")).text == ""


async def test_migrations(box: HttpBox) -> None:
    url = {"serviceUrl": "http://west:8080"}
    for path in ("/clusters/east/migrate", "/clusters/standalone/migrate"):
        missing = await box.get(path)
        assert (missing.status, missing.reason) == (404, "Cluster does not exist")
    assert (await box.post("/clusters/east/migrate?migrated=true", url)).status == 404
    await box.put("/clusters/east", EAST)
    empty: tuple[Any, ...] = ({}, None)
    for body in empty:
        refused = await box.post("/clusters/east/migrate?migrated=true", body)
        assert (refused.status, refused.reason) == (400, "Cluster url must not be empty")
    done = await box.post("/clusters/east/migrate?migrated=true", url)
    assert (done.status, WARNING_HEADER in done.headers) == (200, True)
    shown = {"migrated": True, "migratedClusterUrl": url | {"empty": False}}
    assert (await box.get("/clusters/east/migrate")).value == shown
    own = await box.post("/clusters/standalone/migrate?migrated=true", url)
    assert (own.status, "cannot redirect its clients" in own.reason) == (501, True)
    assert (await box.post("/clusters/standalone/migrate?migrated=false")).status == 200
    assert (await box.get("/clusters/standalone/migrate")).value == {"migrated": False}
