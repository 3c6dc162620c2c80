"""Permissions in the Admin API: statuses and texts recorded from Pulsar 4.2.4."""

from typing import Any

import pytest

from tests.unit.server.http.harness import Got, HttpBox

NS = "/namespaces/public/default/permissions"
TOPIC = "/persistent/public/default/t/permissions"


def done(got: Got) -> bool:
    return (got.status, got.text) == (204, "")


async def test_roles_of_a_namespace(box: HttpBox) -> None:
    assert (await box.get(NS)).value == {}
    assert done(await box.post(f"{NS}/bob", ["consume", "produce", "produce"]))
    assert done(await box.post(f"{NS}/al", []))
    assert (await box.get(NS)).value == {"bob": ["produce", "consume"], "al": []}
    assert done(await box.post(f"{NS}/bob", ["functions"]))
    assert (await box.get(NS)).value["bob"] == ["functions"]
    assert done(await box.delete(f"{NS}/bob"))
    assert done(await box.delete(f"{NS}/nobody"))
    assert (await box.get("/namespaces/public/default")).value["auth_policies"] == {
        "namespace_auth": {"al": []},
        "destination_auth": {},
        "subscription_auth_roles": {},
    }


async def test_roles_of_subscriptions(box: HttpBox) -> None:
    assert done(await box.post(f"{NS}/subscription/s", ["bob", "al"]))
    assert (await box.get(f"{NS}/subscription")).value == {"s": ["al", "bob"]}
    assert done(await box.delete(f"{NS}/s/bob"))
    assert done(await box.delete(f"{NS}/s/bob"))
    assert (await box.get(f"{NS}/subscription")).value == {"s": ["al"]}
    assert done(await box.delete(f"{NS}/s/al"))
    assert done(await box.post(f"{NS}/subscription/u", []))
    assert done(await box.delete(f"{NS}/none/al"))
    assert (await box.get(f"{NS}/subscription")).value == {}


async def test_roles_of_a_topic_come_on_top_of_those_of_the_namespace(box: HttpBox) -> None:
    await box.put("/persistent/public/default/t")
    assert done(await box.post(f"{NS}/bob", ["consume"]))
    assert done(await box.post(f"{TOPIC}/carl", ["consume"]))
    assert done(await box.post(f"{TOPIC}/bob", ["produce"]))
    assert (await box.get(TOPIC)).value == {"bob": ["produce", "consume"], "carl": ["consume"]}
    assert (await box.get(NS)).value == {"bob": ["consume"]}
    assert done(await box.delete(f"{TOPIC}/bob"))
    assert done(await box.delete(f"{TOPIC}/bob"))
    assert (await box.get(TOPIC)).value == {"bob": ["consume"], "carl": ["consume"]}
    assert done(await box.post(f"{TOPIC}/carl"))
    assert (await box.get(TOPIC)).value["carl"] == []


@pytest.mark.parametrize("partitions", [0, 2])
async def test_a_topic_that_is_made_again_allows_nothing(box: HttpBox, partitions: int) -> None:
    path = "/persistent/public/default/t" + ("/partitions" if partitions else "")
    await box.put(path, partitions or None)
    assert done(await box.post(f"{TOPIC}/carl", ["consume"]))
    assert done(await box.delete(path))
    await box.put(path, partitions or None)
    assert (await box.get(TOPIC)).value == {}


async def test_several_topics_at_once(box: HttpBox) -> None:
    for name in ("t", "u"):
        await box.put(f"/persistent/public/default/{name}")
    await box.put("/namespaces/public/n")
    await box.put("/persistent/public/n/t")
    wanted = [{"topic": f"persistent://public/default/{name}", "role": "r"} for name in ("t", "u")]
    granted = [each | {"actions": ["produce"]} for each in wanted]
    assert done(await box.post("/namespaces/grantPermissionsOnTopics", granted))
    assert (await box.get("/persistent/public/default/u/permissions")).value == {"r": ["produce"]}
    missing = [*wanted, {"topic": "persistent://public/default/none", "role": "r"}]
    for body, status, reason in (
        (missing, 404, "Topic persistent://public/default/none not found"),
        ([*wanted, {"topic": "persistent://public/n/t", "role": "r"}], 400, "The namespace should be the same"),
        ([], 400, "The namespace should be the same"),
        ([{"topic": 1, "role": "r"}], 400, "Each object must name a topic and a role"),
        (["t"], 400, "The body must be a list of objects"),
        ({}, 400, "The body must be a list of objects"),
    ):
        got = await box.post("/namespaces/revokePermissionsOnTopics", body)
        assert got.status == status
        assert got.reason.startswith(reason)
    assert (await box.get(TOPIC)).value == {"r": ["produce"]}
    assert done(await box.post("/namespaces/revokePermissionsOnTopics", wanted))
    assert (await box.get(TOPIC)).value == {}


@pytest.mark.parametrize(
    ("path", "body", "status", "reason"),
    [
        (f"{NS}/r", None, 400, "Actions should not be null"),
        (f"{NS}/r", ["nonsense"], 400, "Actions must be a list of produce, consume"),
        (f"{NS}/r", {"produce": True}, 400, "Actions must be a list of produce, consume"),
        (f"{NS}/r", [["produce"]], 400, "Actions must be a list of produce, consume"),
        (f"{NS}/subscription/s", None, 400, "Roles should not be null"),
        (f"{NS}/subscription/s", [1], 400, "Roles must be a list of names"),
        ("/namespaces/public/none/permissions/r", ["produce"], 404, "Topic's namespace does not exist"),
        ("/namespaces/public/none/permissions/subscription/s", ["r"], 404, "Namespace does not exist"),
        (f"{TOPIC}/r", ["produce"], 404, "Topic persistent://public/default/t not found"),
    ],
)
async def test_what_cannot_be_granted(box: HttpBox, path: str, body: Any, status: int, reason: str) -> None:
    got = await box.post(path, body)
    assert got.status == status
    assert got.reason.startswith(reason)
    assert (await box.get(NS)).value == {}


@pytest.mark.parametrize(
    "auth",
    [
        [],
        {"other": {}},
        {"namespace_auth": []},
        {"namespace_auth": {"r": "produce"}},
        {"destination_auth": {"t": ["r"]}},
        {"destination_auth": {"t": {"r": ["x"]}}},
        {"subscription_auth_roles": {"s": "r"}},
    ],
)
async def test_a_namespace_brings_permissions_that_are_fit(box: HttpBox, auth: Any) -> None:
    assert (await box.put("/namespaces/public/n", {"auth_policies": auth})).status == 400
    good = {"namespace_auth": {"r": ["produce"]}, "subscription_auth_roles": {"s": ["b", "a"]}}
    assert done(await box.put("/namespaces/public/n", {"auth_policies": good}))
    assert (await box.get("/namespaces/public/n/permissions")).value == {"r": ["produce"]}
    assert (await box.get("/namespaces/public/n/permissions/subscription")).value == {"s": ["a", "b"]}
