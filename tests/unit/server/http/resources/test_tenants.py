"""Tenants, with the statuses and texts of Pulsar."""

from typing import Any

import pytest

from pulsarbox.config import Settings
from tests.unit.server.http.harness import HttpBox

INFO = {"allowedClusters": ["standalone"]}


async def test_the_life_of_a_tenant(box: HttpBox) -> None:
    assert (await box.get("/tenants")).value == ["public", "pulsar"]
    made = await box.put("/tenants/t", INFO | {"adminRoles": ["b", "a", "b"], "unknown": 1})
    assert (made.status, made.text) == (204, "")
    assert "Content-Type" not in made.headers
    assert (await box.get("/tenants")).value == ["public", "pulsar", "t"]
    assert (await box.get("/tenants/t")).value == {"adminRoles": ["a", "b"], "allowedClusters": ["standalone"]}
    again = await box.put("/tenants/t", INFO)
    assert (again.status, again.reason) == (409, "Tenant already exist")
    assert (await box.post("/tenants/t", INFO)).status == 204
    assert (await box.get("/tenants/t")).value == {"adminRoles": [], "allowedClusters": ["standalone"]}
    assert (await box.delete("/tenants/t")).status == 204
    assert (await box.get("/tenants")).value == ["public", "pulsar"]


@pytest.mark.parametrize(
    ("body", "status", "reason"),
    [
        (None, 412, "TenantInfo is null"),
        (b"null", 412, "TenantInfo is null"),
        ({}, 412, "Clusters cannot be null"),
        ({"allowedClusters": []}, 412, "Clusters cannot be empty or blank"),
        ({"allowedClusters": [""]}, 412, "Clusters cannot be empty or blank"),
        ({"allowedClusters": ["other"]}, 412, "Clusters do not exist"),
        ({"allowedClusters": "standalone"}, 400, "adminRoles and allowedClusters must be lists"),
        ({"allowedClusters": ["standalone"], "adminRoles": [1]}, 400, "adminRoles and allowedClusters must be lists"),
        (b"[1]", 400, "The body must be a JSON object, not an array"),
        (b"{bad", 400, "The body is not JSON"),
        (b"\xff", 400, "The body is not JSON"),
    ],
)
async def test_what_is_no_tenant(box: HttpBox, body: Any, status: int, reason: str) -> None:
    for got in (await box.put("/tenants/t", body), await box.post("/tenants/public", body)):
        assert got.status == status
        assert got.reason.startswith(reason)
    assert "t" not in (await box.get("/tenants")).value


@pytest.mark.parametrize("name", ["b%20d", "b%2Fd", "b,d", "%E2%82%AC", "%0A"])
async def test_bad_names(box: HttpBox, name: str) -> None:
    got = await box.put(f"/tenants/{name}", INFO)
    assert got.status == 412
    assert got.reason.startswith("Tenant name is not valid")


async def test_a_missing_tenant(box: HttpBox) -> None:
    assert (await box.post("/tenants/x")).status == 412
    answers = [await box.get("/tenants/x"), await box.post("/tenants/x", INFO), await box.delete("/tenants/x")]
    assert [(got.status, got.reason) for got in answers] == [
        (404, "Tenant does not exist"),
        (404, "Tenant x not found"),
        (404, "Tenant doesn't exist"),
    ]


async def test_a_tenant_with_namespaces_stays(box: HttpBox) -> None:
    got = await box.delete("/tenants/public")
    assert (got.status, got.reason) == (409, "The tenant still has active namespaces")
    got = await box.delete("/tenants/public?force=true")
    assert (got.status, got.reason) == (405, "Broker doesn't allow forced deletion of tenants")


@pytest.mark.settings(Settings(forceDeleteTenantAllowed=True))
async def test_deleting_by_force_where_it_is_allowed(box: HttpBox) -> None:
    assert (await box.put("/persistent/public/default/t")).status == 204
    assert (await box.delete("/tenants/public?force=true")).status == 204
    assert (await box.get("/tenants")).value == ["pulsar"]
    assert list(box.broker.topics) == []
