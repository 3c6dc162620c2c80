"""Namespace properties, and operations on all topics of a namespace, as recorded from Pulsar 4.2.4."""

from itertools import pairwise

import pytest

from pulsarbox.names import parse_topic
from pulsarbox.server.http.resources.bundles import bundle_of
from tests.unit.server.http.clients import Client
from tests.unit.server.http.harness import Got, HttpBox

NS = "/namespaces/public/default"
T = "persistent://public/default/"
FIRST_BUNDLE = "0x00000000_0x40000000"


def done(got: Got) -> bool:
    return (got.status, got.text) == (204, "")


async def test_properties(box: HttpBox) -> None:
    assert (await box.get(f"{NS}/properties")).value == {}
    assert done(await box.put(f"{NS}/property/k%2F1/v%201"))
    assert (await box.get(f"{NS}/property/k%2F1")).text == "v 1"
    none = await box.get(f"{NS}/property/none")
    assert (none.status, none.text) == (200, "")
    assert done(await box.put(f"{NS}/properties", {"a": "b", "n": 1}))
    assert (await box.get(f"{NS}/properties")).value == {"k/1": "v 1", "a": "b", "n": "1"}
    taken = await box.delete(f"{NS}/property/a")
    assert (taken.status, taken.text) == (200, "b")
    again = await box.delete(f"{NS}/property/a")
    assert (again.status, again.text) == (200, "")
    assert (await box.put(f"{NS}/properties", {"c": {}})).status == 400
    assert (await box.get(NS)).value["properties"] == {"k/1": "v 1", "n": "1"}
    assert done(await box.delete(f"{NS}/properties"))
    assert (await box.get(f"{NS}/properties")).value == {}


@pytest.mark.parametrize(
    ("method", "path", "reason"),
    [
        ("GET", "properties", "Namespace does not exist"),
        ("PUT", "property/k/v", "Namespace does not exist"),
        ("DELETE", "properties", "Namespace does not exist"),
        ("GET", "bundles", "Namespace does not exist"),
        ("GET", "permissions", "Namespace does not exist"),
        ("PUT", "unload", "Namespace not found"),
        ("PUT", f"{FIRST_BUNDLE}/unload", "Namespace not found"),
        ("POST", "clearBacklog", "Namespace not found"),
        ("POST", "unsubscribe/s", "Namespace not found"),
    ],
)
async def test_a_namespace_that_is_missing(box: HttpBox, method: str, path: str, reason: str) -> None:
    got = await box.ask(method, f"/admin/v2/namespaces/public/none/{path}")
    assert (got.status, got.reason) == (404, reason)


@pytest.mark.parametrize(
    ("bundle", "reason"),
    [
        ("0x00000001_0x40000000", "Cannot find bundle public/default/0x00000001_0x40000000 in the bundles list"),
        (
            "0x00000000_0x80000000",
            "Invalid upper boundary for bundle public/default/0x00000000_0x80000000."
            " Expected upper boundary of public/default/0x00000000_0x40000000",
        ),
        ("0xffffffff_0xffffffff", "Cannot find bundle public/default/0xffffffff_0xffffffff in the bundles list"),
        ("nonsense", "Invalid bundle range: nonsense: expected a range such as 0x00000000_0x40000000"),
        ("0xzz_0x40000000", "Invalid bundle range: 0xzz_0x40000000: expected a range such as 0x00000000_0x40000000"),
    ],
)
async def test_a_bundle_that_is_none(box: HttpBox, bundle: str, reason: str) -> None:
    for method, path in (
        ("PUT", f"{NS}/{bundle}/unload"),
        ("POST", f"{NS}/{bundle}/clearBacklog"),
        ("POST", f"{NS}/{bundle}/unsubscribe/s"),
        ("GET", f"/non-persistent/public/default/{bundle}"),
    ):
        got = await box.ask(method, f"/admin/v2{path}")
        assert (got.status, got.reason) == (412, reason)


async def backlogs(box: HttpBox, names: str) -> list[dict[str, int]]:
    found = []
    for name in names:
        stats = (await box.get(f"/persistent/public/default/{name}/stats")).value
        found.append({each: told["msgBacklog"] for each, told in stats["subscriptions"].items()})
    return found


async def test_clearing_and_unsubscribing_everywhere(box: HttpBox) -> None:
    client = Client(box)
    for name in "abc":
        for subscription in ("s", "u") if name != "c" else ("u",):
            await box.put(f"/persistent/public/default/{name}/subscription/{subscription}")
        client.publish(f"{T}{name}", 3)
    assert done(await box.post(f"{NS}/clearBacklog/s"))
    assert await backlogs(box, "abc") == [{"s": 0, "u": 3}, {"s": 0, "u": 3}, {"u": 3}]
    missing = await box.post(f"{NS}/clearBacklog/none")
    assert (missing.status, missing.reason) == (404, "Subscription none not found in this namespace")
    await box.put("/namespaces/public/empty")
    assert (await box.post("/namespaces/public/empty/clearBacklog/none")).status == 204, "nothing to clear"
    assert done(await box.post(f"{NS}/clearBacklog"))
    assert await backlogs(box, "abc") == [{"s": 0, "u": 0}, {"s": 0, "u": 0}, {"u": 0}]

    client.subscribe(f"{T}b", "s")
    busy = await box.post(f"{NS}/unsubscribe/s")
    assert (busy.status, busy.reason) == (412, "Subscription s has active connected consumers")
    assert await backlogs(box, "a") == [{"s": 0, "u": 0}]
    client.cnx.closed(box.shell.now())
    assert done(await box.post(f"{NS}/unsubscribe/s"))
    assert done(await box.post(f"{NS}/unsubscribe/s"))
    assert await backlogs(box, "abc") == [{"u": 0}, {"u": 0}, {"u": 0}]


async def test_one_bundle_or_all_of_them_are_unloaded(box: HttpBox) -> None:
    client = Client(box)
    for name in "abcdefgh":
        client.publish(f"{T}{name}", 1)
        client.publish(f"non-persistent://public/default/{name}", 1)
    listed = {
        bundle: (await box.get(f"/persistent/public/default?bundle={bundle}")).value
        for bundle in ("0x00000000_0x40000000", "0x40000000_0x80000000", "0x80000000_0xc0000000")
    }
    bundle, names = next((bundle, names) for bundle, names in listed.items() if 0 < len(names) < 8)
    assert done(await box.put(f"{NS}/{bundle}/unload"))
    loaded = {str(topic.name) for topic in box.broker.topics}
    assert not loaded & set(names)
    assert len(loaded) > 1
    assert done(await box.put(f"{NS}/unload"))
    assert not list(box.broker.topics)
    assert len((await box.get("/persistent/public/default")).value) == 8


async def test_topics_of_a_bundle_that_are_not_persistent(box: HttpBox) -> None:
    path = f"/non-persistent/public/default/{FIRST_BUNDLE}"
    assert done(await box.get(path))
    for name in "abcdefgh":
        Client(box).publish(f"non-persistent://public/default/{name}", 1)
    bundles = ["0x00000000", "0x40000000", "0x80000000", "0xc0000000", "0xffffffff"]
    found: list[str] = []
    for lower, upper in pairwise(bundles):
        got = await box.get(f"/non-persistent/public/default/{lower}_{upper}")
        found += got.value if got.status == 200 else []
    assert sorted(found) == [f"non-persistent://public/default/{name}" for name in "abcdefgh"]


async def test_letting_go_of_a_bundle_deletes_nothing(box: HttpBox) -> None:
    await box.put("/namespaces/public/b", {"bundles": {"numBundles": 4}})
    bundles = "/namespaces/public/b"
    got = await box.delete(f"{bundles}/0x00000000_0x40000000")
    assert (got.status, got.reason) == (
        412,
        "Failed to find ownership for ServiceUnit:public/b/0x00000000_0x40000000",
    )
    names = [f"persistent://public/b/t{i}" for i in range(8)]
    for name in names:
        await box.put(f"/persistent/{name.partition('://')[2]}")
    mine = {bundle_of(box.broker.tenants, parse_topic(name)) for name in names}
    for bundle in mine:
        refused = await box.delete(f"{bundles}/{bundle}")
        assert (refused.status, refused.reason) == (409, "Cannot delete non empty bundle")
        assert (await box.delete(f"{bundles}/{bundle}?force=true")).status == 204
        assert (await box.delete(f"{bundles}/{bundle}")).status == 409  # the topics still exist
    assert (await box.get("/persistent/public/b")).value == names
    assert not list(box.broker.topics)
    await box.put("/non-persistent/public/b/fleeting")
    only = bundle_of(box.broker.tenants, parse_topic("non-persistent://public/b/fleeting"))
    expected = 409 if only in mine else 204
    assert (await box.delete(f"{bundles}/{only}")).status == expected


@pytest.mark.parametrize(
    ("path", "status", "reason"),
    [
        (
            "public/default/0x00000000_0x50000000",
            412,
            "Invalid upper boundary for bundle public/default/0x00000000_0x5",
        ),
        ("public/default/nonsense", 412, "Invalid bundle range: nonsense"),
        ("public/none/0x00000000_0x40000000", 404, "Namespace does not exist"),
        ("nobody/none/0x00000000_0x40000000", 404, "Namespace does not exist"),
    ],
)
async def test_no_such_bundle_to_let_go(box: HttpBox, path: str, status: int, reason: str) -> None:
    got = await box.delete(f"/namespaces/{path}")
    assert (got.status, got.reason[: len(reason)]) == (status, reason)
