"""Brokers and clusters."""

import pytest

from pulsarbox.broker.host import Host
from pulsarbox.names import parse_topic
from tests.unit.server.http.harness import BROKER_URL, WEB_URL, HttpBox


@pytest.mark.parametrize(("path", "text"), [("health", "ok"), ("ready", "ok"), ("version", "4.2.4")])
async def test_what_monitors_ask(box: HttpBox, path: str, text: str) -> None:
    got = await box.get(f"/brokers/{path}")
    assert (got.status, got.text) == (200, text)


async def test_there_is_one_broker_under_any_name_of_a_cluster(box: HttpBox) -> None:
    for path in ("/brokers", "/brokers/", "/brokers/standalone", "/brokers/other"):
        assert (await box.get(path)).value == ["box:8080"]


async def test_there_is_one_cluster(box: HttpBox) -> None:
    assert (await box.get("/clusters")).value == ["standalone"]
    cluster = (await box.get("/clusters/standalone")).value
    assert (cluster["serviceUrl"], cluster["brokerServiceUrl"]) == (WEB_URL, BROKER_URL)
    missing = await box.get("/clusters/other")
    assert (missing.status, missing.reason) == (404, "Cluster does not exist")


async def test_who_leads_and_has_what(box: HttpBox) -> None:
    assert (await box.get("/brokers/leaderBroker")).value == {"serviceUrl": WEB_URL, "brokerId": "box:8080"}
    assert (await box.get("/brokers/standalone/box:8080/ownedNamespaces")).value == {}
    await box.put("/persistent/public/default/t")
    box.broker.topics.find(parse_topic("t"), box.shell.now())
    owned = (await box.get("/brokers/standalone/box:8080/ownedNamespaces")).value
    (bundle,) = owned
    assert bundle.startswith("public/default/0x")
    assert owned[bundle] == {"broker_assignment": "shared", "is_controlled": False, "is_active": True}
    assert (await box.get("/brokers/standalone/other:1/ownedNamespaces")).status == 404
    asked = await box.get("/brokers/health?brokerId=other:1")
    assert (asked.status, asked.reason) == (404, "Broker id 'other:1' not found in available brokers.")
    assert (await box.get("/brokers/health?brokerId=box:8080")).text == "ok"


async def test_dynamic_configuration(box: HttpBox) -> None:
    names = (await box.get("/brokers/configuration")).value
    assert "allowAutoTopicCreation" in names and "brokerServicePort" not in names
    assert (await box.get("/brokers/configuration/values")).value == {}
    got = await box.post("/brokers/configuration/defaultNumPartitions/3")
    assert (got.status, got.text) == (200, "")
    assert (await box.get("/brokers/configuration/values")).value == {"defaultNumPartitions": "3"}
    now = (await box.get("/brokers/configuration/runtime")).value
    assert (now["defaultNumPartitions"], now["allowAutoTopicCreation"]) == ("3", "true")
    for method, name in (("POST", "nonsense/1"), ("DELETE", "nonsense"), ("POST", "clusterName/x")):
        refused = await box.ask(method, f"/admin/v2/brokers/configuration/{name}")
        assert refused.status == 412
        assert refused.reason.startswith("Can't ")
    for _ in range(2):
        assert (await box.delete("/brokers/configuration/defaultNumPartitions")).status == 200
    assert (await box.get("/brokers/configuration/values")).value == {}
    assert (await box.get("/brokers/internal-configuration")).value["metadataStoreUrl"].startswith("lmdb:")


async def test_a_box_that_lives_in_another_program_is_not_shut_down_from_outside(box: HttpBox) -> None:
    got = await box.post("/brokers/shutdown?maxConcurrentUnloadPerSec=0&forcedTerminateTopic=true")
    assert (got.status, got.reason) == (
        405,
        "This box is embedded in another program, and only that program can close it",
    )


async def test_one_that_is_a_process_ends_once_the_request_makes_sense(box: HttpBox) -> None:
    reasons: list[str] = []
    box.broker.host = Host(on_shutdown=reasons.append)
    for pace in ("x", "1.5", "", "9" * 30):
        got = await box.post(f"/brokers/shutdown?maxConcurrentUnloadPerSec={pace}")
        assert (got.status, got.reason.startswith("maxConcurrentUnloadPerSec must be a whole")) == (400, True)
    assert reasons == []
    assert (await box.post("/brokers/shutdown?maxConcurrentUnloadPerSec=10")).status == 204
    assert reasons == ["POST /admin/v2/brokers/shutdown"]
