"""Brokers and clusters."""

import pytest

from tests.unit.server.http.harness import BROKER_URL, WEB_URL, Box, with_box


@pytest.mark.parametrize(("path", "text"), [("health", "ok"), ("ready", "ok"), ("version", "4.2.4")])
def test_what_monitors_ask(path: str, text: str) -> None:
    async def scenario(box: Box) -> None:
        got = await box.get(f"/brokers/{path}")
        assert (got.status, got.text) == (200, text)

    with_box(scenario)


def test_there_is_one_broker_under_any_name_of_a_cluster() -> None:
    async def scenario(box: Box) -> None:
        for path in ("/brokers", "/brokers/", "/brokers/standalone", "/brokers/other"):
            assert (await box.get(path)).value == ["box:8080"]

    with_box(scenario)


def test_there_is_one_cluster() -> None:
    async def scenario(box: Box) -> None:
        assert (await box.get("/clusters")).value == ["standalone"]
        cluster = (await box.get("/clusters/standalone")).value
        assert (cluster["serviceUrl"], cluster["brokerServiceUrl"]) == (WEB_URL, BROKER_URL)
        missing = await box.get("/clusters/other")
        assert (missing.status, missing.reason) == (404, "Cluster does not exist")

    with_box(scenario)
