"""Namespaces of an anti-affinity group, with the statuses and texts of Pulsar 4.2.4."""

from pulsarbox.server.http.cluster.anti_affinity import ANTI_AFFINITY_GROUP
from tests.unit.server.http.harness import HttpBox

GROUP = "/namespaces/standalone/antiAffinity/g"


async def test_namespaces_of_a_group(box: HttpBox) -> None:
    await box.put("/namespaces/public/n")
    for namespace in ("public/n", "public/default"):
        box.broker.tenants.set_policy(namespace, ANTI_AFFINITY_GROUP, "G")
    assert (await box.get(f"{GROUP}?tenant=public")).value == ["public/default", "public/n"]
    assert (await box.get(f"{GROUP}?tenant=pulsar")).value == []
    assert (await box.get(f"{GROUP}?tenant=none")).value == []
    assert (await box.get(f"{GROUP}2?tenant=public")).value == []


async def test_invalid_requests(box: HttpBox) -> None:
    refused = await box.get(GROUP)
    assert (refused.status, refused.reason) == (400, "Tenant should not be null")
    refused = await box.get("/namespaces/standalone/antiAffinity/%20?tenant=public")
    assert (refused.status, refused.reason) == (412, "Anti-affinity group can't be empty")
    refused = await box.get("/namespaces/none/antiAffinity/g?tenant=public")
    assert (refused.status, refused.reason) == (412, "Cluster none does not exist.")
    assert (await box.get(f"{GROUP}?tenant=")).status == 412
