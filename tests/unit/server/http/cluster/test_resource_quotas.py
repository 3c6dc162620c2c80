"""Resource quotas of bundles, with the statuses and texts of Pulsar 4.2.4."""

from typing import Any

from pulsarbox.broker.cluster.resource_quotas import INITIAL
from pulsarbox.errors import WARNING_HEADER
from tests.unit.server.http.harness import HttpBox

BUNDLE = "0x00000000_0x40000000"
OF_BUNDLE = f"/resource-quotas/public/default/{BUNDLE}"
NONE = {"msgRateIn": 0.0, "msgRateOut": 0.0, "bandwidthIn": 0.0, "bandwidthOut": 0.0, "memory": 0.0, "dynamic": True}


async def test_the_default_quota(box: HttpBox) -> None:
    assert (await box.get("/resource-quotas")).value == INITIAL
    done = await box.post("/resource-quotas", {"msgRateIn": 1, "unknown": 2})
    assert (done.status, WARNING_HEADER in done.headers) == (204, True)
    assert (await box.get("/resource-quotas")).value == NONE | {"msgRateIn": 1.0}
    assert (await box.get(OF_BUNDLE)).value == NONE | {"msgRateIn": 1.0}
    assert (await box.post("/resource-quotas")).status == 204
    assert (await box.get("/resource-quotas")).value == INITIAL
    invalid: tuple[Any, ...] = ([], {"msgRateIn": "x"}, {"dynamic": 1})
    for body in invalid:
        assert (await box.post("/resource-quotas", body)).status == 400


async def test_the_quota_of_a_bundle(box: HttpBox) -> None:
    assert (await box.post(OF_BUNDLE, {"msgRateIn": 5, "dynamic": False})).status == 204
    assert (await box.get(OF_BUNDLE)).value == NONE | {"msgRateIn": 5.0, "dynamic": False}
    assert (await box.get("/resource-quotas/public/default/0x40000000_0x80000000")).value == INITIAL
    assert (await box.delete(OF_BUNDLE)).status == 204
    missing = await box.delete(OF_BUNDLE)
    reason = f"path /loadbalance/resource-quota/public/default/{BUNDLE} not found."
    assert (missing.status, missing.reason) == (404, reason)
    await box.post(OF_BUNDLE, {"msgRateIn": 5})
    assert (await box.post(OF_BUNDLE)).status == 204
    assert (await box.get(OF_BUNDLE)).value == INITIAL
    for method in ("GET", "POST", "DELETE"):
        refused = await box.ask(method, "/admin/v2/resource-quotas/public/default/0x00000000_0x80000000")
        assert (refused.status, refused.reason.startswith("Invalid upper boundary for bundle")) == (412, True)


async def test_quotas_are_deleted_with_their_namespace(box: HttpBox) -> None:
    await box.put("/namespaces/public/n", {"bundles": {"numBundles": 1}})
    path = "/resource-quotas/public/n/0x00000000_0xffffffff"
    await box.post(path, {"msgRateIn": 5})
    await box.delete("/namespaces/public/n")
    await box.put("/namespaces/public/n", {"bundles": {"numBundles": 1}})
    assert (await box.get(path)).value == INITIAL
