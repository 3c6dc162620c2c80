"""Bookies, their racks, and affinity groups, with the statuses and texts of Pulsar 4.2.4."""

from pulsarbox.errors import WARNING_HEADER
from tests.unit.server.http.harness import HttpBox

RACKS = "/bookies/racks-info"
AFFINITY = "/namespaces/public/default/persistence/bookieAffinity"
GROUP = {"bookkeeperAffinityGroupPrimary": "a", "bookkeeperAffinityGroupSecondary": "b"}


async def test_there_are_no_bookies(box: HttpBox) -> None:
    assert (await box.get("/bookies/all")).value == {"bookies": []}


async def test_the_life_of_racks(box: HttpBox) -> None:
    assert (await box.get(RACKS)).value == {}
    for method in ("get", "delete"):
        missing = await getattr(box, method)(f"{RACKS}/b1:3181")
        reason = "Bookie rack placement configuration not found: b1:3181"
        assert (missing.status, missing.reason) == (404, reason)
    done = await box.post(f"{RACKS}/b1:3181?group=g", {"rack": "/r1", "hostname": "h", "unknown": 1})
    assert (done.status, WARNING_HEADER in done.headers) == (204, True)
    assert (await box.post(f"{RACKS}/b2?group=", {})).status == 204
    shown = {"": {"b2": {}}, "g": {"b1:3181": {"rack": "/r1", "hostname": "h"}}}
    assert (await box.get(RACKS)).value == shown
    assert (await box.post(f"{RACKS}/b1:3181?group=k", {"rack": "r2/"})).status == 204
    assert (await box.get(RACKS)).value == {"": {"b2": {}}, "k": {"b1:3181": {"rack": "r2/"}}}
    assert (await box.get(f"{RACKS}/b1:3181")).value == {"rack": "r2/"}
    for name in ("b1:3181", "b2"):
        assert (await box.delete(f"{RACKS}/{name}")).status == 204
    assert (await box.get(RACKS)).value == {}


async def test_invalid_racks(box: HttpBox) -> None:
    missing = await box.post(f"{RACKS}/b1", {"rack": "/r"})
    assert (missing.status, missing.reason) == (412, "Bookie 'group' parameters is missing")
    refused = await box.post(f"{RACKS}/b1?group=g", {"rack": "/r/s"})
    assert (refused.status, refused.reason.startswith("Bookie 'rack' parameter is invalid")) == (412, True)
    assert (await box.post(f"{RACKS}/b1?group=g")).status == 400
    assert (await box.get(RACKS)).value == {}
    hosts = [await box.post(f"{RACKS}/b{number}?group=g", {"hostname": "x" * 8000}) for number in range(9)]
    assert [each.status for each in hosts] == [204] * 8 + [412]
    assert hosts[-1].reason.startswith("The value is too large")


async def test_affinity_groups(box: HttpBox) -> None:
    unset = await box.get(AFFINITY)
    assert (unset.status, unset.text) == (200, "")
    done = await box.post(AFFINITY, GROUP)
    assert (done.status, WARNING_HEADER in done.headers) == (204, True)
    assert (await box.get(AFFINITY)).value == GROUP
    assert "bookieAffinityGroup" not in (await box.get("/namespaces/public/default")).value
    assert (await box.post(AFFINITY, {"bookkeeperAffinityGroupPrimary": "c"})).status == 204
    assert (await box.get(AFFINITY)).value == {"bookkeeperAffinityGroupPrimary": "c"}
    for _ in range(2):
        assert (await box.delete(AFFINITY)).status == 204
    assert (await box.get(AFFINITY)).text == ""
    for method, body in (("GET", None), ("POST", GROUP), ("DELETE", None)):
        missing = await box.ask(method, "/admin/v2" + AFFINITY.replace("default", "none"), body)
        assert (missing.status, missing.reason) == (404, "Namespace not found")
    long = await box.post(AFFINITY, {"bookkeeperAffinityGroupPrimary": "c" * 100_000})
    assert (long.status in (400, 412), (await box.get(AFFINITY)).text) == (True, "")


async def test_an_affinity_group_is_deleted_with_its_namespace(box: HttpBox) -> None:
    await box.put("/namespaces/public/n")
    path = AFFINITY.replace("default", "n")
    await box.post(path, GROUP)
    await box.delete("/namespaces/public/n")
    await box.put("/namespaces/public/n")
    assert (await box.get(path)).text == ""
